"""Pages of the site that are made while it is built: those outside of ``docs``, notebooks, and the API reference."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from benchmarks.pages import RECORDS
from benchmarks.pictures import DRAWN
from skillc_lab.cli.tables import completed

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE: Mapping[str, str] = {
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
}
"""Files of the repository's root, and the page of the site that each becomes."""
PACKAGES = ("skill_library", "skillc_gym", "trainers", "skillc_lab")
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):(?=<code>)")


def on_config(config: Any) -> Any:
    """Lists the API reference in the navigation."""
    pages = [{room: f"reference/{room}.md"} for room in rooms()]
    config.nav = [*config.nav[:-1], {"API": pages}, config.nav[-1]]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    made = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in OUTSIDE.items()}
    made |= {f"reference/{room}.md": reference_page(room, modules) for room, modules in rooms().items()}
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebook_page(json.loads(path.read_text(encoding="utf-8")))
    made |= {f"records/{path.name}": path.read_text(encoding="utf-8") for path in RECORDS.iterdir()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for name, content in pictures():
        files.append(File.generated(config, f"pictures/{name}.png", content=content))
    return files


def pictures() -> Iterator[tuple[str, bytes]]:
    """Pictures that lie in no folder, drawn from their records."""
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in DRAWN.items():
            if not (ROOT / "docs" / "pictures" / f"{name}.png").exists():
                path = Path(folder) / f"{name.replace('/', '-')}.png"
                draw(path)
                yield name, path.read_bytes()


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lets links between root, records and ``docs`` lead to the site's pages."""
    place = page.file.src_uri
    text = completed(markdown) if place == "commands.md" else markdown
    if place in OUTSIDE.values():
        text = text.replace("](docs/", "](")
    records = "" if place.startswith("records/") else "../" * place.count("/") + "records/"
    text = re.sub(r"\]\((?:\.\./)*benchmarks/records/(?=\w)", f"]({records}", text)
    for name, place in {**OUTSIDE, "CONTRIBUTING.md": "contributing.md"}.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}(?=[)#])", f"]({place}", text)
    return text


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Drops the roles before names in docstrings."""
    return _ROLE.sub("", html) if page.file.src_uri.startswith("reference/") else html


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
