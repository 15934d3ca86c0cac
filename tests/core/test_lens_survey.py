"""The survey over many windows."""

import numpy as np
import pytest

from tests.core import oracle
from wordlm_core.errors import CheckpointError, ConfigError, CorpusError
from wordlm_core.lens import survey
from wordlm_core.text import UNK_ID
from wordlm_core.windows import Windows, build_windows


@pytest.fixture(scope="module")
def windows(checkpoints) -> Windows:
    loaded = checkpoints["multihead"]
    rng = np.random.default_rng(2)
    documents = [rng.integers(4, len(loaded.vocabulary), n).tolist() for n in (40, 3, 50)]
    return build_windows(documents, loaded.model.config.context_length)


def test_numbers_equal_an_independent_computation(checkpoints, windows):
    loaded = checkpoints["multihead"]
    found = survey.survey(loaded, windows, count=3)
    whole = [w for w in windows.contexts() if (w >= 4).all()]
    picked = [whole[0], whole[(len(whole) - 1) // 2], whole[-1]]
    for row, ids in enumerate(picked):
        before = oracle.forward(loaded.model, ids)
        assert np.allclose(found.attention[row], before.attention[0, :, -1], atol=1e-7)
        for position in range(len(ids)):
            changed = ids.copy()
            changed[position] = UNK_ID
            after = oracle.forward(loaded.model, changed)
            expected = oracle.kl(before.logits[-1], after.logits[-1])
            assert found.kl[row, position] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_only_whole_windows_are_taken(checkpoints, windows):
    found = survey.survey(checkpoints["mlp"], windows, count=5)
    assert found.attention is None
    assert found.kl.shape == (5, windows.context_length)
    everything = survey.survey(checkpoints["mlp"], windows, count=1000)
    assert len(everything.kl) == sum((w >= 4).all() for w in windows.contexts())
    none = build_windows([[4, 5]], windows.context_length)
    with pytest.raises(CorpusError, match="no whole window"):
        survey.survey(checkpoints["mlp"], none)
    with pytest.raises(ConfigError, match="1 or more"):
        survey.survey(checkpoints["mlp"], windows, count=0)


def test_saved_surveys_come_back_with_numbers_alone(checkpoints, windows, tmp_path):
    surveys = {
        name: survey.survey(checkpoints[name], windows, count=4) for name in ("mlp", "multihead")
    }
    survey.save(surveys, {"name": "tiny"}, tmp_path / "survey.npz")
    again = survey.load(tmp_path / "survey.npz")
    assert list(again) == ["mlp", "multihead"]
    for name, of in surveys.items():
        assert np.array_equal(again[name].kl, of.kl)
        assert (again[name].kind, again[name].sha256) == (of.kind, of.sha256)
    assert np.allclose(again["multihead"].attention, surveys["multihead"].attention, atol=1e-3)
    with np.load(tmp_path / "survey.npz") as stored:
        kinds = {stored[name].dtype.kind for name in stored.files if name != "metadata_json"}
    assert kinds == {"f"}  # no ids, no text


def test_agreement_of_a_case_by_hand():
    attention = np.array([[[0.1, 0.2, 0.7]], [[0.7, 0.2, 0.1]]], dtype=np.float32)
    kl = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=np.float32)
    found = survey.agreement(survey.Survey(kl, attention, "attention", ""))
    assert found.correlations.tolist() == [1.0, -1.0]
    assert found.median == 0
    assert found.top_matches == 0.5
    assert found.last_first == 1
    with pytest.raises(CheckpointError, match="no attention"):
        survey.agreement(survey.Survey(kl, None, "mlp", ""))


def test_a_file_of_something_else_is_refused(checkpoints, tmp_path):
    from wordlm_core import checkpoint  # noqa: PLC0415

    checkpoint.save(checkpoints["mlp"], tmp_path / "x.npz")
    with pytest.raises(CheckpointError, match="holds no surveys"):
        survey.load(tmp_path / "x.npz")
