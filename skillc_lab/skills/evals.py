"""The test cases that a skill brings: ``evals/evals.json``, as the page on evaluation at agentskills.io has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill_library import SkillFileError, read_bounded
from skillc_gym.errors import ConfigError, SkillCError
from trainers.tracking import parse_object

EVALS_FILE = Path("evals") / "evals.json"
"""Where a skill's folder has them."""

_MAX_BYTES, _MAX_EVALS, _MAX_NAME = 262_144, 1_000, 64


@dataclass(frozen=True)
class SkillEval:
    """One test case: tasks of an environment, by one id or by a type's full or short name.

    What success looks like and assertions are for people: an environment cannot grade them.
    """

    name: str
    task_id: str = ""
    task_type: str = ""
    expected_output: str = ""
    assertions: tuple[str, ...] = ()


def read_evals(folder: Path) -> list[SkillEval]:
    """The test cases of a skill, or of every skill of a library; empty if none brings any.

    Raises:
        SkillFileError: A file is not what the page describes, leads out of the folder, or names no task.
    """
    found: list[SkillEval] = []
    for own in sorted({folder / EVALS_FILE, *folder.glob(f"*/{EVALS_FILE}")}):
        if own.exists() or own.is_symlink():
            try:
                if not own.resolve().is_relative_to(folder.resolve()):
                    raise ConfigError(f"it is a link that leads out of {folder}; put a copy there instead")
                found += _evals(parse_object(read_bounded(own, _MAX_BYTES)), own.parent.parent.resolve().name)
            except (SkillCError, OSError, ValueError) as error:
                raise SkillFileError(f"{own}: {error}") from error
    return found


def _evals(values: Mapping[str, Any], skill: str) -> Iterator[SkillEval]:
    if not isinstance(values.get("evals"), list):
        raise ConfigError(f'expected a list under "evals", got {type(values.get("evals")).__name__}')
    if len(values["evals"]) > _MAX_EVALS:
        raise ConfigError(f"it has {len(values['evals']):,} evals; at most {_MAX_EVALS:,} are read")
    seen = set()
    for place, entry in enumerate(values["evals"], 1):
        if not isinstance(entry, dict):
            raise ConfigError(f"eval {place} is no object but {type(entry).__name__}")
        name = f"{skill}-{_id(entry, place)}"
        if name in seen:
            raise ConfigError(f"eval {place} has the id of another one; ids are unique")
        seen.add(name)
        yield _eval(name, entry, place)


def _id(entry: Mapping[str, Any], place: int) -> str:
    """A number or a plain word, since it names a folder."""
    found = entry.get("id", place)
    plain = str(found).replace("-", "").replace("_", "")
    if isinstance(found, bool) or not isinstance(found, int | str) or not (plain.isascii() and plain.isalnum()):
        raise ConfigError(f"eval {place}: id is a number, or letters, digits, - and _; got {str(found)[:40]!r}")
    if len(str(found)) > _MAX_NAME:
        raise ConfigError(f"eval {place}: id is longer than {_MAX_NAME} characters")
    return str(found)


def _eval(name: str, entry: Mapping[str, Any], place: int) -> SkillEval:
    texts = {key: entry.get(key, "") for key in ("task_id", "task_type", "expected_output")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ConfigError(f"eval {place}: {key} is a text; got {type(text).__name__}")
    said = entry.get("assertions", [])
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise ConfigError(f"eval {place}: assertions is a list of texts")
    if bool(texts["task_id"]) == bool(texts["task_type"]):
        raise ConfigError(
            f"eval {place} must name either a task of the environment (task_id) or a type (task_type) beside its "
            "prompt; to leave the file aside, name a panel: --per-type 8"
        )
    return SkillEval(name, **texts, assertions=tuple(said))
