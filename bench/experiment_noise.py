"""How much seeds alone move the difference between a quick experiment and its baseline.

Both are trained with fifteen seeds. A pair shares its seed, so that the deviation of the paired
differences is what a comparison has to beat; `SAME_WITHIN` and `SEEDS` of `wordlm_core.experiment`
follow from it. It takes about a minute, and needs the course's lists.
"""

from dataclasses import replace

import numpy as np

from wordlm_core import experiment
from wordlm_core.experiment import OWN, PRESETS, SAME_WITHIN, SEEDS, Experiment

GROUPS = 5
FIRST = Experiment().seed


def main() -> None:
    """Print one line a preset that changes the training."""
    base = losses(Experiment())
    print(f"{'baseline':24} deviation over {len(base)} seeds {base.std(ddof=1):.3f}, unpaired")
    for tried in (preset.experiment for preset in PRESETS):
        sampling_only = (tried.data, tried.training) == (Experiment().data, Experiment().training)
        if tried.data == OWN or sampling_only:
            continue
        changes = losses(tried) - base
        deviation = changes.std(ddof=1)
        print(
            f"{tried.label:24} {changes.mean():+.3f}, deviation of a pair {deviation:.3f}, of the "
            f"mean of {SEEDS} pairs {deviation / SEEDS**0.5:.3f}; {verdicts(changes)}"
        )


def losses(tried: Experiment) -> np.ndarray:
    """Return the loss with each of `SEEDS` times `GROUPS` seeds."""
    corpus = experiment.corpus_of(tried, None)
    first = range(FIRST, FIRST + SEEDS * GROUPS, SEEDS)
    found = [experiment.run(replace(tried, seed=seed), corpus).finals for seed in first]
    return np.array(found, dtype=float).ravel()


def verdicts(changes: np.ndarray) -> str:
    """Return what a page would have said with each group of seeds, and one seed alone."""
    groups = changes.reshape(GROUPS, SEEDS)
    agree = np.abs(np.sign(groups).sum(axis=1)) == SEEDS
    moved = agree & (np.abs(groups.mean(axis=1)) >= SAME_WITHIN)
    alone = np.abs(changes) >= SAME_WITHIN
    return f"moved in {moved.sum()} of {GROUPS} groups, {alone.sum()} of {alone.size} pairs alone"


if __name__ == "__main__":
    main()
