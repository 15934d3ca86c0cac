"""What a page's buttons give is what the page shows."""

import html
import json
import re
import subprocess
import sys

import pytest
from plotly.offline import get_plotlyjs

from app import figures
from app.figures import Figure
from tests.ui.test_pages import GPT_PAGES, LENS_PAGES, ROOT, open_page, specs

STAND_IN = re.compile(r"#0000\d\d")
# Their files hold what the person wrote; the pages' own tests read them.
OWN_SHEETS = ("microgpt_map", "experiments", "check_yourself")
WITH_LINES = [*LENS_PAGES, *(page for page in GPT_PAGES if page.address not in OWN_SHEETS)]
EACH_PAGE = pytest.mark.parametrize("page", WITH_LINES, ids=lambda page: page.title)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d{3,}", text)]


def without_plotly(page: str) -> str:
    """Return an HTML page without the library, which has to be in it once."""
    before, library, after = page.partition(get_plotlyjs())
    assert library
    assert library not in after
    return before + after


@EACH_PAGE
def test_the_notebook_runs_the_code_on_the_page_and_gives_its_numbers(open_folder, downloads, page):
    open_folder(ROOT / "artifacts")
    at = open_page(page.address)
    about, code = json.loads(downloads[f"{page.address}.ipynb"]())["cells"]
    assert page.question in about["source"]
    assert "root of the repository" in about["source"]
    assert code["source"] == at.code[-1].value
    process = [sys.executable, "-c", code["source"]]
    ran = subprocess.run(process, cwd=ROOT, capture_output=True, text=True, check=True)
    shown = numbers(downloads[f"{page.address}.json"]())
    printed = numbers(ran.stdout)
    same = [n for n in printed if any(abs(n - other) < 2e-5 for other in shown)]
    assert len(same) >= 5


@EACH_PAGE
def test_the_notebook_keeps_to_its_format(artifacts, downloads, page):
    open_page(page.address)
    made = json.loads(downloads[f"{page.address}.ipynb"]())
    assert set(made) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert set(made["metadata"]["kernelspec"]) >= {"name", "display_name"}
    about, code = made["cells"]
    assert set(about) == {"cell_type", "id", "metadata", "source"}
    assert set(code) == set(about) | {"execution_count", "outputs"}
    assert (about["cell_type"], code["cell_type"]) == ("markdown", "code")
    assert (code["execution_count"], code["outputs"]) == (None, [])
    assert about["id"] != code["id"]
    for cell in made["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert isinstance(cell["source"], str)
    assert "**What this does not show.**" in about["source"]
    assert "<" not in about["source"]


@EACH_PAGE
def test_the_html_holds_every_figure_once_and_asks_nobody(artifacts, downloads, page):
    at = open_page(page.address)
    made = without_plotly(downloads[f"{page.address}.html"]())
    words = [element.proto.alt for element in at.get("plotly_chart")]
    assert made.count("Plotly.newPlot(") == made.count("<figcaption>") == len(specs(at))
    assert all(html.escape(alt) in made for alt in words)
    assert "http" not in made
    assert "src=" not in made
    assert not STAND_IN.search(made)
    for colour in ("#fdfdfb", "#1b1d27"):
        assert colour in made


def test_a_figure_in_two_places_is_in_the_html_once(artifacts, downloads):
    at = open_page("attention")
    at.selectbox("other").set_value(2).run()
    assert len(specs(at)) == 3
    assert downloads["attention.html"]().count("<figcaption>") == 2


def test_tokens_in_the_html_are_text(artifacts, downloads):
    at = open_page("ablation")
    at.text_input("text").set_value("the <UNK> saw </script><b>zebra").run()
    made = without_plotly(downloads["ablation.html"]())
    assert "UNK" in made
    assert "<UNK>" not in made
    assert "<b>zebra" not in made
    assert made.count("<script>") == made.count("</script>")


def test_titles_and_words_in_the_html_are_text():
    figure = Figure({"data": [{"text": ["<UNK></script>"]}], "layout": {}}, "<UNK> & more")
    made = without_plotly(figures.standalone("<a>", "<b>?", [figure]))
    assert not [markup for markup in ("<UNK>", "<a>", "<b>") if markup in made]
    assert "<figcaption>&lt;UNK&gt; &amp; more</figcaption>" in made
