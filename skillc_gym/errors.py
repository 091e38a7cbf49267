"""Exceptions of the suite: each also inherits the standard type that a caller would expect."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from skill_library.errors import SkillCError, SkillFileError, brief

__all__ = [
    "CatalogError",
    "CheckpointError",
    "ConfigError",
    "DeadEndError",
    "EngineError",
    "InvalidActionError",
    "InvalidGameError",
    "MemberError",
    "MissingDataError",
    "MissingExtraError",
    "ServerError",
    "SkillCError",
    "SkillFileError",
    "StorageError",
    "TranscriptError",
    "UnknownNameError",
    "missing_extra",
    "needs_extra",
    "require_name",
    "unknown_name",
]


class MissingDataError(SkillCError, FileNotFoundError):
    """Data that should be on disk is not there; the message names the place and the remedy."""


class InvalidGameError(SkillCError, ValueError):
    """A game file or an archive that cannot be read as an ALFWorld game."""


class DeadEndError(InvalidGameError):
    """Nothing wins a game from this state, whatever is done."""


class CatalogError(SkillCError, ValueError):
    """Product files or a built catalogue that cannot be read."""


class EngineError(SkillCError, RuntimeError):
    """The engine behind an environment failed or ended; ``reset`` starts it again."""


class MemberError(SkillCError, RuntimeError):
    """Members of a vector raised in a step in which others were stepped.

    ``raised`` has what each member raised, by its number; ``result`` is what the step returned for the others.
    """

    def __init__(self, message: str, raised: Mapping[int, Exception] | None = None, result: Any = None) -> None:
        super().__init__(message)
        self.raised, self.result = dict(raised or {}), result


class InvalidActionError(SkillCError, TypeError):
    """An action of the wrong type: a mistake of the program, where an inadmissible text is the agent's."""


class ServerError(SkillCError, RuntimeError):
    """The server of a language model refuses, or gives no answer."""


class UnknownNameError(SkillCError, ValueError):
    """A name (split, task id, task type, preset, ...) that does not exist."""


class ConfigError(SkillCError, ValueError):
    """Arguments that contradict each other or lie outside their range."""


class CheckpointError(SkillCError, ValueError):
    """A checkpoint that does not belong to this run, or is incomplete."""


class StorageError(SkillCError, OSError):
    """Something that cannot be written: the disk is full, or the folder is read-only."""


class TranscriptError(SkillCError, ValueError):
    """A file of recorded episodes that cannot be read back."""


class MissingExtraError(SkillCError, ImportError):
    """An optional dependency is not installed, or not as it is needed; the message names the extra."""


def unknown_name(kind: str, name: object, known: Iterable[str], remedy: str = "") -> UnknownNameError:
    """Builds the error for a name that does not exist, with the nearest names that do.

    Args:
        kind: What the name stands for ("split", "task id", "preset").
        name: What was asked for.
        known: The names that exist; long lists are cut in the message.
        remedy: A closing sentence saying what to do.
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    expected = f"expected one of: {shown}" if shown else "there is none"
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return UnknownNameError(f"Unknown {kind} {brief(name)}; {expected}.{hint}{' ' + remedy if remedy else ''}")


def require_name(kind: str, name: str, known: Collection[str], remedy: str = "") -> str:
    """Returns a name that is among those known; UnknownNameError, as of :func:`unknown_name`, for any other."""
    if not isinstance(name, Hashable) or name not in known:  # a list of settings may stand where a name should
        raise unknown_name(kind, name, known, remedy)
    return name


def missing_extra(package: str, extra: str, why: str = "is not installed") -> MissingExtraError:
    """Builds the error for an optional package that is not there; names the command for both kinds of install."""
    return MissingExtraError(
        f"{package} {why}; it comes with the extra {extra!r}: pip install 'skillc-gym[{extra}]', or in a "
        f"checkout pip install -e '.[{extra}]'."
    )


@contextmanager
def needs_extra(package: str, extra: str) -> Iterator[None]:
    """Surrounds imports of an optional package, which end in :func:`missing_extra` where one fails.

    The error says why: the package may be there in another version, or without what it needs.
    """
    try:
        yield
    except ImportError as error:
        raise missing_extra(package, extra, f"cannot be imported ({error})") from error
