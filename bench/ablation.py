"""What ablating every word of a 64-token text costs, against one forward of the same batch."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from wordlm_core.lens.ablation import ablate
from wordlm_core.models import attention, mlp
from wordlm_core.models.base import LanguageModel
from wordlm_core.text import BOS_ID, SPECIALS
from wordlm_core.vocabulary import Probe, WordVocabulary

VOCAB, CONTEXT, WIDTH, HIDDEN, ROUNDS = 4000, 64, 64, 256, 15


def main() -> None:
    """Print one ratio a kind of model."""
    words = (*SPECIALS, *(f"w{i}" for i in range(VOCAB - len(SPECIALS))))
    vocabulary = WordVocabulary(words, {})
    rng = np.random.default_rng(0)
    ids = np.concatenate([[BOS_ID], rng.integers(4, VOCAB, CONTEXT - 1)])
    tokens = tuple(words[i] for i in ids)
    probe = Probe(tokens, tokens, ids, (), 0)
    for name, model in models(rng).items():
        batch = np.repeat(ids[None], CONTEXT, axis=0)
        forward, whole = [], []
        for _ in range(ROUNDS):
            forward.append(seconds(lambda: model.last_logits(batch)))  # noqa: B023
            whole.append(seconds(lambda: ablate(model, vocabulary, probe)))  # noqa: B023
        one, all_of_it = statistics.median(forward), statistics.median(whole)
        print(
            f"{name:10} ablate {CONTEXT} tokens {all_of_it * 1e3:6.1f} ms = "
            f"{all_of_it / one:.2f}x one forward of {CONTEXT} texts ({one * 1e3:.1f} ms)"
        )


def models(rng: np.random.Generator) -> dict[str, LanguageModel]:
    """Return one model of each kind with random weights at the shipped sizes."""
    built: dict[str, LanguageModel] = {}
    kinds = {"mlp": (mlp, 0), "attention": (attention, 1), "multihead": (attention, 4)}
    for name, (module, heads) in kinds.items():
        config = module.config_for(
            vocab_size=VOCAB, context_length=CONTEXT, d_model=WIDTH, hidden=HIDDEN,
            n_head=heads, positions=True,
        )  # fmt: skip
        weights = {k: rng.normal(0, 0.1, shape) for k, shape in config.shapes.items()}
        built[name] = module.build(config, weights)
    return built


def seconds(step: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
