"""Trajectory: one basis, a fixed sign, and an honest share of variance."""

import dataclasses

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.lens.trajectory import fit, project, trajectory
from wordlm_core.text import FIRST_LEXICAL_ID, SPECIALS
from wordlm_core.vocabulary import WordVocabulary

WORDS = ["cat", "DOG ", "cat"]


@pytest.fixture
def two(checkpoints) -> list[Checkpoint]:
    return [checkpoints["mlp"], checkpoints["multihead"]]


def tables(chosen: list[Checkpoint]) -> list[np.ndarray]:
    return [c.embedding_at(label)[FIRST_LEXICAL_ID:] for c in chosen for label in c.steps]


def with_tables(checkpoint: Checkpoint, **embeddings: np.ndarray) -> Checkpoint:
    return dataclasses.replace(checkpoint, embeddings=embeddings)


@pytest.mark.parametrize("axes", [2, 3])
def test_basis_and_shares_equal_the_oracle(two, axes):
    result = trajectory(two, WORDS, axes=axes)
    mean, basis, explained = oracle.pca(np.concatenate(tables(two)), axes)
    np.testing.assert_allclose(result.mean, mean, atol=1e-9)
    np.testing.assert_allclose(result.basis, basis, atol=1e-7)
    np.testing.assert_allclose(result.explained, explained, rtol=1e-9)


def test_paths_are_coordinates_on_that_basis(two, vocabulary):
    result = trajectory(two, WORDS)
    assert [(p.checkpoint, p.index, p.word) for p in result.paths] == [
        (c.name, i, word) for i, c in enumerate(two) for word in ("cat", "dog", "cat")
    ]
    for path in result.paths:
        assert [p.label for p in path.points] == list(tiny.STEPS)
        assert [p.step for p in path.points] == [0, 10, 20]
        for point in path.points:
            row = two[path.index].embedding_at(point.label)[vocabulary.stoi[path.word]]
            expected = [float(axis @ (row - result.mean)) for axis in result.basis]
            assert point.coords == pytest.approx(expected)


def test_share_kept_is_of_each_tables_own_variance(two):
    result = trajectory(two, ["cat"])
    assert [(k.checkpoint, k.index, k.label, k.step) for k in result.kept] == [
        (c.name, i, label, step)
        for i, c in enumerate(two)
        for label, step in zip(tiny.STEPS, (0, 10, 20), strict=True)
    ]
    for kept, table in zip(result.kept, tables(two), strict=True):
        centred = table.astype(np.float64) - table.mean(axis=0)
        expected = ((centred @ result.basis.T) ** 2).sum() / (centred**2).sum()
        assert kept.share == pytest.approx(expected, rel=1e-9)


def test_axes_are_orthonormal_with_the_largest_loading_positive(checkpoints):
    for chosen in ([c] for c in checkpoints.values()):
        basis = trajectory(chosen, ["cat"], axes=3).basis
        np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
        assert all(axis[abs(axis).argmax()] > 0 for axis in basis)


def early_steps(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """Return a copy of the stored tables but the selected one, which is the model's own."""
    return {label: checkpoint.embeddings[label].copy() for label in tiny.STEPS[:2]}


def test_mirrored_embeddings_give_the_same_axes(checkpoints):
    """The sign comes from the rule, not from the solver."""
    source = checkpoints["mlp"]
    plain = early_steps(source)
    mirrored = {label: -table for label, table in plain.items()}
    a, b = (trajectory([with_tables(source, **t)], ["cat"]) for t in (plain, mirrored))
    np.testing.assert_allclose(a.basis, b.basis, atol=1e-9)
    np.testing.assert_allclose(a.mean, -b.mean, atol=1e-9)


def test_order_of_checkpoints_moves_no_point(two):
    there, back = trajectory(two, ["cat"]), trajectory(two[::-1], ["cat"])
    np.testing.assert_allclose(there.basis, back.basis, atol=1e-9)
    for path, same in zip(there.paths, back.paths[::-1], strict=True):
        assert path.checkpoint == same.checkpoint
        for point, twin in zip(path.points, same.points, strict=True):
            assert point.coords == pytest.approx(twin.coords, abs=1e-9)


def test_a_word_that_stands_still_stays_still_on_the_map(checkpoints, vocabulary):
    """Separately fitted panels would move it; one basis must not."""
    source, cat = checkpoints["attention"], vocabulary.stoi["cat"]
    stored = early_steps(source)
    stored["step_10"][cat] = stored["step_0"][cat]
    (path,) = trajectory([with_tables(source, **stored)], ["cat"]).paths
    first, then = path.points
    assert first.coords == then.coords


def test_specials_do_not_count(checkpoints):
    source = checkpoints["attention"]
    plain, wild = early_steps(source), early_steps(source)
    for table in wild.values():
        table[:FIRST_LEXICAL_ID] = 1e3
    a, b = (trajectory([with_tables(source, **t)], ["cat"]) for t in (plain, wild))
    np.testing.assert_array_equal(a.basis, b.basis)
    np.testing.assert_array_equal(a.mean, b.mean)


def test_half_precision_steps_are_read_in_full(checkpoints):
    source = checkpoints["attention"]
    half = {k: v.astype(np.float16) for k, v in source.embeddings.items()}
    a, b = (trajectory([c], ["cat"]) for c in (source, with_tables(source, **half)))
    np.testing.assert_allclose(a.basis, b.basis, atol=1e-2)
    assert b.basis.dtype == np.float64


def test_equal_rows_have_no_variance_to_explain(checkpoints):
    source = checkpoints["attention"]
    same = np.ones_like(source.embeddings["step_0"])
    result = trajectory([with_tables(source, step_0=same)], ["cat"])
    np.testing.assert_array_equal(result.explained, [0, 0])
    assert [kept.share for kept in result.kept] == [0.0]
    assert np.isfinite(result.basis).all()


def test_one_fit_serves_any_words(two):
    basis = fit(two)
    for words in (["cat"], ["dog", "bird"]):
        result = trajectory(two, words)
        assert project(basis, two, words) == result.paths
        np.testing.assert_array_equal(basis.basis, result.basis)
        np.testing.assert_array_equal(basis.mean, result.mean)
        np.testing.assert_array_equal(basis.explained, result.explained)
        assert basis.kept == result.kept


def test_checkpoints_of_one_name_and_different_widths_are_told_apart(checkpoints):
    wide = tiny.make_checkpoint("mlp", d_model=6)
    with pytest.raises(ConfigError, match="share no map: mlp has 6, mlp has 8"):
        trajectory([wide, checkpoints["mlp"]], ["cat"])
    with pytest.raises(ConfigError, match="axes belong to embeddings of width 8"):
        project(fit([checkpoints["mlp"]]), [wide], ["cat"])


def test_what_cannot_be_mapped(checkpoints, two):
    wide = tiny.make_checkpoint("mlp", d_model=6)
    with pytest.raises(ConfigError, match="share no map: mlp has 6, attention has 8"):
        trajectory([wide, checkpoints["attention"]], ["cat"])
    with pytest.raises(ConfigError, match="at least one checkpoint"):
        trajectory([], ["cat"])
    with pytest.raises(TextError, match="'zebra' is not in this vocabulary"):
        trajectory(two, ["cat", "zebra"])
    with pytest.raises(ConfigError, match="at most d_model = 1"):
        trajectory([tiny.make_checkpoint("mlp", d_model=1)], ["cat"])
    with pytest.raises(ConfigError, match="not 4"):
        trajectory(two, ["cat"], axes=4)
    with pytest.raises(CheckpointError, match="mlp stores no embeddings"):
        trajectory([with_tables(two[0])], ["cat"])
    bare = dataclasses.replace(two[0], vocabulary=WordVocabulary(SPECIALS, {}))
    with pytest.raises(CheckpointError, match="holds no words"):
        trajectory([bare], [])
