"""One training step of microgpt and 20 samples, against the scalar original, in one run.

Both are trained on the same invented list with the same seed, so their losses must agree; the
slow one takes fewer steps. Sizes of the original: width 16, four heads, one layer, context 16.
"""

import random
import statistics
import time

import numpy as np

from wordlm_core import scalar_gpt
from wordlm_core.corpora import Corpus
from wordlm_core.gpt_trainer import GPTTrainer
from wordlm_core.items import prepare_items
from wordlm_core.lens.sampling import generate
from wordlm_core.training import TrainConfig

STEPS, SLOW_STEPS, ROUNDS, SAMPLES = 1000, 15, 3, 20
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    """Print the ratio of a step, the seconds of a training and of 20 samples."""
    documents = invented(2000)
    settings = scalar_gpt.Settings()
    started = time.perf_counter()
    slow = scalar_gpt.train(documents, settings, steps=STEPS, stop_after=SLOW_STEPS)
    slow_step = (time.perf_counter() - started) / SLOW_STEPS
    data = prepare_items(Corpus("invented", documents, "CC0-1.0", "made here"))
    times: list[float] = []
    for _ in range(ROUNDS):
        trainer = GPTTrainer(TrainConfig.of("microgpt", steps=STEPS), data)
        started = time.perf_counter()
        trainer.run()
        times.append(time.perf_counter() - started)
    difference = np.abs(np.subtract(trainer.losses[:SLOW_STEPS], slow.losses)).max()
    fast_step = statistics.median(times) / STEPS
    print(
        f"microgpt   {STEPS:,} steps {fast_step * STEPS:.2f} s = {slow_step / fast_step:.0f}x the "
        f"scalar original ({slow_step * STEPS:.0f} s by {SLOW_STEPS} steps); largest difference "
        f"of their losses {difference:.0e}"
    )
    made = trainer.checkpoint()
    drawing: list[float] = []
    for _ in range(10):
        started = time.perf_counter()
        generate(made.model, made.vocabulary, None, temperature=0.5, samples=SAMPLES)
        drawing.append(time.perf_counter() - started)
    print(f"           {SAMPLES} names sampled in {statistics.median(drawing) * 1e3:.0f} ms")


def invented(count: int) -> tuple[str, ...]:
    """Return words of random letters, as long as names are."""
    rng = random.Random(1)
    return tuple("".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(count))


if __name__ == "__main__":
    main()
