"""Downloads hold what the command line prints for the same text."""

import csv
import io
import json

import pytest

from app import exports
from tests.ui.conftest import CONTEXT, KINDS, printed_by
from wordlm_core import checkpoint
from wordlm_core.lens import ablation, attention

TEXT = "the zebra saw the dog"


@pytest.fixture(params=KINDS)
def loaded(request, folder):
    return checkpoint.load(folder / f"{request.param}_seed11.npz")


def test_ablation_json_is_the_command_lines(loaded):
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    result = ablation.ablate(loaded.model, loaded.vocabulary, probe)
    printed = printed_by("ablate", str(loaded.path), "--text", TEXT)
    assert json.loads(exports.ablation_json(result, probe)) == printed


def test_attention_json_is_the_command_lines(folder):
    loaded = checkpoint.load(folder / "multihead_seed11.npz")
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    result = attention.attend(loaded.model, probe)
    printed = printed_by("attend", str(loaded.path), "--text", TEXT)
    assert json.loads(exports.attention_json(result, probe)) == printed


def test_attention_csv_has_a_row_a_cell_below_the_mask(folder):
    loaded = checkpoint.load(folder / "multihead_seed11.npz")
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    result = attention.attend(loaded.model, probe)
    rows = list(csv.DictReader(io.StringIO(exports.attention_csv(result))))
    assert len(rows) == 4 * (6 * 7 // 2)
    for row in rows:
        head, query, key = (int(row[name]) for name in ("head", "query", "key"))
        assert float(row["attention"]) == pytest.approx(result.weights[0, head, query, key])
        assert row["key_token"] == result.tokens[key]


def test_a_model_without_attention_leaves_the_column_empty(folder):
    loaded = checkpoint.load(folder / "mlp_seed11.npz")
    probe = loaded.vocabulary.probe(TEXT, CONTEXT)
    result = ablation.ablate(loaded.model, loaded.vocabulary, probe)
    rows = list(csv.DictReader(io.StringIO(exports.ablation_csv(result))))
    assert {row["mean_attention"] for row in rows} == {""}


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        *(('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'), ("=1+1", "'=1+1")),
        *(("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("@SUM(1)", "'@SUM(1)")),
        *(
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("-1-1", "'-1-1"),
            ("-", "'-"),
            ("- one", "'- one"),
            ("a\rb\nc", "a\rb\nc"),
        ),
        *(("-0.5", "-0.5"), ("+3", "+3"), ("-1,5%", "-1,5%"), ("-.5", "-.5"), ("a=1", "a=1")),
        *((-0.5, "-0.5"), (-3, "-3"), (None, ""), (False, "False"), ("", "")),
    ],
)
def test_what_a_spreadsheet_would_compute_is_text_where_people_type(cell, kept):
    """Tokens of a model, in the other columns, stay as they are."""
    made = exports.csv_text(("token", "answer"), [(cell, cell)], typed=("answer",))
    (row,) = csv.DictReader(io.StringIO(made, newline=""))
    assert row == {"token": "" if cell is None else str(cell), "answer": kept}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("0.25", ["> 0\\.25"]),
        ("10) ten", ["> 10\\) ten"]),
        ("a\nb\n\nc", ["> a\\", "> b", "> ", "> c"]),
        ("a\rb\r\nc", ["> a\\", "> b\\", "> c"]),
        ("  in\n- x", ["> &nbsp;&nbsp;in\\", "> \\- x"]),
        ("*a* <b> [c](d) `e` # | $ ~ & \\", None),
        (" \n ", ["> *nothing yet*"]),
    ],
)
def test_a_quotation_is_drawn_letter_for_letter(text, lines):
    signs = "".join(f"\\{c}" if c in "\\`*_[]<>#$~|&" else c for c in text)
    assert exports.markdown_quote(text) == (lines or [f"> {signs}"])


def test_json_holds_no_nan():
    with pytest.raises(ValueError, match="JSON"):
        exports.json_text({"loss": float("nan")})
