"""Pages of the site that are made while it is built.

Those outside of ``docs``, notebooks, the API reference behind one entry of the navigation, and the home page's first
screen.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from benchmarks.measuring import RECORDS
from benchmarks.pictures import DRAWN
from skillc_lab.board import read_results, write_badge
from skillc_lab.cli.help import completed

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE: Mapping[str, str] = {
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
"""Files of the repository's root, and the page of the site that each becomes."""
PACKAGES = ("skill_library", "skillc_gym", "trainers", "skillc_lab")
_START = re.compile(r"<!-- readme:start -->.*?<!-- readme:end -->", re.DOTALL)
_WITH_INTERVAL = re.compile(r"[-+]?[\d.]+ \[[-+]?[\d.]+, [-+]?[\d.]+\]")
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):(?=<code>)")


BOOST: Mapping[str, float] = {"reference/": 0.1, "changes.md": 0.2, "records/": 0.5}
"""How far pages that begin so stand back in the search; others count 1."""


def on_config(config: Any) -> Any:
    """Lists the API in the section of the reference, folded."""
    pages = [{room: f"reference/{room}.md"} for room in rooms()]
    (section,) = (each["Reference"] for each in config.nav if "Reference" in each)
    section.append({"API": pages})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    made = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in OUTSIDE.items()}
    made |= {f"reference/{room}.md": reference_page(room, modules) for room, modules in rooms().items()}
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebook_page(json.loads(path.read_text(encoding="utf-8")))
    for path in filter(Path.is_file, RECORDS.rglob("*")):
        made[f"records/{path.relative_to(RECORDS).as_posix()}"] = path.read_text(encoding="utf-8")
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for place, content in pictures():
        files.append(File.generated(config, place, content=content))
    return files


def pictures() -> Iterator[tuple[str, bytes]]:
    """Pictures that lie in no folder: those drawn from records, and badges of the board's results."""
    drawn: dict[str, Callable[[Path], object]] = {f"pictures/{name}.png": draw for name, draw in DRAWN.items()}
    for result in read_results(RECORDS / "board"):
        drawn[f"records/board/{result.file_name}.svg"] = partial(write_badge, result=result)
    with tempfile.TemporaryDirectory() as folder:
        for place, draw in drawn.items():
            if not any((ROOT / kept / place).exists() for kept in ("docs", "benchmarks")):
                path = Path(folder) / place.replace("/", "-")
                draw(path)
                yield place, path.read_bytes()


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fills in what is made, and lets links between root, records and ``docs`` lead to the site's pages."""
    place = page.file.src_uri
    text = completed(markdown) if place == "commands.md" else markdown
    if place == "index.md":
        text = _START.sub(lambda _: first_screen((ROOT / "README.md").read_text(encoding="utf-8")), text)
        page.meta["hide"] = ["navigation", "toc"]
    for begin, boost in BOOST.items():
        if place.startswith(begin):
            page.meta["search"] = {"boost": boost}
    return _linked(text, place)


def _linked(text: str, place: str) -> str:
    """A page's text with links as they are within the site."""
    if place in OUTSIDE.values():
        text = text.replace("](docs/", "](")
    records = "" if place.startswith("records/") else "../" * place.count("/") + "records/"
    text = re.sub(r"\]\((?:\.\./)*benchmarks/records/(?=\w)", f"]({records}", text)
    for name, page in {**OUTSIDE, "CONTRIBUTING.md": "contributing.md"}.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}(?=[)#])", f"]({page}", text)
    return text


def first_screen(readme: str) -> str:
    """What README says before its first heading below the title; a telephone gets the picture in one column."""
    text = readme.partition("\n## ")[0].partition("\n")[2].strip().replace("](docs/", "](")
    return re.sub(r"^(!.*)hero\.png\)$", r"\1hero.png){ .wide }\1hero_stacked.png){ .phone }", text, flags=re.MULTILINE)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Drops roles before names; a figure and its interval stay on one line, and tables of records can be sorted."""
    place = page.file.src_uri
    if place.startswith("reference/"):
        return _ROLE.sub("", html)
    html = _WITH_INTERVAL.sub(lambda found: found[0].replace(" ", "&nbsp;"), html)
    return f'<div class="sortable-tables">{html}</div>' if place.startswith("records/") else html


def rooms() -> dict[str, list[str]]:
    """The packages and their folders, each with the modules that lie in it."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not path.name.startswith("__"):
                found.setdefault(".".join(path.relative_to(ROOT).parent.parts), []).append(module)
    return dict(sorted(found.items()))


def reference_page(room: str, modules: list[str]) -> str:
    """A page with the docstrings of a room's modules."""
    return "\n\n".join([f"# {room}", *(f"::: {module}" for module in modules)])


def notebook_page(notebook: Mapping[str, Any]) -> str:
    """A notebook as Markdown, with what its cells printed when it was saved."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell))


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        yield source
        return
    yield f"```python\n{source}\n```"
    printed = "".join("".join(output.get("text", ())) for output in cell["outputs"])
    if printed:
        yield f"```text\n{printed}```"
