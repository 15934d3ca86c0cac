"""The scalar original: against NumPy, finite differences and torch's Adam, on invented names."""

import math
import random

import numpy as np
import pytest
import torch

from wordlm_core import scalar_gpt
from wordlm_core.errors import ConfigError, CorpusError, TextError
from wordlm_core.scalar_gpt import ScalarGPT, Settings

NAMES = (
    *("oranel", "tivo", "masu", "belinara", "kex", "junoth"),
    *("arvela", "pilo", "sumari", "denk", "oluvia", "tamberlin"),
)
SMALL = Settings(n_layer=1, n_head=2, d_model=4, context_length=6)
CASES = {
    "one layer": SMALL,
    "two layers": Settings(n_layer=2, n_head=2, d_model=4, context_length=6),
    "no positions": Settings(n_layer=1, n_head=2, d_model=4, context_length=6, positions=False),
    "one head": Settings(n_layer=1, n_head=1, d_model=3, context_length=4),
    "no layer": Settings(n_layer=0, n_head=1, d_model=3, context_length=4),
}
ITOS = scalar_gpt.vocabulary_of(NAMES)
EACH = pytest.mark.parametrize("settings", CASES.values(), ids=CASES)


def drawn(settings: Settings, seed: int = 7) -> scalar_gpt.Weights:
    """Return weights large enough for every nonlinearity to matter."""
    made = scalar_gpt.initial(len(ITOS), settings, random.Random(seed))
    return {name: [[6 * w for w in row] for row in matrix] for name, matrix in made.items()}


def logits_of(weights: scalar_gpt.Weights, settings: Settings, ids: list[int]) -> np.ndarray:
    """Return the logits at every position, by matrices: an independent forward pass."""
    w = {name: np.array(matrix) for name, matrix in weights.items()}

    def norm(x):
        return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)

    x = w["wte"][ids] + (w["wpe"][: len(ids)] if settings.positions else 0)
    x = norm(x)
    width = settings.d_model // settings.n_head
    for layer in range(settings.n_layer):
        mine = {name.split(".")[1]: m for name, m in w.items() if name.startswith(f"layer{layer}.")}
        q, k, v = (norm(x) @ mine[f"attn_{name}"].T for name in ("wq", "wk", "wv"))
        heads = []
        for head in range(settings.n_head):
            part = slice(head * width, (head + 1) * width)
            scores = q[:, part] @ k[:, part].T / math.sqrt(width)
            shares = np.exp(scores) * np.tri(len(ids))
            heads.append(shares / shares.sum(axis=1, keepdims=True) @ v[:, part])
        x = x + np.concatenate(heads, axis=1) @ mine["attn_wo"].T
        x = x + np.maximum(norm(x) @ mine["mlp_fc1"].T, 0) @ mine["mlp_fc2"].T
    return x @ w["lm_head"].T


def loss_of(weights: scalar_gpt.Weights, settings: Settings, ids: list[int]) -> float:
    count = min(settings.context_length, len(ids) - 1)
    logits = logits_of(weights, settings, ids[:count])
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return float(-log_probs[np.arange(count), ids[1 : count + 1]].mean())


# -- one document


@EACH
@pytest.mark.parametrize("name", ["kex", "belinara", ""])
def test_the_loss_is_the_one_of_matrices(settings, name):
    weights, ids = drawn(settings), scalar_gpt.encode(name, ITOS)
    ours = ScalarGPT(weights, settings).loss(ids).data
    assert ours == pytest.approx(loss_of(weights, settings, ids), rel=1e-12)


@EACH
def test_gradients_are_the_slopes_of_the_loss(settings):
    weights, ids = drawn(settings), scalar_gpt.encode("belinara", ITOS)
    model = ScalarGPT(weights, settings)
    model.loss(ids).backward()
    gradients = model.gradients()
    rng, step = random.Random(3), 1e-6
    read_rows = {"wte": sorted(set(ids[:-1])), "wpe": range(min(6, settings.context_length))}
    for name in weights:
        for _ in range(6):
            row = rng.choice(read_rows.get(name, range(len(weights[name]))))
            column = rng.randrange(len(weights[name][0]))
            kept, ends = weights[name][row][column], []
            for moved in (kept + step, kept - step):
                weights[name][row][column] = moved
                ends.append(loss_of(weights, settings, ids))
            weights[name][row][column] = kept
            slope = (ends[0] - ends[1]) / (2 * step)
            assert gradients[name][row][column] == pytest.approx(slope, rel=1e-5, abs=1e-8), name
    moving = sum(abs(g) > 1e-4 for matrix in gradients.values() for row in matrix for g in row)
    assert moving > 30


def test_positions_that_are_not_added_get_no_gradient():
    settings = CASES["no positions"]
    model = ScalarGPT(drawn(settings), settings)
    model.loss(scalar_gpt.encode("masu", ITOS)).backward()
    assert {g for row in model.gradients()["wpe"] for g in row} == {0}


# -- training


def test_the_documents_are_shuffled_first_and_then_the_weights_drawn():
    trained = scalar_gpt.train(NAMES, SMALL, steps=9, seed=5, stop_after=1)
    rng = random.Random(5)
    order = list(NAMES)
    rng.shuffle(order)
    shapes = [("wte", len(ITOS), 4), ("wpe", 6, 4), ("lm_head", len(ITOS), 4)]
    shapes += [(f"layer0.attn_{name}", 4, 4) for name in ("wq", "wk", "wv", "wo")]
    shapes += [("layer0.mlp_fc1", 16, 4), ("layer0.mlp_fc2", 4, 16)]
    start = {
        name: [[rng.gauss(0, 0.08) for _ in range(columns)] for _ in range(rows)]
        for name, rows, columns in shapes
    }
    assert list(trained.weights) == [name for name, *_ in shapes]
    expected = loss_of(start, SMALL, scalar_gpt.encode(order[0], ITOS))
    assert trained.losses == [pytest.approx(expected, rel=1e-12)]
    assert trained.losses[0] == pytest.approx(math.log(len(ITOS)), abs=0.2)


def test_the_default_sizes_have_4192_parameters_with_26_letters():
    rng = random.Random(42)
    made = scalar_gpt.initial(27, Settings(), rng)
    assert sum(len(row) for matrix in made.values() for row in matrix) == 4192


def test_each_update_is_adams_with_a_rate_that_falls_to_0():
    settings, steps = Settings(n_head=1, d_model=2, context_length=3, lr=0.05), 4
    rng = random.Random(42)
    rng.shuffle(list(NAMES))
    start = scalar_gpt.initial(len(ITOS), settings, rng)
    tensors = {
        name: torch.tensor(matrix, dtype=torch.float64, requires_grad=True)
        for name, matrix in start.items()
    }
    adam = torch.optim.Adam(tensors.values(), betas=(0.85, 0.99), eps=1e-8)
    for step in range(steps):
        trained = scalar_gpt.train(NAMES, settings, steps=steps, stop_after=step + 1)
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(trained.gradients[name], dtype=torch.float64)
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        adam.step()
        for name, tensor in tensors.items():
            np.testing.assert_allclose(trained.weights[name], tensor.detach(), rtol=0, atol=1e-10)
    assert len(trained.losses) == steps


def test_it_learns_and_the_same_seed_learns_the_same():
    settings = Settings(n_head=2, d_model=4, context_length=6, lr=0.05)
    first, again = (scalar_gpt.train(NAMES[1:3], settings, steps=16) for _ in range(2))
    assert first == again
    assert sum(first.losses[-4:]) < 0.8 * sum(first.losses[:4])
    other = scalar_gpt.train(NAMES[1:3], settings, steps=16, seed=1, stop_after=1)
    assert other.losses != first.losses[:1]


def test_a_learning_rate_without_measure_stops_with_a_reason():
    settings = Settings(n_head=1, d_model=2, context_length=3, lr=1e6)
    with pytest.raises(ConfigError, match="log needs a number above 0, not 0"):
        scalar_gpt.train(NAMES, settings, steps=20)


# -- sampling


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_samples_are_drawn_from_the_probabilities_by_one_generator(temperature):
    weights, rng = drawn(SMALL), random.Random(11)
    expected = []
    for _ in range(5):
        ids = [len(ITOS) - 1]
        while len(ids) <= SMALL.context_length:
            scaled = logits_of(weights, SMALL, ids)[-1] / temperature
            probs = np.exp(scaled) / np.exp(scaled).sum()
            (token,) = rng.choices(range(len(ITOS)), weights=probs.tolist())
            if token == len(ITOS) - 1:
                break
            ids.append(token)
        expected.append("".join(ITOS[i] for i in ids[1:]))
    options = {"temperature": temperature, "seed": 11, "samples": 5}
    assert scalar_gpt.sample(weights, ITOS, SMALL, **options) == expected
    assert max(map(len, expected)) <= SMALL.context_length


# -- bad input


def test_a_document_is_read_as_it_is_with_bos_at_both_ends():
    itos = scalar_gpt.vocabulary_of(["ba", "B-", "a"])
    assert itos == ("-", "B", "a", "b", "<BOS>")
    assert scalar_gpt.encode("ab", itos) == [4, 2, 3, 4]
    with pytest.raises(TextError, match="“z” at place 2 is not in the vocabulary"):
        scalar_gpt.encode("az", itos)


@pytest.mark.parametrize("documents", [[], ["", ""]])
def test_no_characters(documents):
    with pytest.raises(CorpusError, match="no document with a character"):
        scalar_gpt.train(documents, SMALL, steps=1)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"n_head": 3}, "width 16 cannot be shared by 3 heads"),
        ({"n_head": 0}, "1 or more"),
        ({"d_model": 0}, "1 or more"),
        ({"context_length": 0}, "1 or more"),
        ({"n_layer": -1}, "layers 0 or more"),
    ],
)
def test_sizes_that_no_model_has(sizes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Settings(**sizes)


@pytest.mark.parametrize(("steps", "stop_after"), [(0, None), (-1, None), (5, 0)])
def test_no_steps(steps, stop_after):
    with pytest.raises(ConfigError, match="1 step or more"):
        scalar_gpt.train(NAMES, SMALL, steps=steps, stop_after=stop_after)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_no_temperature(temperature):
    options = {"temperature": temperature, "seed": 0, "samples": 1}
    with pytest.raises(ConfigError, match="has to be above 0"):
        scalar_gpt.sample(drawn(SMALL), ITOS, SMALL, **options)
