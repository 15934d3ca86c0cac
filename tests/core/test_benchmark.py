"""The benchmark: what it writes, and that it resumes."""

import dataclasses
import json
import math
import statistics

import pytest

from wordlm_core import benchmark, checkpoint
from wordlm_core.corpora import stories
from wordlm_core.errors import CheckpointError, ConfigError
from wordlm_core.training import TrainConfig

BASE = TrainConfig(
    steps=8, d_model=8, hidden=8, context_length=12, batch=8, max_vocab=200, min_freq=1
)


@pytest.fixture(scope="module")
def corpus():
    return stories.load(profile=None, documents=60)


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmark")
    return out, benchmark.run(corpus, out, seeds=[11, 29], base=BASE)


def test_it_writes_the_courses_keys(finished):
    out, result = finished
    assert json.loads((out / "benchmark.json").read_text()) == json.loads(json.dumps(result))
    assert set(result) >= {
        "source", "protocol", "corpus_audit", "configs", "runs", "aggregate", "comparison",
    }  # fmt: skip
    assert set(result["comparison"]) >= {
        "attention_minus_mlp_test_loss", "relative_perplexity_change", "winner", "claim_scope",
    }  # fmt: skip
    for kind in ("mlp", "attention", "multihead"):
        assert [run["seed"] for run in result["runs"][kind]] == [11, 29]
        for run in result["runs"][kind]:
            assert set(run) >= {
                "seed", "parameter_count", "tokens_seen", "selected_step", "test_loss",
                "test_perplexity", "runtime_seconds", "trace",
            }  # fmt: skip
            assert checkpoint.load(out / run["file"]).model.kind == kind


def test_aggregates_are_mean_and_sample_deviation(finished):
    _, result = finished
    for kind, runs in result["runs"].items():
        losses = [run["test_loss"] for run in runs]
        spread = result["aggregate"][kind]["test_loss"]
        assert spread["values"] == losses
        assert math.isclose(spread["mean"], sum(losses) / 2)
        assert math.isclose(spread["sample_std"], abs(losses[0] - losses[1]) / math.sqrt(2))
    means = {
        kind: statistics.fmean(run["test_loss"] for run in runs)
        for kind, runs in result["runs"].items()
    }
    difference = result["comparison"]["attention_minus_mlp_test_loss"]
    assert math.isclose(difference, means["attention"] - means["mlp"])
    assert result["comparison"]["winner"] == ("attention" if difference < 0 else "mlp")


def test_a_second_call_trains_nothing(finished, corpus):
    out, result = finished
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("*.npz")}
    reports = []
    again = benchmark.run(
        corpus, out, seeds=[11, 29], base=BASE, report=lambda *args: reports.append(args)
    )
    assert not reports
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.npz")} == stamps
    assert again == json.loads(json.dumps(result))


def test_a_stopped_benchmark_goes_on_to_the_same_weights(finished, corpus, tmp_path):
    out, _ = finished

    def stop_midway(kind, seed, progress):
        if kind == "attention" and progress.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        benchmark.run(corpus, tmp_path, seeds=[11], base=BASE, report=stop_midway)
    assert (tmp_path / "mlp_seed11.npz").exists()
    steps = []
    benchmark.run(
        corpus,
        tmp_path,
        seeds=[11],
        base=BASE,
        report=lambda kind, seed, progress: steps.append((kind, progress.step)),
    )
    assert steps[0] == ("attention", 5)  # step 4 was the last that was saved
    for kind in ("mlp", "attention", "multihead"):
        name = f"{kind}_seed11.npz"
        assert checkpoint.load(tmp_path / name).sha256 == checkpoint.load(out / name).sha256
    assert not list(tmp_path.glob("*.resume.npz"))


def test_runs_of_other_settings_are_not_mixed(finished, corpus):
    out, _ = finished
    other = TrainConfig(
        steps=9, d_model=8, hidden=8, context_length=12, batch=8, max_vocab=200, min_freq=1
    )
    with pytest.raises(CheckpointError, match=r"mlp_seed11.npz is there already"):
        benchmark.run(corpus, out, seeds=[11], base=other)
    with pytest.raises(ConfigError, match="each named once"):
        benchmark.run(corpus, out, seeds=[11, 11], base=BASE)


def test_a_refused_call_changes_nothing_and_trains_nothing(finished, corpus, tmp_path):
    out, _ = finished
    before = (out / "vocab.json").read_bytes()
    other = stories.load(profile=None, documents=70)
    with pytest.raises(CheckpointError, match="another corpus"):
        benchmark.run(other, out, seeds=[11], base=BASE)
    assert (out / "vocab.json").read_bytes() == before
    for seeds, base in (([11, -1], BASE), ([11], dataclasses.replace(BASE, d_model=6))):
        with pytest.raises(ConfigError):
            benchmark.run(corpus, tmp_path, seeds=seeds, base=base)
    assert not list(tmp_path.glob("*.npz"))


def test_a_folder_that_cannot_be_made_is_one_sentence(corpus, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"vocab.json could not be written"):
        benchmark.run(corpus, tmp_path / "file", seeds=[11], base=BASE)


def test_a_state_left_behind_is_cleared_and_never_listed(finished, corpus):
    out, _ = finished
    left = out / "mlp_seed11.npz.resume.npz"
    left.write_bytes(b"old")
    assert left.name not in checkpoint.load_folder(out)[1]
    benchmark.run(corpus, out, seeds=[11, 29], base=BASE)
    assert not left.exists()
