"""Pages for machines, from those that people read: ``AGENTS.md`` for who works on the code, ``llms.txt`` for readers.

python -m benchmarks.for_machines    # writes AGENTS.md anew; the site's hook makes llms.txt
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
AGENTS = _ROOT / "AGENTS.md"
_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


def opening(readme: str) -> str:
    """README's first paragraph: what the project is."""
    return readme.split("\n\n")[1].replace("**", "").replace("\n", " ")


def agents_page() -> str:
    """How to build and test, where what lies, the rules: out of README, contributing.md and architecture.md."""
    readme, contributing, architecture = (
        (_ROOT / page).read_text(encoding="utf-8")
        for page in ("README.md", "docs/contributing.md", "docs/architecture.md")
    )
    commands = re.findall(r"^```.*?^```", contributing, re.DOTALL | re.MULTILINE)[0]
    parts = [
        "<!-- python -m benchmarks.for_machines -->\n# For agents who work on this code",
        opening(readme),
        "## Build and test",
        commands.replace("```\n", "```bash\n", 1),
        contributing.split(commands)[1].strip().split(". ")[0] + ".",
        "## Where what lies",
        architecture.split("\n\n")[1],
        "\n".join(_rooms(architecture)),
        "`tests` mirrors the packages. [Architecture](docs/architecture.md) says what each holds.",
        "## Rules",
        contributing.split("## Rules\n\n")[1].split("\n\n")[0],
        "More: [contributing](docs/contributing.md), [all pages](docs/index.md).",
    ]
    return "\n\n".join(parts) + "\n"


def _rooms(architecture: str) -> Iterator[str]:
    """A line for every package: its rooms from the bottom up."""
    for package, rows in re.findall(r"^\| in `(\w+)`.*\n\|[-|]+\n((?:\|.*\n)+)", architecture, re.MULTILINE):
        yield f"- `{package}/`: {', '.join(row.split('|')[1].strip() for row in rows.splitlines())}"


def llms_page(readme: str, nav: Sequence[Any], pages: Mapping[str, str]) -> str:
    """The site's map in the form of llmstxt.org: what it is, and each page by section, with its first sentence."""
    lines = ["# skillc-gym", "", f"> {_plain(opening(readme))}"]
    for entry in nav:
        (section, below), *_ = entry.items()
        below = [entry] if isinstance(below, str) else below
        lines += ["", f"## {section}", ""]
        lines += [
            f"- [{title or str(re.findall(r'^# (.*)', pages[at], re.MULTILINE)[0])}]({at}){_said(pages[at])}"
            for title, at in _entries(below)
            if at in pages
        ]
    return "\n".join(lines) + "\n"


def _entries(nav: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Titles, where there are some, and places of a part of the navigation, those of its parts included."""
    for entry in nav:
        for title, below in entry.items() if isinstance(entry, Mapping) else [("", entry)]:
            if isinstance(below, str):
                yield title, below
            else:
                yield from _entries(below)


def _said(text: str) -> str:
    """The first sentence before the first heading below the title, behind a colon."""
    prose = (block for block in text.partition("\n## ")[0].split("\n\n") if re.match(r"[\w*`\[]", block))
    found = re.match(r".*?[.!?](?=\s|$)", _plain(next(prose, "")))
    return f": {found[0]}" if found else ""


def _plain(text: str) -> str:
    return " ".join(_LINK.sub(r"\1", text).replace("**", "").split())


def main() -> int:
    """Writes ``AGENTS.md``."""
    AGENTS.write_text(agents_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
