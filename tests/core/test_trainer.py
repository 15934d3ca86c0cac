"""The trainer: protocol, resume, and its written-out backward passes."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812 (torch's own name for it)

from wordlm_core import checkpoint, training
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.models import attention, mlp
from wordlm_core.models._torch_ops import attend_last, head_loss, lookup
from wordlm_core.trainer import Trainer, mean_loss
from wordlm_core.training import NonFiniteLossError, TrainConfig
from wordlm_core.windows import Dataset, prepare

CONTEXT = 6


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(5)
    who, what = ["tom", "lily", "the dog", "a bird"], ["ran", "sat", "saw a cat", "was sad"]
    documents = [
        f"one day {who[a]} {what[b]} and {who[c]} {what[d]} {n} times ."
        for n, (a, b, c, d) in enumerate(rng.integers(0, 4, (80, 4)))
    ]
    corpus = Corpus("tiny", tuple(documents), "CC0-1.0", "made here")
    return prepare(corpus, context_length=CONTEXT, max_vocab=40, min_freq=1)


def config(family: str = "attention", **changes: object) -> TrainConfig:
    return dataclasses.replace(
        TrainConfig(
            family=family,
            steps=24,
            d_model=8,
            hidden=12,
            context_length=CONTEXT,
            batch=16,
            n_head=2,
        ),
        **changes,
    )


def train(cfg: TrainConfig, data: Dataset) -> checkpoint.Checkpoint:
    trainer = Trainer(cfg, data)
    assert trainer.run()
    return trainer.checkpoint()


@pytest.mark.parametrize("family", ["mlp", "attention"])
def test_loss_falls_and_the_seed_decides_everything(data, family):
    first, again = train(config(family), data), train(config(family), data)
    other = train(config(family, seed=12), data)
    losses = first.metadata["loss_history"]
    assert len(losses) == 24
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.1
    assert first.sha256 == again.sha256 != other.sha256


@pytest.mark.parametrize("family", ["mlp", "attention"])
def test_stop_and_resume_give_the_weights_of_one_go(data, family, tmp_path):
    cfg, state = config(family), tmp_path / "state.npz"
    whole = train(cfg, data)
    half = Trainer(cfg, data)
    assert not half.run(should_stop=lambda: half.step == 11, save_to=state)
    rest = Trainer(cfg, data, resume=state)
    assert rest.step == 11
    assert rest.run(save_to=state)
    resumed = rest.checkpoint()
    assert resumed.sha256 == whole.sha256
    assert resumed.metadata["loss_history"] == whole.metadata["loss_history"]
    assert resumed.metadata["trace"] == whole.metadata["trace"]
    for label in whole.steps:
        assert np.array_equal(resumed.embeddings[label], whole.embeddings[label])


def test_a_state_of_another_training_is_refused(data, tmp_path):
    trainer = Trainer(config(), data)
    trainer.save(tmp_path / "state.npz")
    with pytest.raises(CheckpointError, match="other settings or another corpus"):
        Trainer(config(seed=3), data, resume=tmp_path / "state.npz")


def test_stored_steps_and_selection_follow_the_protocol(data):
    done = train(config(), data)
    trace = done.metadata["trace"]
    assert [entry["step"] for entry in trace] == [1, *range(3, 25, 3)]
    best = min(trace, key=lambda entry: entry["validation_loss"])
    assert done.selected_step == best["step"]
    steps = [checkpoint.step_number(label) for label in done.steps]
    assert steps == sorted({0, *range(3, 25, 3), best["step"]})
    model = done.model
    assert math.isclose(
        mean_loss(model, data.splits["validation"]), best["validation_loss"], rel_tol=1e-6
    )
    assert math.isclose(
        mean_loss(model, data.splits["test"]), done.metadata["metrics"]["test_loss"], rel_tol=1e-6
    )


def test_mean_loss_equals_the_inference_forward(data):
    done = train(config(), data)
    windows = data.splits["test"]
    total = 0.0
    for context, target in zip(windows.contexts(), windows.targets(), strict=True):
        logits = done.model.last_logits(context[context != 0][None])[0].astype(np.float64)
        total += np.log(np.exp(logits).sum()) - logits[target]
    assert math.isclose(mean_loss(done.model, windows), total / len(windows), rel_tol=1e-5)


def test_the_pad_row_stays_zero(data):
    done = train(config(), data)
    assert not done.model.weights["token_embedding.weight"][0].any()


def test_a_diverging_training_fails_and_keeps_finite_weights(data, tmp_path):
    cfg = config(lr=1e6, steps=200)
    trainer = Trainer(cfg, data)
    with pytest.raises(NonFiniteLossError, match=r"not finite at step \d+"):
        trainer.run(save_to=tmp_path / "state.npz")
    kept = trainer.checkpoint(test=False)
    checkpoint.save(kept, tmp_path / "kept.npz")
    again = checkpoint.load(tmp_path / "kept.npz")
    assert all(np.isfinite(array).all() for array in again.model.weights.values())


def test_weights_beyond_float16_are_a_failure_not_a_broken_file(data):
    trainer = Trainer(config(lr=1e5, steps=8), data)
    with pytest.raises(NonFiniteLossError, match=r"outgrew float16|not finite"):
        trainer.run()


def test_a_history_too_large_for_its_reader_is_thinned(data, monkeypatch, tmp_path):
    whole = train(config(), data)
    parameters = sum(array.size for array in whole.model.weights.values())
    # Room for the embeddings of all nine evaluations, but for only some whole weights.
    monkeypatch.setattr(training, "MAX_HISTORY_BYTES", 2 * 4 * parameters)
    thin = train(config(), data)
    assert thin.steps == whole.steps
    assert 2 <= len(thin.whole_steps) < len(whole.whole_steps)
    checkpoint.save(thin, tmp_path / "thin.npz")
    assert checkpoint.load(tmp_path / "thin.npz").whole_steps == thin.whole_steps


def test_a_damaged_state_is_one_sentence(data, tmp_path):
    trainer = Trainer(config(), data)
    state = tmp_path / "state.npz"
    trainer.save(state)
    arrays, record = checkpoint.read_arrays(state)
    for broken in (
        {k: v for k, v in arrays.items() if k != "generator"},
        arrays | {"weights__W_Q.weight": np.zeros((1, 1, 1), np.float32)},
    ):
        checkpoint.write_arrays(state, broken, record)
        with pytest.raises(CheckpointError, match=r"state.npz is incomplete"):
            Trainer(config(), data, resume=state)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be 1"),
        ({"batch": 0}, "batch must be 1"),
        ({"seed": -1}, "seed must be 0"),
        ({"lr": float("nan")}, "learning rate must be above 0"),
        ({"lr": 0.0}, "learning rate must be above 0"),
        ({"weight_decay": -1.0}, "weight decay must be 0 or more"),
        ({"weight_decay": float("inf")}, "weight decay must be 0 or more"),
        ({"family": "rnn"}, "unknown family 'rnn'"),
    ],
)
def test_settings_out_of_range_are_one_sentence(changes, message):
    with pytest.raises(ConfigError, match=message):
        config(**changes)


def test_heads_that_do_not_divide_the_width_are_refused(data):
    with pytest.raises(ConfigError, match="3 heads do not divide"):
        Trainer(config(n_head=3), data)


def test_parameter_counts_of_the_protocol():
    sizes = {"vocab_size": 4000, "context_length": 64, "d_model": 64, "hidden": 256}
    count = {
        name: sum(math.prod(shape) for shape in cfg.shapes.values())
        for name, cfg in {
            "mlp": mlp.config_for(**sizes),
            "attention": attention.config_for(**sizes, n_head=4, positions=True),
            "no positions": attention.config_for(**sizes, n_head=1, positions=False),
        }.items()
    }
    assert count == {"mlp": 2_332_832, "attention": 1_321_120, "no positions": 1_317_024}


# -- the operations against torch's own


def test_lookup_equals_torchs_embedding_and_its_gradient():
    torch.manual_seed(0)
    table = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 3, 3], [8, 0, 1]])
    weight = torch.randn(2, 3, 4, dtype=torch.float64)
    (lookup(table, ids) * weight).sum().backward()
    ours, table.grad = table.grad, None
    (F.embedding(ids, table, padding_idx=0) * weight).sum().backward()
    assert torch.allclose(ours, table.grad)
    assert not ours[0].any()


def test_head_loss_equals_cross_entropy_and_its_gradients():
    torch.manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*shape, requires_grad=True) for shape in ((5, 6), (9, 6), (9,))
    )
    targets = torch.tensor([0, 8, 3, 3, 1])
    ours = head_loss(hidden, weight, bias, targets)
    grads = torch.autograd.grad(2 * ours, (hidden, weight, bias))
    plain = F.cross_entropy(F.linear(hidden, weight, bias), targets)
    expected = torch.autograd.grad(2 * plain, (hidden, weight, bias))
    assert torch.allclose(ours, plain, atol=1e-6)
    for got, want in zip(grads, expected, strict=True):
        assert torch.allclose(got, want, atol=1e-6)


def test_attend_last_equals_the_plain_formula_and_its_gradients():
    torch.manual_seed(0)
    shapes = ((3, 5, 4), (3, 2, 4), (3, 2, 5))
    inputs = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in shapes]
    masked = torch.zeros(3, 1, 5, dtype=torch.bool)
    masked[0, 0, :3] = True
    weights = torch.randn(3, 2, 4, dtype=torch.float64), torch.randn(3, 2, 5, dtype=torch.float64)

    def plain(embed, asked, added, masked):
        scores = torch.einsum("bhd,bkd->bhk", asked, embed) + added
        a = scores.masked_fill(masked, -math.inf).softmax(-1)
        return torch.einsum("bhk,bkd->bhd", a, embed), a

    results = []
    for function in (attend_last, plain):
        mixed, a = function(*inputs, masked)
        loss = (mixed * weights[0]).sum() + (a * weights[1]).sum()
        results.append((mixed, a, *torch.autograd.grad(loss, inputs)))
    for got, want in zip(*results, strict=True):
        assert torch.allclose(got, want)


def test_bfloat16_head_trains_to_nearly_the_same_loss(data):
    exact, narrow = train(config(), data), train(config(bfloat16_head=True), data)
    gap = exact.metadata["loss_history"][-1] - narrow.metadata["loss_history"][-1]
    assert 0 < abs(gap) < 0.05


def test_while_it_trains_the_latest_weights_can_be_kept(data):
    """The best ones may be those of an evaluation long ago, at first of step 1."""
    trainer = Trainer(config(), data)
    for _ in range(3):
        trainer.advance()
    best, latest = trainer.checkpoint(test=False), trainer.checkpoint(test=False, latest=True)
    assert latest.selected_step == 3
    assert best.selected_step <= 3
    assert np.array_equal(latest.embedding_at(None), latest.model.weights["token_embedding.weight"])
    assert len(set(latest.steps)) == len(latest.steps)
