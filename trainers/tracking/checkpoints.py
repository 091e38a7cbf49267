"""A run's checkpoints: written whole, hashed, and checked before one is taken up again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from skill_library.errors import SkillCError
from skillc_gym.errors import CheckpointError
from skillc_gym.files import storing
from trainers.config import TrainConfig
from trainers.tracking.files import (
    MAX_OBJECT_BYTES,
    NO_WEIGHTS,
    damage,
    read_object,
    recover_folder,
    remove,
    seal,
    swap_folder,
    write_json,
)

META = "run.json"
"""What a checkpoint says of its run, and the hashes of its files; without it a folder is no checkpoint."""


class Checkpoints:
    """The folder ``checkpoints/``, made by :meth:`prepare`: ``step-000010/`` with a ``run.json`` in each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: dict[Path, str] = {}
        """What :meth:`newest` passed over, and why."""

    def prepare(self) -> None:
        """Makes the folder, and clears away what an interruption left half written."""
        with storing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for left_over in self.path.glob(".partial-*"):
                remove(left_over)
            for left_over in self.path.glob(".old-step-*"):
                recover_folder(self.path / left_over.name.removeprefix(".old-"))

    def complete(self) -> list[Path]:
        """Complete checkpoints, oldest first; whether they are whole is not looked at."""
        found = [path for path in self.path.glob("step-*") if _number(path) >= 0 and (path / META).is_file()]
        return sorted(found, key=_number)

    def newest(self) -> Path | None:
        """The newest checkpoint that is whole, None if there are none at all."""
        found = self.complete()
        for path in reversed(found):
            fault = fault_of(path)
            if fault is None:
                return path
            self.damaged[path] = fault
        if found:
            told = "; ".join(f"{path}: {fault}" for path, fault in self.damaged.items())
            raise CheckpointError(
                f"All checkpoints are damaged ({told}). Delete {self.path} and metrics.jsonl to start anew, or name "
                "another folder with run=."
            )
        return None

    def partial(self, step: int, *, make: bool = True) -> Path:
        """Where a checkpoint is written before :meth:`commit` gives it its name; of several processes, one makes it."""
        path = self.path / f".partial-{step:06d}"
        if make:
            with storing(path):
                remove(path)
                path.mkdir(parents=True)
        return path

    def commit(self, partial: Path, step: int, meta: Mapping[str, Any], keep: int) -> Path:
        """Completes a checkpoint: syncs and hashes its files, renames it, removes old ones."""
        write_json(partial / META, {**meta, "files": seal(partial)})
        if (size := (partial / META).stat().st_size) > MAX_OBJECT_BYTES:
            raise CheckpointError(
                f"The run's state has {size:,} bytes, and at most {MAX_OBJECT_BYTES:,} are read again; let its "
                "memory keep less. The last checkpoint stays."
            )
        final = self.path / f"step-{step:06d}"
        swap_folder(partial, final)
        for old in [path for path in self.complete() if _number(path) <= step][:-keep]:
            remove(old)
        return final

    def set_aside(self, *, after: int | None) -> None:
        """Renames the checkpoints after a step, or all of them, so that the run does not meet them again."""
        for path in self.complete():
            if after is None or _number(path) > after:
                aside = path.with_name(f"aside-{path.name}")
                with storing(aside):
                    remove(aside)
                    path.rename(aside)


def _number(path: Path) -> int:
    found = re.fullmatch(r"step-(\d{1,12})", path.name)
    return int(found[1]) if found else -1


def read_meta(path: Path) -> dict[str, Any]:
    """A checkpoint's ``run.json``; a CheckpointError if it is not what a run writes."""
    try:
        meta = read_object(path / META)
        for name, kind in (("step", int), ("config", dict), ("task_digest", str), ("method", dict)):
            if type(meta.get(name)) is not kind:
                raise ValueError(f"{name} must be of type {kind.__name__}")
    except (SkillCError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); delete it and resume from an earlier one.") from error
    return meta


def _differ(kept: str, own: str) -> bool:
    """Whether hashes, one or several, differ where both are known: earlier versions did not hash all weights."""
    pairs = zip_longest(kept.split(), own.split())
    return any(NO_WEIGHTS not in pair and pair[0] != pair[1] for pair in pairs)


_READ = {
    "library_sha256": "The skill library has changed since {path} was written; put its texts back",
    "tasks_sha256": "The tasks have the names, but not the content, that they had when {path} was written; name the "
    "same data= and options of the environment",
    "chat_sha256": "The wording of chat= has changed since {path} was written; put it back",
    "words_sha256": "The tokenizer or its chat template has changed since {path} was written; put it back",
    "encoder_sha256": "The weights of the sentence encoder have changed since {path} was written; put them back",
    "starts_sha256": "The weights of model= or reference_model= have changed since {path} was written, which does not "
    "hold them; put them back",
}


def read_checkpoint(path: Path, config: TrainConfig, task_digest: str, read: Mapping[str, str]) -> dict[str, Any]:
    """What a checkpoint says of its run, ``step``, ``method`` and ``counters`` in it; refuses one of another run.

    ``read`` are hashes of what the run reads beside its settings. A CheckpointError names what differs in
    configuration, tasks, skills or weights, or says that it is damaged.
    """
    meta = read_meta(path)
    differences = config.differences(meta["config"])
    if differences:
        listed = "; ".join(f"{name} was {theirs!r}, is {mine!r}" for name, (theirs, mine) in differences.items())
        raise CheckpointError(
            f"The checkpoint {path} belongs to another configuration: {listed}. Use the same settings; or train on "
            f"from its policy with others, model={_weights_of(path)} run=another/folder; or start a new run with "
            "run=another/folder."
        )
    if meta["task_digest"] != task_digest:
        raise CheckpointError(
            f"The checkpoint {path} (step {meta['step']}) was trained on other tasks than data={config.data!r} holds "
            "now. Point data= at the games it was trained on, or start a new run with run=another/folder."
        )
    for name, own in read.items():
        if _differ(meta.get(name, own), own):  # earlier versions did not keep all of them
            raise CheckpointError(f"{_READ[name].format(path=path)}, or start a new run with run=another/folder.")
    return meta


def _weights_of(path: Path) -> Path:
    """The policy of a checkpoint's run; the checkpoint, while that is not at its end."""
    policy = path.parent.parent / "policy"
    return policy if policy.is_dir() or not (path / "config.json").is_file() else path


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Says in words (CheckpointError) that a state cannot be taken up: it may have been changed since."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        if isinstance(error, SkillCError):
            raise
        raise CheckpointError(
            f"{path} is damaged (its state cannot be taken up: {error!r}); delete it and resume from an earlier one."
        ) from error


def fault_of(path: Path) -> str | None:
    """What is wrong with a checkpoint; those of versions that kept no hashes are taken as they are."""
    try:
        meta = read_meta(path)
    except CheckpointError as error:
        return str(error)
    return damage(path, meta["files"]) if "files" in meta else None
