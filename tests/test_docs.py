"""What the documents say is what the code does."""

import json
import re
from pathlib import Path

import pytest

from app import settings
from app.main import PAGES
from wordlm_core import checkpoint

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_lists_every_setting():
    for variable, default, meaning in settings.described():
        assert f"| `{variable}` | `{default}` | {meaning} |" in README


def test_readme_lists_every_page():
    for page in PAGES:
        assert f"| {page.title} | " in README


def test_every_make_target_in_the_documents_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        for target in set(re.findall(r"`?make ([a-z-]+)[`\s]", text)):
            assert f"\n{target}:" in makefile, target


def result_rows() -> list[str]:
    """Return the README's table of results, from benchmark.json."""
    result = json.loads((ROOT / "artifacts/benchmark.json").read_text(encoding="utf-8"))
    names = {"mlp": "MLP", "attention": "attention, one head", "multihead": "attention, four heads"}
    rows = ["| model | parameters | test loss | perplexity |", "|---|---|---|---|"]
    for kind, name in names.items():
        spread = result["aggregate"][kind]
        loss, perplexity = spread["test_loss"], spread["test_perplexity"]
        rows.append(
            f"| {name} | {result['runs'][kind][0]['parameter_count']:,} "
            f"| {loss['mean']:.3f} ± {loss['sample_std']:.3f} "
            f"| {perplexity['mean']:.1f} ± {perplexity['sample_std']:.1f} |"
        )
    return rows


def test_readme_shows_the_measured_results():
    block = README.split("<!-- results -->")[1].split("<!-- /results -->")[0]
    assert block.strip().splitlines() == result_rows()


@pytest.mark.parametrize("name", ["short_window_seed11", "no_positions_seed11"])
def test_readme_shows_the_contrasts(name):
    loss = checkpoint.load(ROOT / f"artifacts/{name}.npz").metadata["metrics"]["test_loss"]
    assert f" {loss:.3f}" in README


@pytest.mark.parametrize("image", re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README))
def test_readme_pictures_are_there(image):
    assert (ROOT / image).stat().st_size > 10_000
