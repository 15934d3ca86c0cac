"""The entry of the app: the table of pages, navigation, and one place that shows errors.

Start it with `python -m streamlit run app/main.py` from the root.
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # Streamlit puts only this script's own folder there.
    sys.path.insert(0, str(ROOT))

from app import layout, person, state  # noqa: E402 (after the path is set)
from app.layout import Kind  # noqa: E402
from wordlm_core.errors import WordLMError  # noqa: E402


@dataclass(frozen=True)
class Page:
    """A page of the app: the order of `PAGES` is the order of the menu."""

    group: str
    title: str
    address: str
    file: str
    icon: str
    question: str
    kind: Kind = ""

    @property
    def on_text(self) -> bool:
        """Return whether the page opens a checkpoint of any family."""
        return self.group == "Explore" and bool(self.address)


WALK = "microgpt"
PAGES = (
    Page(
        "Explore",
        "Overview",
        "",
        "10_overview.py",
        ":material/space_dashboard:",
        "Which model predicts better, by how much, at what cost?",
    ),
    Page(
        "Explore",
        "Attention",
        "attention",
        "20_attention.py",
        ":material/grid_on:",
        "Where does each position look?",
        "descriptive",
    ),
    Page(
        "Explore",
        "Ablation",
        "ablation",
        "30_ablation.py",
        ":material/content_cut:",
        "What did the prediction depend on?",
        "causal (intervention)",
    ),
    Page(
        "Explore",
        "Embeddings",
        "embeddings",
        "40_embeddings.py",
        ":material/scatter_plot:",
        "How did the words move?",
        "descriptive",
    ),
    Page(
        "Explore",
        "Neighbours",
        "neighbours",
        "50_neighbours.py",
        ":material/hub:",
        "What is near what?",
        "descriptive",
    ),
    Page(
        "Explore",
        "Context",
        "context",
        "60_context.py",
        ":material/compare_arrows:",
        "Same word, different context?",
        "descriptive",
    ),
    Page(
        "Explore",
        "Generate",
        "generate",
        "70_generate.py",
        ":material/casino:",
        "What does temperature do?",
        "descriptive",
    ),
    Page(
        "Explore",
        "Logit view",
        "logits",
        "80_logits.py",
        ":material/swap_vert:",
        "Which next words do heads and neurons push?",
        "descriptive",
    ),
    Page(
        "microgpt",
        "microgpt map",
        "microgpt_map",
        "81_microgpt_map.py",
        ":material/map:",
        "How does a GPT work? A walk in seven sections",
    ),
    Page(
        "microgpt",
        "Tokens",
        "tokens",
        "82_tokens.py",
        ":material/abc:",
        "How does a name become numbers?",
        "descriptive",
    ),
    Page(
        "microgpt",
        "Autograd",
        "autograd",
        "83_autograd.py",
        ":material/account_tree:",
        "A tiny scalar Value: what does backward do?",
        "descriptive",
    ),
    Page(
        "microgpt",
        "Parameters",
        "parameters",
        "84_parameters.py",
        ":material/apps:",
        "Which numbers does the model consist of?",
        "descriptive",
    ),
    Page(
        "microgpt",
        "One position",
        "one_position",
        "85_one_position.py",
        ":material/steps:",
        "What happens at one position of a name?",
        "descriptive",
    ),
    Page(
        "microgpt",
        "Training",
        "training",
        "86_training.py",
        ":material/fitness_center:",
        "What does one training step change?",
        "causal (intervention)",
    ),
    Page(
        "microgpt",
        "Experiments",
        "experiments",
        "87_experiments.py",
        ":material/experiment:",
        "You change one thing: what happens to the loss, and what to the names?",
        "causal (intervention)",
    ),
    Page(
        "microgpt",
        "Check yourself",
        "check_yourself",
        "88_check_yourself.py",
        ":material/quiz:",
        "What can you compute, predict and explain?",
        "descriptive",
    ),
    Page(
        "Train",
        "New run",
        "new_run",
        "90_new_run.py",
        ":material/add_circle:",
        "What is trained, how long does it take, and how good can it get?",
    ),
    Page(
        "Train",
        "Runs",
        "runs",
        "91_runs.py",
        ":material/monitoring:",
        "Which runs wait, train or are done, and how does their loss go?",
    ),
)


@st.fragment
def show(page: Page) -> None:
    """Run a page's file; what it refuses is said in one sentence.

    As a fragment, so that a keystroke or a slider reruns this page alone and not the menu
    around it. A `st.Page` runs once a full run only, hence the page's code is run here.
    """
    state.begin_page(page.title, page.question)
    place = layout.header(page.title, page.question, page.kind) if page.address else None
    try:
        exec(_code(page.file), ModuleType(Path(page.file).stem).__dict__)
    except WordLMError as error:
        layout.refuse(error)
    finally:
        _onward(page)
        if place is not None:
            layout.share(place, state.link())


def _onward(page: Page) -> None:
    """Link to what comes after a page of the walk through microgpt, and to other views of it."""
    walk = [each for each in PAGES if each.group == WALK]
    if page not in walk:
        return
    following = walk[walk.index(page) + 1 :][:1]
    links = [(each.file, f"Next: {each.title} · {each.question}", each.icon) for each in following]
    if page is not walk[0]:
        links.append((walk[0].file, "Back to the map: your sentence afterwards", walk[0].icon))
    layout.onward(links, [(each.file, each.title, each.icon) for each in PAGES if each.on_text])


@lru_cache(maxsize=len(PAGES))
def _code(file: str) -> CodeType:
    path = ROOT / "pages" / file
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def _menu() -> dict[str, list[st.Page]]:
    menu: dict[str, list[st.Page]] = {}
    for page in PAGES:
        entry = st.Page(
            ROOT / "pages" / page.file,
            title=page.title,
            icon=page.icon,
            url_path=page.address or None,
            default=not page.address,
        )
        menu.setdefault(page.group, []).append(entry)
    return menu


def run() -> None:
    """Draw the page that the address asks for."""
    st.set_page_config("WordLM Lab", str(Path(__file__).parent / "icon.svg"), "wide", 230)
    chosen = st.navigation(_menu())
    layout.shell()
    if person.exchanged():
        return
    show(next(page for page in PAGES if page.title == chosen.title))


if __name__ == "__main__":
    run()
