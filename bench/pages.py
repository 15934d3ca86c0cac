"""Server time of one rerun of every page, caches warm and with a text nobody typed before.

Runs the app in this process with Streamlit's own test client, on the committed checkpoints and
a probe that fills the 64-token window. Prints p50 and p95 in milliseconds, and the size of the
largest figure a rerun sends. The numbers are this machine's; the last column is the ratio to the
same client's rerun of an empty script.
"""

import itertools
import statistics
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from app.main import PAGES

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 15
TEXT = " ".join(["the big dog saw a little bird and the cat ran to mom"] * 5)
NAMES = "emmaoliviaavaisabellasophiamiacharlotteamelia"  # any eleven letters of it are a name
MICROGPT = {Path(page.file).stem for page in PAGES if page.group == "microgpt"}
WORDS = ("red", "happy", "ran", "mom", "said", "he", "dog", "big", "little", "ball")


def main() -> None:
    """Print one row a page."""
    empty = statistics.median(times(AppTest.from_string("import streamlit"), lambda app: None))
    print(f"an empty script: {empty:.1f} ms")
    print("page                warm p50    p95   new p50    p95   largest figure   ratio")
    for page in sorted((ROOT / "pages").glob("*.py")):
        app = AppTest.from_file(str(ROOT / "app/main.py"), default_timeout=60).run()
        app.switch_page(f"../pages/{page.name}").run()
        text = NAMES if page.stem in MICROGPT else TEXT
        fill(app, 0, text)
        warm = times(app, lambda app: None)
        counter = itertools.count(1)
        new = times(app, lambda app: fill(app, next(counter), text, run=False))  # noqa: B023
        specs = [len(chart.proto.spec) for chart in app.get("plotly_chart")]
        size = f"{max(specs) / 1000:.0f} kB" if specs else "-"
        print(
            f"{page.stem:18} {percentile(warm, 50):9.0f} {percentile(warm, 95):6.0f} "
            f"{percentile(new, 50):9.0f} {percentile(new, 95):6.0f} {size:>16} "
            f"{percentile(warm, 50) / empty:7.1f}x"
        )


def fill(app: AppTest, number: int, text: str, *, run: bool = True) -> None:
    """Type a text, or words, that no earlier round typed."""
    own = text[number : number + 11] if text is NAMES else f"{text} {WORDS[number % 10]} {number}"
    boxes = {box.key: box for box in app.text_input}
    if "text" in boxes:
        boxes["text"].set_value(own)
    if "words" in boxes:
        boxes["words"].set_value(
            ", ".join(itertools.islice(itertools.cycle(WORDS), number, number + 4))
        )
    if "near" in boxes:
        boxes["near"].set_value(WORDS[number % len(WORDS)])
    if run:
        app.run()


def times(app: AppTest, change) -> list[float]:  # noqa: ANN001 (a callback on the app)
    """Return the milliseconds of each rerun after a change."""
    app.run()
    found = []
    for _ in range(ROUNDS):
        change(app)
        start = time.perf_counter()
        app.run()
        found.append((time.perf_counter() - start) * 1e3)
        if app.exception:
            raise RuntimeError(app.exception[0].message)
    return found


def percentile(values: list[float], share: int) -> float:
    """Return a percentile by linear interpolation."""
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


if __name__ == "__main__":
    main()
