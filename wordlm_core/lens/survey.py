"""Survey: attention against effect over many held-out windows, so that one is not a law.

Every word of every window is replaced in turn, as on the Ablation page; only the numbers are
kept (KL, attention, position), no text and no ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from wordlm_core.checkpoint import Checkpoint, naming, read_arrays, write_arrays
from wordlm_core.errors import CheckpointError, ConfigError, CorpusError
from wordlm_core.lens.ablation import ablate, spearman
from wordlm_core.text import FIRST_LEXICAL_ID
from wordlm_core.vocabulary import Probe
from wordlm_core.windows import Windows


@dataclass(frozen=True)
class Survey:
    """The same windows ablated in one model. Positions count from the window's left edge.

    Attributes:
        kl: KL(before || after) in nats of replacing each position by `<UNK>`.
        attention: Weight from the last query to each position, before the change; None for
            a model without attention.
        kind: Of the model.
        sha256: Of the checkpoint the numbers belong to.
    """

    unit: ClassVar[str] = "nats"

    kl: Float[np.ndarray, "window pos"]
    attention: Float[np.ndarray, "window head pos"] | None
    kind: str
    sha256: str


@dataclass(frozen=True)
class Agreement:
    """How well attention ranks effects, window by window.

    Attributes:
        correlations: Spearman's of mean attention with KL over the positions of a window;
            windows where it has no meaning are left out.
        median: Of the correlations; None where there is none.
        top_matches: Share of windows in which the position with most attention is also
            the one with the largest KL.
        last_first: Share of windows in which the last position has the largest KL.
        windows: How many there are.
    """

    correlations: Float[np.ndarray, " windows"]
    median: float | None
    top_matches: float
    last_first: float
    windows: int


def survey(checkpoint: Checkpoint, windows: Windows, *, count: int = 200) -> Survey:
    """Ablate every position of `count` windows, spread evenly over a split.

    Windows that hold padding or another special token are passed over, so that every one is
    a full window of words: the survey says nothing about short texts. Windows that stand
    near each other come from the same story.

    Args:
        checkpoint: The selected weights are used.
        windows: Of a split that the model was not trained on.
        count: How many windows (>= 1); cut to what there is.

    Raises:
        ConfigError: `count` is not positive.
        CorpusError: The split has no whole window.
    """
    model, vocabulary = checkpoint.model, checkpoint.vocabulary
    results = [
        ablate(model, vocabulary, _probe(ids, vocabulary.itos), top=1)
        for ids in _spread(windows, count)
    ]
    attention = None
    if model.n_head:
        attention = np.array(
            [[e.attention[-1] for e in r.effects if e.attention is not None] for r in results],
            dtype=np.float32,
        ).swapaxes(1, 2)
    kl = np.array([[effect.kl for effect in r.effects] for r in results], dtype=np.float32)
    return Survey(kl, attention, model.kind, checkpoint.sha256)


def agreement(of: Survey) -> Agreement:
    """Say how well attention ranks effects over all windows of a survey.

    Attention is averaged over heads, as on the Ablation page. Positions are ranked inside
    their window only.

    Raises:
        CheckpointError: The model has no attention.
    """
    if of.attention is None:
        raise CheckpointError("the MLP has no attention to compare with its effects")
    mean = of.attention.mean(axis=1)
    found = [spearman(a, kl) for a, kl in zip(mean, of.kl, strict=True)]
    correlations = np.array([value for value in found if value is not None])
    best = of.kl.argmax(axis=1)
    return Agreement(
        correlations=correlations,
        median=float(np.median(correlations)) if len(correlations) else None,
        top_matches=float((mean.argmax(axis=1) == best).mean()),
        last_first=float((best == of.kl.shape[1] - 1).mean()),
        windows=len(of.kl),
    )


def save(surveys: Mapping[str, Survey], corpus: Mapping[str, Any], path: Path) -> None:
    """Write surveys by checkpoint name, with the corpus they were taken on."""
    arrays: dict[str, np.ndarray] = {}
    for name, of in surveys.items():
        arrays[f"kl__{name}"] = of.kl
        if of.attention is not None:
            arrays[f"attention__{name}"] = of.attention.astype(np.float16)
    models = {name: {"kind": of.kind, "sha256": of.sha256} for name, of in surveys.items()}
    write_arrays(path, arrays, {"models": models, "corpus": dict(corpus)}, compress=True)


def load(path: Path) -> dict[str, Survey]:
    """Read what `save` wrote, by checkpoint name.

    Raises:
        CheckpointError: Unreadable, or no surveys.
    """
    with naming(path):
        arrays, metadata = read_arrays(path)
    models = metadata.get("models")
    if not isinstance(models, dict):
        raise CheckpointError("it holds no surveys")
    found: dict[str, Survey] = {}
    for name, entry in models.items():
        kl, attention = arrays.get(f"kl__{name}"), arrays.get(f"attention__{name}")
        shapes_fit = kl is not None and kl.ndim == 2
        if attention is not None and kl is not None:
            shapes_fit &= attention.ndim == 3 and attention[:, 0].shape == kl.shape
        if kl is None or not shapes_fit or not isinstance(entry, dict):
            raise CheckpointError(f"the survey of {name[:60]} is incomplete")
        narrow = None if attention is None else attention.astype(np.float32)
        found[name] = Survey(kl, narrow, str(entry.get("kind")), str(entry.get("sha256")))
    return found


def _spread(windows: Windows, count: int) -> np.ndarray:
    if count < 1:
        raise ConfigError(f"the number of windows must be 1 or more, not {count}")
    # How many specials stand before each id: a window is whole if none stands inside it.
    specials = np.concatenate([[0], np.cumsum(windows.ids < FIRST_LEXICAL_ID)])
    inside = specials[windows.ends] - specials[windows.ends - windows.context_length]
    whole = np.flatnonzero(inside == 0)
    if not len(whole):
        raise CorpusError(f"the split has no whole window of {windows.context_length} known words")
    count = min(count, len(whole))
    return windows.contexts(whole[np.linspace(0, len(whole) - 1, count).astype(int)])


def _probe(ids: np.ndarray, itos: tuple[str, ...]) -> Probe:
    tokens = tuple(itos[i] for i in ids)
    return Probe(tokens, tokens, ids, (), 0)
