"""The arrows of the import graph, and what may stand where."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Earlier may not import later.
ORDER = (
    "errors", "typed", "autograd", "scalar_gpt",
    "files", "text", "vocabulary", "corpora", "windows", "items", "models", "checkpoint",
    "packing", "training", "trainer", "gpt_trainer", "trainers", "planning", "lens", "quiz",
    "experiment", "benchmark", "answers", "tables", "console", "options", "commands",
    "commands_gpt", "__main__",
)  # fmt: skip


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Return every dotted name that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


def place(path: Path) -> str:
    return path.relative_to(ROOT / "wordlm_core").parts[0].removesuffix(".py")


def test_every_core_module_has_its_place_in_the_order():
    there = {place(path) for path in modules("wordlm_core")} - {"__init__"}
    assert there == set(ORDER)


def test_the_documents_tell_the_same_order():
    text = " ".join((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split())
    assert f"`{', '.join(ORDER)}`" in text


@pytest.mark.parametrize("path", modules("wordlm_core"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_core_imports_only_what_comes_earlier(path):
    assert not tops(path) & {"streamlit", "plotly", "pandas", "app", "pages"}
    if place(path) == "__init__":
        return
    for name in imports(path):
        if name.startswith("wordlm_core."):
            target = name.split(".")[1]
            assert ORDER.index(target) <= ORDER.index(place(path)), f"{path} imports {name}"


@pytest.mark.parametrize("path", modules("app"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_app_imports_no_page_and_keeps_its_own_borders(path):
    name = path.relative_to(ROOT / "app").as_posix()
    assert "pages" not in tops(path)
    if not name.startswith("figures/"):
        assert "plotly" not in tops(path), "app/figures/ is the only user of plotly"
    if name == "settings.py" or name.startswith(("figures/", "jobs/")):
        assert "streamlit" not in tops(path)
    text = path.read_text(encoding="utf-8")
    if name != "state.py":
        for word in ("session_state", "query_params", "cache_data", "cache_resource"):
            assert f"st.{word}" not in text, f"{word} belongs in app/state.py"


@pytest.mark.parametrize("path", modules("pages"), ids=lambda p: p.name)
def test_a_page_is_thin(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a page's docstring is the question it answers"
    banned = (ast.Try, ast.ClassDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, banned)]
    assert "CAVEAT" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 120
    text = path.read_text(encoding="utf-8")
    assert not [w for w in ("session_state", "query_params", "cache_", "open(") if w in text]


def test_nobody_blinds_the_shape_checks():
    for folder in ("wordlm_core", "app", "pages"):
        for path in modules(folder):
            assert "__future__.annotations" not in imports(path), path


def test_only_training_loads_torch():
    code = (
        "import sys, wordlm_core.checkpoint, wordlm_core.models as m; m.families(); "
        "import wordlm_core.lens.ablation, wordlm_core.lens.sampling; "
        "import wordlm_core.planning, wordlm_core.benchmark, wordlm_core.commands; "
        "raise SystemExit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_one_softmax():
    owners = [
        path
        for folder in ("wordlm_core", "app", "pages")
        for path in modules(folder)
        if any(
            isinstance(node, ast.FunctionDef) and "softmax" in node.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    ]
    # The scalar original has its own, over Values: it is what the arrays are checked against, so
    # it shares nothing with them.
    scalar = ROOT / "wordlm_core/scalar_gpt.py"
    assert owners == [ROOT / "wordlm_core/models/base.py", scalar]
