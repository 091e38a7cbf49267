"""Skills on disk: folders with a SKILL.md of YAML front matter and text, read strictly and hashed."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import BinaryIO

from skill_library.controls import CONTROLS, control_library
from skill_library.errors import SkillFileError, UnreadableFileError, brief
from skill_library.front_matter import FrontMatter
from skill_library.skill import EVERY_TYPE, SKILL_FILE, Skill, SkillLibrary

BUILT_IN = ("alfworld", "webshop")
"""Names of the libraries that come with the package."""

LIBRARIES = "skillc_gym.libraries"
"""Group of entry points under which packages name the folders of their skills."""
MAX_SKILLS = 1_000
"""Most skills of one library."""
MAX_FILE_BYTES = 262_144
"""Longest SKILL.md."""

_FENCE = "---"
_MATERIAL = ("assets", "references", "scripts")
"""Folders of a skill that hold no others, by the specification."""


def load_library(name: str | os.PathLike[str]) -> SkillLibrary:
    """Reads a skill library.

    Args:
        name: The name of a built-in library (``"alfworld"``, ``"webshop"``), the path of a folder whose subfolders
            each hold a SKILL.md, or of one skill, or a name that an installed package gives its folder (entry point
            group ``skillc_gym.libraries``). A built-in name wins over a folder of that name (write ``./alfworld``
            for the folder), a folder over a package's name. ``:wrong``, ``:shuffled``, ``:blank`` or ``:general``
            behind it gives the library's controls (:mod:`skill_library.controls`).

    Returns:
        The library; the same object as long as no file changes.

    Raises:
        SkillFileError: The folder does not exist or holds no skill, or one of its files is not a skill.
    """
    if isinstance(name, str) and (control := _control_of(name)):
        return _controlled(load_library(name.removesuffix(f":{control}")), control)
    folder, packaged = library_folder(name)
    try:
        if not folder.is_dir():
            raise _no_library(name)
        files = skill_files(folder)
        for file in () if packaged else files:  # an installer may put links to its store into a package
            check_inside(file, folder)
        stamps = tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except (OSError, RuntimeError) as error:  # links that form a ring are a RuntimeError
        why = getattr(error, "strerror", None) or type(error).__name__
        where = brief(str(getattr(error, "filename", None) or folder))
        raise SkillFileError(f"The skill library {brief(str(folder))} cannot be read ({why}: {where})") from error
    return _load(folder.resolve().name, stamps)


def read_skill(file: Path, beside: Sequence[str] = ()) -> Skill:
    """Reads one SKILL.md: front matter between two ``---`` lines, then the text; texts ``beside`` it follow that.

    The front matter is that of the specification (agentskills.io): ``name`` and ``description``, and under ``metadata``
    what this project adds: ``task_types`` (joined by commas; without them the skill is general), ``minimal`` (what the
    agent reads at that grade) and ``library_name`` (a name that the specification does not allow). ``task_types`` as a
    list and ``minimal`` may stand outside of ``metadata``, as older libraries have them. Line ends are normalised, so
    hashes do not depend on how the file was checked out.

    Raises:
        SkillFileError: Anything of that is missing, of the wrong type, not UTF-8, or beyond its bounds.
    """
    try:
        front, body = _split_front_matter(decode(read_bounded(file, MAX_FILE_BYTES)))
        fields = FrontMatter(front)
        fields.require(("name", "description"))
        ours = fields.texts("metadata", ("task_types", "minimal", "library_name"))
        text = "\n\n".join(filter(None, [body.strip(), *beside]))
        if not text:
            raise ValueError("the text after the front matter is empty; write what the agent should read there")
        name = ours.get("library_name") or fields.string("name")
        minimal = fields.string("minimal") if "minimal" in fields else ours.get("minimal", "").strip()
        return Skill(name, fields.string("description"), _task_types(fields, ours), text, minimal)
    except UnreadableFileError as error:
        raise SkillFileError(str(error)) from error
    except FileNotFoundError as error:
        raise SkillFileError(f"{file} is not there, or is a link that leads nowhere") from error
    except ValueError as error:
        raise SkillFileError(f"{file}: {error}") from error


def _task_types(fields: FrontMatter, ours: Mapping[str, str]) -> tuple[str, ...]:
    if "task_types" in fields:
        return fields.strings("task_types", '[heat], or ["*"] for all')
    if "task_types" not in ours:
        _require_no_misspelling(fields)
    return tuple(filter(None, map(str.strip, ours.get("task_types", "").split(",")))) or (EVERY_TYPE,)


def _require_no_misspelling(fields: FrontMatter) -> None:
    """Refuses near misses of ``metadata`` and ``task_types``, which would make the skill a general one."""
    ours = ("task_types", "metadata")
    for name in fields.names("metadata"):
        if name not in ours and difflib.get_close_matches(name.lower().replace("-", "_"), ours, cutoff=0.85):
            raise ValueError(
                f"expected the field task_types under metadata, got {brief(name)}, which is not read and would leave "
                "the skill to all types; rename it"
            )


def _control_of(name: str) -> str:
    """The control that a name ends in; "" where there is a folder of that very name, or none is meant."""
    stem, colon, control = name.rpartition(":")
    try:
        return control if stem and colon and control in CONTROLS and not Path(name).exists() else ""
    except (OSError, ValueError):  # no path could be named so
        return ""


_controlled = lru_cache(maxsize=32)(control_library)


@lru_cache(maxsize=32)
def _load(name: str, stamps: tuple[tuple[str, int, int], ...]) -> SkillLibrary:
    skills = [read_skill(Path(file)) for file, _, _ in stamps]
    return SkillLibrary(name, tuple(sorted(skills, key=lambda skill: (not skill.is_general, skill.name))))


def skill_files(folder: Path) -> list[Path]:
    """The SKILL.md of a folder, or those of its subfolders, sorted; SkillFileError for none, both, or too many."""
    try:
        single = _file_in(folder)
        below = [place for place in folder.glob("*") if not (single and place.name in _MATERIAL)]
        found = sorted(filter(None, map(_file_in, below)))
    except OSError as error:
        raise SkillFileError(f"{folder} cannot be read ({error.strerror}: {error.filename})") from error
    if single and found:
        raise SkillFileError(
            f"{folder} is a skill and holds others, such as {found[0].parent.name}, which would not be read; move them "
            "beside it, or name the one that you mean"
        )
    files = [single] if single else found
    if not files:
        raise SkillFileError(f"{folder} holds no skill; expected a {SKILL_FILE} in it, or in each of its subfolders")
    if len(files) > MAX_SKILLS:
        raise SkillFileError(f"{folder} holds {len(files):,} skills; a library has at most {MAX_SKILLS:,}")
    return files


def _file_in(folder: Path) -> Path | None:
    """The skill's file in a folder; the specification takes ``skill.md``, too."""
    # A link that leads nowhere counts: it is refused when it is read, where a library without it would be another one.
    return next((file for name in (SKILL_FILE, SKILL_FILE.lower()) if _is_there(file := folder / name)), None)


def _is_there(place: Path) -> bool:
    """As `os.path.lexists`, for which what lies in a folder that may not be entered is not there."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def check_inside(file: Path, folder: Path) -> None:
    """Refuses a file that a link leads to from a stranger's folder; SkillFileError."""
    if not file.resolve().is_relative_to(folder.resolve()):
        raise SkillFileError(f"{file} is a link that leads out of {folder}; put a copy of the file there instead")


def library_folder(name: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Where a library lies: a folder, or the one that an installed package names; and whether it is a package's.

    A package names it as a package (its own folder), a path, or text.
    """
    if isinstance(name, str) and name in BUILT_IN:
        return Path(__file__).parent / name, True
    folder = Path(name)
    try:
        if folder.exists():
            return folder, False
    except (OSError, ValueError):  # longer than a name may be, or with a zero in it: whatever it is, it is no folder
        raise _no_library(name) from None
    for entry in entry_points(group=LIBRARIES):
        if entry.name == name:
            found = entry.load()
            return Path(found.__path__[0] if hasattr(found, "__path__") else found), True
    return folder, False


def _no_library(name: str | os.PathLike[str]) -> SkillFileError:
    near = difflib.get_close_matches(str(name), BUILT_IN, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SkillFileError(
        f"No skill library {brief(str(name))}: expected {' or '.join(map(repr, BUILT_IN))}, or a folder whose "
        f"subfolders each hold a {SKILL_FILE}.{hint}"
    )


def read_bounded(file: Path, max_bytes: int) -> bytes:
    """Reads a whole file of a bounded length, links followed, without waiting for a pipe.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableFileError: It is a folder, a pipe or a device, is longer, or may not be read.
    """
    try:
        with _opened(file) as stream:
            content = stream.read(max_bytes + 1)
    except (FileNotFoundError, UnreadableFileError):
        raise
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise UnreadableFileError(f"{file} cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if len(content) > max_bytes:
        raise UnreadableFileError(f"{file} is longer than the {max_bytes:,} bytes allowed")
    return content


def _opened(file: Path) -> BinaryIO:
    # Opening a pipe would wait for a writer.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError(f"{file} is not a regular file but a folder, a pipe or a device")
    return os.fdopen(descriptor, "rb")


def decode(content: bytes) -> str:
    """A file's text, line ends normalised; ValueError if it is not UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start}); save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _split_front_matter(text: str) -> tuple[str, str]:
    """What stands between the first two lines ``---``, and what follows."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if not fences or fences[0] != 0:
        raise ValueError("no front matter; its first line must be '---', then name and description")
    if len(fences) < 2:
        raise ValueError("the front matter never ends; close it with a line '---'")
    return "\n".join(lines[1 : fences[1]]), "\n".join(lines[fences[1] + 1 :])
