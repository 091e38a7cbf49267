"""``skillc board``: show results on fixed panels, and add yours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.board import (
    PANELS,
    board_tables,
    check_distinct,
    evaluation_result,
    read_result,
    read_results,
    renewed_page,
    write_badge,
)
from skillc_lab.cli.command import Command, refuse_options, say
from trainers.tracking import json_line, make_folder

_RESULTS, _PAGE = Path("benchmarks/records/board"), Path("docs/board.md")


@dataclass(frozen=True)
class BoardOptions:
    """Show results on fixed panels, with skills and without, and add yours.

    show: the panels with the commands that play them, and all results.
    add: take in an evaluation's folder or a result's file. Panel, rates and intervals are computed again from the
    outcomes, and a file that says otherwise is refused. Then the tables of the page and a badge are made.

    Example: skillc board add evaluations/mine --name "Qwen2.5-7B, GRPO"
    """

    what: Annotated[Literal["show", "add"], tyro.conf.Positional] = "show"
    """show or add."""
    result: Annotated[Path | None, tyro.conf.Positional] = None
    """The folder of an evaluation, or the file of a result."""
    name: str | None = None
    """What the row is called; the model's name, or what a file says, if none."""
    revision: str | None = None
    """Commit or version of the model; what the evaluation or the file says if none."""
    results: Path | None = None
    """Folder of all results; benchmarks/records/board where that is, else board."""
    page: Path | None = None
    """The page; docs/board.md for the results of benchmarks/records/board, else board.md among the results."""


def _run(options: BoardOptions) -> int:
    folder = options.results or (_RESULTS if _RESULTS.is_dir() else Path("board"))
    if options.what == "add":
        return _add(options, folder)
    if options.result is not None:
        raise ConfigError(f"skillc board show takes no file; to take {options.result} in: skillc board add")
    refuse_options(options, ("name", "revision", "page"), "skillc board show", ", or take skillc board add")
    if options.results is not None and not folder.is_dir():
        raise ConfigError(f"{folder} is no folder of results; skillc board add makes one")
    for name, table in board_tables(read_results(folder)).items():
        panel = PANELS[name]
        say(f"{panel.title}: {panel.tasks} tasks, {panel.steps} steps; {panel.data}\n  {panel.command()}\n")
        say(f"{table.text()}\n")
    return 0


def _add(options: BoardOptions, folder: Path) -> int:
    if options.result is None:
        raise ConfigError("skillc board add takes the folder of an evaluation, or the file of a result; name it")
    if options.result.is_dir():
        result = evaluation_result(options.result, options.name, options.revision)
    else:
        result = read_result(options.result, options.name, options.revision)
    target, content = folder / f"{result.file_name}.json", json_line(result.to_json())
    if target.exists() and target.read_bytes() != content:
        raise ConfigError(f"{target} is another result of that name; give a new --name, or delete it")
    others = [each for each in read_results(folder) if each.file_name != result.file_name]
    check_distinct(result, others)
    results = [*others, result]
    of_project = _PAGE.is_file() and folder.resolve() == _RESULTS.resolve()  # else its page would lose its rows
    page = options.page or (_PAGE if of_project else folder / "board.md")
    if page.is_dir():
        raise ConfigError(f"{page} is a folder; name a file by --page.")
    try:
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{page} is no text in UTF-8 ({error}); name another file by --page.") from error
    made = renewed_page(text, results, Path(os.path.relpath(folder, page.parent)).as_posix())
    make_folder(folder)
    replace_file(target, [content])
    write_badge(target.with_suffix(".svg"), result)
    replace_file(page, [made.encode()])
    counts = result.report.overall
    say(
        f"{result.about['name']} on {PANELS[result.panel].title}: {100 * counts.sr_without:.1f} % without skills, "
        f"{100 * counts.sr_with:.1f} % with them. Rates and intervals agree with the outcomes."
    )
    if not result.version:
        say("The model's revision is unknown; --revision names it.")
    say(f"Result: {target}; page: {page}; badge: {target.with_suffix('.svg')}")
    return 0


COMMAND = Command(BoardOptions, _run)
