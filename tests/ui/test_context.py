"""Context: one lookup row, two contextual rows, whichever occurrence is picked."""

import re

import numpy as np
import pytest

from app import exports, figures
from tests.ui.conftest import CONTEXT, VOCABULARY, make
from tests.ui.test_figures import unpack
from tests.ui.test_pages import button_group, html, open_page, said, specs
from wordlm_core.lens import contextual

FIRST, SECOND = "the cat saw the dog and the bird", "a bird saw the cat"


def context_page(first=FIRST, second=SECOND, **parameters: str):
    parameters = {"checkpoint": "multihead_seed11"} | parameters
    return open_page("context", text=first, second=second, **parameters)


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


def compared(position_a: int, position_b: int) -> contextual.ContextPair:
    loaded = make("multihead")
    a, b = (loaded.vocabulary.probe(text, CONTEXT) for text in (FIRST, SECOND))
    return contextual.compare(loaded.model, VOCABULARY, a, position_a, b, position_b)


def test_the_ledger_says_what_the_lens_computes(artifacts):
    at = context_page()
    pair = compared(8, 2)
    text = plain(at)
    assert "One lookup row for bird" in text
    assert f"cosine {pair.contextual_cosine:.2f}, distance {pair.contextual_l2:.2f}" in text
    width = make("multihead").model.config.d_model
    assert f"1.0000.00identical, all {width} numbers" in text
    assert f"{pair.residual_cosine:.3f}{pair.position_l2:.2f}" in text
    assert pair.attention_share is not None
    assert figures.percent(pair.attention_share) in text


@pytest.mark.parametrize(("choice", "position"), [(0, 1), (3, 4), (4, 7)])
def test_any_occurrence_of_a_repeated_word_can_be_picked(artifacts, choice, position):
    at = context_page()
    button_group(at, "word_a", choice)
    pair = compared(position, 4)
    assert "One lookup row for the" in plain(at)
    assert f"distance {pair.contextual_l2:.2f}" in plain(at)
    assert len(at.button_group("word_b").options) == 1


def test_the_same_text_twice_differs_in_nothing(artifacts):
    at = context_page(second=FIRST)
    text = plain(at)
    assert "cosine 1.00, distance 0.00" in text
    assert "there is no difference to share out" in text


@pytest.mark.parametrize("second", ["", "  ", "\n"])
def test_an_empty_second_sentence_gives_a_hint_and_no_figure(artifacts, second):
    at = context_page()
    at.text_input("second").set_value(second).run()
    assert "second sentence is empty" in said(at)
    assert not specs(at)


def test_texts_without_a_common_word_are_told_so(artifacts):
    at = context_page(second="zebra quagga")
    assert "share no word" in said(at)
    assert not specs(at)


def test_unknown_and_cut_off_words_of_the_second_are_named(artifacts):
    at = context_page(second="the zebra " + "cat " * 20)
    assert "Second: The model reads 16 tokens" in plain(at)


def test_the_stripes_and_lists_are_the_lens_numbers():
    pair = compared(4, 4)
    stripes = figures.context_rows(pair).spec["data"][0]
    drawn = unpack(stripes["z"])
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[1:], pair.rows.astype("<f4"))
    lists = figures.neighbour_lists(pair, "multihead").spec["data"]
    expected = (pair.lookup_neighbours, pair.neighbours_a, pair.neighbours_b)
    for trace, items in zip(lists, expected, strict=True):
        assert trace["x"] == [item.cosine for item in items]
    known = {item.id for item in pair.lookup_neighbours}
    muted = [colour == figures.MUTED for colour in lists[1]["marker"]["color"]]
    assert muted == [item.id in known for item in pair.neighbours_a]


def test_the_csv_lists_every_neighbour():
    rows = exports.context_csv(compared(4, 4)).splitlines()
    assert rows[0] == "row,rank,token,cosine"
    assert len(rows) == 1 + 3 * 8
