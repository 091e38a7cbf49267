"""The run folder: configuration, versions, metrics, transcripts, checkpoints; the revision that a record is of."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, write_jsonl
from skillc_gym.errors import CheckpointError, ConfigError
from skillc_gym.files import open_new, replace_file, storing
from trainers.config import TrainConfig
from trainers.tracking.checkpoints import META, Checkpoints, fault_of
from trainers.tracking.files import (
    damage,
    iter_records,
    json_line,
    read_object,
    recover_folder,
    remove,
    seal,
    sha256_of_file,
    storing_weights,
    swap_folder,
    write_json,
)

_PACKAGES = ("skillc-gym", "gymnasium", "numpy", "torch", "transformers", "trl", "accelerate", "peft", "vllm")
POLICY_FILES = "skillc_files.json"
"""Hashes of a trained policy's files, beside them."""
_MARKS = ("metrics.jsonl", "transcripts")
"""What tells a run's folder: the transcripts' is there before anything is written that another file could lie in."""
_WRITTEN = ("config.json", "versions.json", "tasks.json", "policy", "best")


class RunFolder:
    """Reads and writes one run's files; every file is usable whenever the run stops.

    Layout: ``config.json``, ``versions.json``, ``tasks.json`` (held-back panel, hash of the training tasks),
    ``metrics.jsonl``, ``transcripts/*.jsonl``, ``checkpoints/step-000010/``, and ``policy/`` in the end, before it
    ``best/`` if that is asked for. The folder is made when first written to. Checkpoints are written through ``saved``.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metrics_path = self.path / "metrics.jsonl"
        self.checkpoints_path = self.path / "checkpoints"
        self.transcripts_path = self.path / "transcripts"
        self.policy_path, self.best_path = self.path / "policy", self.path / "best"
        self._partial_policy = self.path / ".partial-policy"
        self.saved = Checkpoints(self.checkpoints_path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from writing to the folder (ConfigError); the lock goes with the process."""
        try:
            import fcntl
        except ImportError:  # not on Windows; there, nothing keeps two runs apart
            yield
            return
        make_folder(self.path)
        lock = self.path / ".lock"
        with storing(lock):
            descriptor = open_new(lock, append=True)
        with os.fdopen(descriptor, "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(
                    f"Another process is at work in {self.path}; wait for it or stop it, or name another folder."
                ) from error
            yield

    def prepare(self, config: TrainConfig, tasks: Mapping[str, Any]) -> None:
        """Makes the folder and writes down what the run is."""
        self.saved.prepare()
        with storing(self.transcripts_path):
            self.transcripts_path.mkdir(exist_ok=True)
            remove(self._partial_policy)
            recover_folder(self.policy_path)
            recover_folder(self.best_path)
        write_json(self.path / "config.json", config.to_json())
        write_json(self.path / "tasks.json", tasks)

    def write_versions(self, checkpoint: Path | None = None) -> None:
        """Writes down what trains the run from here on, and whether that is another revision than trained it so far."""
        made = provenance()
        before = checkpoint.parent.parent / "versions.json" if checkpoint else None
        begun = _revision_in(before) if before and before.is_file() else made["git"]
        write_json(self.path / "versions.json", {**made, "git": continued_revision(begun, made["git"])})

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one line to the metrics; numbers that are not finite become null."""
        with storing(self.metrics_path), os.fdopen(open_new(self.metrics_path, append=True), "wb") as file:
            file.write(json_line(record))
            file.flush()
            os.fsync(file.fileno())  # a checkpoint that outlives a loss of power finds its updates here

    def metrics(self) -> list[dict[str, Any]]:
        """All records of the metrics; a damaged line is passed over, those after it count."""
        if not self.metrics_path.is_file():
            return []
        return list(iter_records(self.metrics_path))

    def best_validation(self) -> dict[str, Any]:
        """The validation with most success without the skill, the first of equals; there must have been one."""
        validations = [record for record in self.metrics() if record["event"] == "validation"]
        return max(validations, key=lambda record: float(record["overall_without"]))

    def truncate(self, step: int | None) -> None:
        """Drops what a resumed run will do again: all after the step, or all; later checkpoints are set aside."""
        self.saved.set_aside(after=step)
        for path in self.transcripts_path.glob("*.jsonl"):
            found = re.fullmatch(r"(?:train|validation)-(\d{1,12})", path.stem)
            if found and (step is None or int(found[1]) > step):
                remove(path)
        kept = [record for record in self.metrics() if step is not None and record["step"] <= step]
        replace_file(self.metrics_path, map(json_line, kept))

    def write_transcripts(self, name: str, episodes: Iterable[Episode]) -> None:
        """Writes episodes as ``transcripts/<name>.jsonl``, prompts with the exact injected text included."""
        write_jsonl(self.transcripts_path / f"{name}.jsonl", episodes)

    @property
    def loadable(self) -> Path | None:
        """What can be taken as a model: the trained policy, else the newest checkpoint, unless of adapters alone."""
        if self.policy_path.is_dir():
            return self.policy_path
        return next((path for path in reversed(self.saved.complete()) if (path / "config.json").is_file()), None)

    @contextmanager
    def new_policy(self, *, best: bool = False, commit: bool = True) -> Iterator[Path]:
        """A folder for a policy, ``policy/`` or ``best/`` when whole; of several processes, one may ``commit`` it."""
        final = self.best_path if best else self.policy_path
        if commit:
            with storing(self._partial_policy):
                remove(self._partial_policy)
        with storing_weights(final):
            yield self._partial_policy
        if commit:
            digests = seal(self._partial_policy)
            write_json(listed := self._partial_policy / POLICY_FILES, digests)
            # The same policy once more would take away what was put beside it, such as its card.
            if damage(final, {**digests, POLICY_FILES: sha256_of_file(listed)}):
                swap_folder(self._partial_policy, final)
            remove(self._partial_policy)

    def to_resume(self, config: TrainConfig, digest: str = "") -> Path | None:
        """The checkpoint that the configuration asks for, by default the newest whole one, or an error.

        Without a checkpoint, it refuses to write over what was trained with other settings, or on tasks of another
        ``digest``.
        """
        if (self.path / "report.json").exists() and not self.metrics_path.exists():
            raise ConfigError(f"{self.path} holds an evaluation; name another folder with run=.")
        self._refuse_others()
        if config.resume == "never":
            if self.metrics():
                raise ConfigError(
                    f"{self.path} already holds a run; go on with resume=auto, choose another folder with run=, "
                    "or delete it."
                )
            return None
        if config.resume == "auto":
            newest = self.saved.newest()
            if newest is None:
                self._require_same(config, digest)
            return newest
        path = Path(config.resume)
        if not (path / META).is_file():
            raise CheckpointError(f"resume={config.resume!r} is no complete checkpoint: it has no {META}.")
        if fault := fault_of(path):
            raise CheckpointError(f"resume={config.resume!r} is damaged: {fault}.")
        if path.resolve().parent != self.checkpoints_path.resolve():
            self._require_same(config, digest)
        return path

    def _refuse_others(self) -> None:
        """Refuses (ConfigError) a folder with files of something else under a run's names."""
        require_own_folder(self.path, _MARKS, _WRITTEN, "run=")
        events = {record.get("event") for record in self.metrics()}
        foreign = None in events
        if not self._has_config() and not events & {"validation", "train"}:  # a run's is there before both
            foreign |= self.metrics_path.is_file() and bool(self.metrics_path.read_bytes().strip())
            foreign |= self.transcripts_path.is_dir() and any(self.transcripts_path.iterdir())
        if foreign:
            held = ", ".join(path.name for path in (self.metrics_path, self.transcripts_path) if path.exists())
            raise ConfigError(f"{self.path} holds something else ({held}); name another folder (run=).")

    def _has_config(self) -> bool:
        try:
            return {"model", "method", "env"} <= read_object(self.path / "config.json").keys()
        except (OSError, ValueError):
            return False

    def _require_same(self, config: TrainConfig, digest: str) -> None:
        """Refuses to write over what another configuration has trained, and whose checkpoint is not gone on from."""
        if not self.policy_path.exists() and not any(record.get("event") == "train" for record in self.metrics()):
            return
        try:
            differing = config.differences(read_object(self.path / "config.json"))
        except (OSError, ValueError, TypeError):
            differing = {"config.json": ("there", None)}
        with suppress(OSError, ValueError):
            trained_on = read_object(self.path / "tasks.json").get("digest")
            differing = differing if digest in ("", trained_on) else {**differing, "data": (trained_on, digest)}
        if differing:
            raise ConfigError(
                f"{self.path} holds another run ({', '.join(differing)}) and goes on from no checkpoint of it; name "
                "another folder with run=, or delete it."
            )


def provenance() -> dict[str, Any]:
    """Versions of what computes, its machine, and the project's git revision where there is one."""
    # Installed into somebody's repository, this is no file of it.
    revision, versions = _git("ls-files", "--error-unmatch", __file__) and _git("rev-parse", "HEAD"), {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "packages": versions,
        "python": platform.python_version(),
        "machine": _machine(),
        "git": {"revision": revision, "changed": _git("status", "--porcelain", "-uno") != ""} if revision else None,
    }


def _machine() -> str:
    """System, processor and the vector instructions that torch uses, where it is loaded: what rounding depends on."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", info.read_text() if info.is_file() else "", re.MULTILINE)
    torch = sys.modules.get("torch")
    used = [str(torch.backends.cpu.get_cpu_capability())] if torch else []
    return ", ".join([f"{platform.system()} {platform.machine()}", *(named.groups() if named else ()), *used])


def git_says(place: Path, *words: str) -> str | None:
    """What git answers in a folder; None without git, or where it refuses."""
    try:
        done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


_git = partial(git_says, Path(__file__).parent)


def make_folder(path: Path) -> None:
    """Makes a folder for results; a ConfigError if something is in its place, or it may not be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The folder {path} cannot be made ({error.strerror}); choose another one.") from error


def require_own_folder(folder: Path, marks: Iterable[str], written: Iterable[str], option: str) -> None:
    """Refuses (ConfigError) a folder with files of names that are ``written`` (globs), and none of our ``marks``."""
    if any((folder / name).exists() for name in marks):
        return
    if held := sorted({path.name for pattern in written for path in folder.glob(pattern)}):
        raise ConfigError(
            f"{folder} holds something else, such as a model ({', '.join(held[:3])}); name another folder ({option})."
        )


def require_clean(*, allow_changes: bool = False) -> None:
    """Refuses (ConfigError) to record from a working tree with changes, unless they are allowed."""
    found = provenance()["git"]
    if allow_changes or (found is not None and not found["changed"]):
        return
    why = "the working tree has changes" if found else "this is no git checkout"
    raise ConfigError(
        f"A record is of one clean revision, and {why}. Commit or stash them, or mark the record with --allow-changes"
    )


def _revision_in(versions: Path) -> dict[str, Any]:
    try:
        return dict(read_object(versions).get("git") or {})
    except (TypeError, ValueError):  # damaged: nobody knows any more
        return {}


def continued_revision(begun: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The revision of what ``begun`` on one and went on ``now``; of two it is of none, and never clean."""
    if (begun or {}) == (now or {}):
        return None if now is None else dict(now)
    return {**(now or {"revision": "unknown"}), "changed": True, "begun": (begun or {}).get("revision", "unknown")}


def one_revision(revisions: Iterable[Mapping[str, Any] | None], *, allow_changes: bool = False) -> dict[str, Any]:
    """The ``revisions`` that runs were made on, and whether that is one and ``clean``; else refused, unless allowed."""
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
