"""Maps: the cloud around a trajectory, and panels whose axes cannot be compared."""

import dataclasses

import numpy as np
import pytest

from tests import tiny
from tests.core import oracle
from wordlm_core.errors import ConfigError, TextError
from wordlm_core.lens.maps import cloud, jumps, refitted
from wordlm_core.lens.trajectory import trajectory
from wordlm_core.text import FIRST_LEXICAL_ID

WORDS = ("cat", "dog", "the")


@pytest.fixture
def two(checkpoints):
    return [checkpoints["mlp"], checkpoints["multihead"]]


@pytest.mark.parametrize("axes", [2, 3])
def test_the_ends_are_percentiles_of_every_lexical_row(two, axes):
    rows = np.concatenate([c.embedding_at(s)[FIRST_LEXICAL_ID:] for c in two for s in c.steps])
    mean, basis, _ = oracle.pca(rows, axes)
    placed = (rows - mean) @ basis.T
    found = cloud(two, axes=axes)
    np.testing.assert_allclose(found.low, np.percentile(placed, 1, axis=0), atol=1e-6)
    np.testing.assert_allclose(found.high, np.percentile(placed, 99, axis=0), atol=1e-6)


def test_the_sample_is_the_same_words_at_each_step(two):
    found = cloud(two, sample=4)
    lexical = len(tiny.VOCABULARY) - FIRST_LEXICAL_ID
    picked = range(FIRST_LEXICAL_ID, len(tiny.VOCABULARY), lexical // 4)
    words = [tiny.VOCABULARY.itos[i] for i in picked]
    paths = trajectory(two, words).paths
    assert [(entry.index, entry.label) for entry in found.steps] == [
        (i, label) for i, c in enumerate(two) for label in c.steps
    ]
    for entry in found.steps:
        mine = [path for path in paths if path.index == entry.index]
        places = [next(p.coords for p in path.points if p.label == entry.label) for path in mine]
        np.testing.assert_allclose(entry.points, places, atol=1e-9)


def test_a_sample_larger_than_the_vocabulary_is_all_of_it(two):
    assert {len(entry.points) for entry in cloud(two, sample=10_000).steps} == {
        len(tiny.VOCABULARY) - FIRST_LEXICAL_ID
    }


def test_no_checkpoint_is_refused():
    with pytest.raises(ConfigError):
        cloud([])


def test_each_panel_has_the_basis_of_its_own_step(two):
    checkpoint = two[1]
    panels = refitted(checkpoint, WORDS)
    assert [panel.kept[0].label for panel in panels] == list(checkpoint.steps)
    for panel, label in zip(panels, checkpoint.steps, strict=True):
        rows = checkpoint.embedding_at(label)
        mean, basis, _ = oracle.pca(rows[FIRST_LEXICAL_ID:], 2)
        for path in panel.paths:
            row = rows[checkpoint.vocabulary.stoi[path.word]]
            assert path.points[0].coords == pytest.approx(tuple(basis @ (row - mean)), abs=1e-6)


@pytest.mark.parametrize(("asked", "steps"), [(1, 1), (2, 2), (50, 3)])
def test_panels_reach_from_the_first_step_to_the_last(two, asked, steps):
    panels = refitted(two[0], WORDS, panels=asked)
    assert len(panels) == steps
    assert panels[0].kept[0].label == two[0].steps[0]
    if steps > 1:
        assert panels[-1].kept[0].label == two[0].steps[-1]


def test_an_unknown_word_is_refused(two):
    with pytest.raises(TextError):
        refitted(two[0], ["quagga"])


def test_words_that_stand_still_jump_only_on_axes_of_their_own(two):
    """Other words move, so the axes of each step turn; the three words do not."""
    still = two[0]
    first = still.embedding_at(still.steps[0]).astype(np.float64)
    held = [still.vocabulary.stoi[word] for word in WORDS]
    tables = {}
    for label in still.steps:
        table = np.array(still.embedding_at(label), dtype=np.float32)
        table[held] = first[held]
        tables[label] = table
    tables = {f"step_{number}": table for number, table in enumerate(tables.values())}
    moved = dataclasses.replace(still, embeddings=tables)
    common = trajectory([two[1], moved], WORDS)
    found = jumps(refitted(moved, WORDS), common, index=1)
    assert found.common == pytest.approx(0, abs=1e-9)
    assert found.apart > 0.01


def test_jumps_by_hand(two):
    panels, common = refitted(two[0], WORDS), trajectory(two, WORDS)
    steps = range(len(two[0].steps) - 1)
    places = [
        [np.array(path.points[k].coords) for k in range(len(two[0].steps))]
        for path in common.paths
        if path.index == 0
    ]
    expected = np.mean([np.linalg.norm(p[k + 1] - p[k]) for p in places for k in steps])
    assert jumps(panels, common).common == pytest.approx(expected)
    assert jumps(panels[:1], common).apart == 0
