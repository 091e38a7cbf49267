"""The revision that a record is of: one, and clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.tracking.run_folder import provenance

__all__ = ["one_revision", "require_clean"]


def require_clean(*, allow_changes: bool = False) -> None:
    """Refuses to record from a working tree with changes.

    Args:
        allow_changes: Record nevertheless; the record says so.

    Raises:
        ConfigError: Files that git knows have changed, or there is no revision at all.
    """
    found = provenance()["git"]
    if allow_changes or (found is not None and not found["changed"]):
        return
    why = "the working tree has changes" if found else "this is no git checkout"
    raise ConfigError(
        f"A record is of one clean revision, and {why}. Commit or stash them, or mark the record with --allow-changes"
    )


def one_revision(revisions: Iterable[Mapping[str, Any] | None], *, allow_changes: bool = False) -> dict[str, Any]:
    """The revision that all runs were made on.

    Args:
        revisions: ``revision`` and ``changed`` of every run, as provenance has them.
        allow_changes: Accept several revisions and changed trees.

    Returns:
        ``revisions`` (all of them) and ``clean``.

    Raises:
        ConfigError: There are several, or one with changes.
    """
    found = [entry or {"revision": "unknown", "changed": True} for entry in revisions]
    names = sorted({str(entry["revision"]) for entry in found})
    clean = len(names) == 1 and not any(entry["changed"] for entry in found)
    if not clean and not allow_changes:
        raise ConfigError(
            f"The runs were made on {len(names)} revisions ({', '.join(name[:12] for name in names)}), or with changes "
            "in the working tree; a record is of one clean revision. Delete those runs and run them again, or mark "
            "the record with --allow-changes"
        )
    return {"revisions": names, "clean": clean}
