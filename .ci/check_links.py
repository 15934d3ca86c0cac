"""Fail when a Markdown file links to a file or heading that is not there."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
OUTSIDE = ("http://", "https://", "mailto:")


def main() -> int:
    """Check every link that stays inside the repository; return the exit status."""
    dead = [
        f"{file.relative_to(ROOT)}: {link}"
        for file in markdown_files()
        for link in LINK.findall(without_code(file.read_text(encoding="utf-8")))
        if not link.startswith(OUTSIDE) and not alive(file, link)
    ]
    sys.stderr.writelines(f"dead link in {line}\n" for line in dead)
    return 1 if dead else 0


def markdown_files() -> list[Path]:
    """Return the repository's own Markdown files."""
    hidden = {".venv", "runs", "node_modules"}
    return [f for f in sorted(ROOT.rglob("*.md")) if not hidden & set(f.relative_to(ROOT).parts)]


def without_code(text: str) -> str:
    """Return Markdown without its code blocks and spans, which hold no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def alive(file: Path, link: str) -> bool:
    """Tell whether a relative link, with or without a heading, leads somewhere."""
    path, _, anchor = link.partition("#")
    target = (file.parent / path) if path else file
    if not target.exists():
        return False
    if not anchor:
        return True
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}
    return anchor in slugs


if __name__ == "__main__":
    raise SystemExit(main())
