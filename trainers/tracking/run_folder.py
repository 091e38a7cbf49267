"""The run folder: configuration, versions, metrics, transcripts, checkpoints."""

from __future__ import annotations

import json
import math
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode, write_jsonl
from skillc_gym.errors import CheckpointError, ConfigError
from trainers.config import TrainConfig

__all__ = ["RunFolder", "make_folder", "provenance"]

_PACKAGES = ("skillc-gym", "gymnasium", "numpy", "torch", "transformers", "trl", "accelerate", "peft", "vllm")
_META = "run.json"


class RunFolder:
    """Reads and writes one run's files; every file is usable whenever the run stops.

    Layout: ``config.json``, ``versions.json``, ``tasks.json`` (held-back panel, hash of the training tasks),
    ``metrics.jsonl``, ``transcripts/*.jsonl``, ``checkpoints/step-000010/``, and ``policy/``, the trained policy, once
    the run has finished.

    Args:
        path: The folder; made when first written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metrics_path = self.path / "metrics.jsonl"
        self.checkpoints_path = self.path / "checkpoints"
        self.transcripts_path = self.path / "transcripts"
        self.policy_path = self.path / "policy"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from writing to the run; the lock goes with the process, however that ends.

        Raises:
            ConfigError: Another process has it.
        """
        try:
            import fcntl
        except ImportError:  # not on Windows; there, nothing keeps two runs apart
            yield
            return
        with (self.path / ".lock").open("w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ConfigError(
                    f"Another process trains in {self.path}; wait for it or stop it, or name another folder (run=...)."
                ) from error
            yield

    def prepare(self, config: TrainConfig, tasks: Mapping[str, Any]) -> None:
        """Makes the folder and writes down what the run is."""
        self.checkpoints_path.mkdir(parents=True, exist_ok=True)
        self.transcripts_path.mkdir(exist_ok=True)
        for left_over in self.checkpoints_path.glob(".partial-*"):
            shutil.rmtree(left_over)
        write_json(self.path / "config.json", config.to_json())
        write_json(self.path / "versions.json", provenance())
        write_json(self.path / "tasks.json", tasks)

    # Metrics -----------------------------------------------------------------------------------------------------

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one line to the metrics; numbers that are not finite become null."""
        with self.metrics_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(record)) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """All complete lines of the metrics."""
        if not self.metrics_path.exists():
            return []
        records = []
        for line in self.metrics_path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                break  # a line cut off by a kill; nothing after it counts
        return records

    def truncate(self, step: int | None) -> None:
        """Drops what a resumed run will measure again: records after the step, or all of them."""
        kept = [record for record in self.metrics() if step is not None and record["step"] <= step]
        _replace_text(self.metrics_path, "".join(json.dumps(record) + "\n" for record in kept))

    # Transcripts -------------------------------------------------------------------------------------------------

    def write_transcripts(self, name: str, episodes: Iterable[Episode]) -> Path:
        """Writes episodes as ``transcripts/<name>.jsonl``, prompts with the exact injected text included."""
        path = self.transcripts_path / f"{name}.jsonl"
        write_jsonl(path, list(episodes))
        return path

    # Checkpoints -------------------------------------------------------------------------------------------------

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(path for path in self.checkpoints_path.glob("step-*") if (path / _META).is_file())

    def partial(self, step: int) -> Path:
        """Where a checkpoint is written before :meth:`commit` gives it its name."""
        path = self.checkpoints_path / f".partial-{step:06d}"
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def commit(self, partial: Path, step: int, meta: Mapping[str, Any], keep: int) -> Path:
        """Completes a checkpoint by renaming it, then removes old ones."""
        write_json(partial / _META, meta)
        final = self.checkpoints_path / f"step-{step:06d}"
        if final.exists():
            shutil.rmtree(final)
        partial.rename(final)
        for old in self.checkpoints()[:-keep]:
            shutil.rmtree(old)
        return final

    def to_resume(self, config: TrainConfig) -> Path | None:
        """Finds the checkpoint that the configuration asks for.

        Raises:
            CheckpointError: If a named checkpoint is missing or incomplete.
            ConfigError: With ``resume=never`` in a folder that already holds a run.
        """
        if config.resume == "never":
            if self.metrics():
                raise ConfigError(
                    f"{self.path} already holds a run; go on with resume=auto, choose another folder with run=, "
                    "or delete it."
                )
            return None
        if config.resume == "auto":
            found = self.checkpoints()
            return found[-1] if found else None
        path = Path(config.resume)
        if not (path / _META).is_file():
            raise CheckpointError(f"resume={config.resume!r} is no complete checkpoint: it has no {_META}.")
        return path


def read_checkpoint(path: Path, config: TrainConfig, task_digest: str) -> dict[str, Any]:
    """Reads what a checkpoint says of its run, and refuses one of another run.

    Returns:
        Its ``step``, ``method`` (the method's state) and ``counters``.

    Raises:
        CheckpointError: If the configuration or the tasks differ; the message names the differences.
    """
    try:
        meta: dict[str, Any] = json.loads((path / _META).read_text(encoding="utf-8"))
        differences = config.differences(meta["config"])
        step, digest = int(meta["step"]), meta["task_digest"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is damaged ({error!r}); delete it and resume from an earlier one.") from error
    if differences:
        listed = "; ".join(f"{name} was {theirs!r}, is {mine!r}" for name, (theirs, mine) in differences.items())
        raise CheckpointError(
            f"The checkpoint {path} belongs to another configuration: {listed}. Use the same settings, or start a new "
            "run with run=another/folder."
        )
    if digest != task_digest:
        raise CheckpointError(
            f"The checkpoint {path} (step {step}) was trained on other tasks than data={config.data!r} holds now. "
            "Point data= at the games it was trained on, or start a new run with run=another/folder."
        )
    return meta


def provenance() -> dict[str, Any]:
    """Versions of what computes, and the project's git revision where there is one."""
    return {
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "git": _git_revision(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*words: str) -> str | None:
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _git_revision() -> dict[str, Any] | None:
    revision = _git("rev-parse", "HEAD")
    return {"revision": revision, "changed": bool(_git("status", "--porcelain", "-uno"))} if revision else None


def make_folder(path: Path) -> None:
    """Makes a folder for results.

    Raises:
        ConfigError: If there is something else in its place, or it may not be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The folder {path} cannot be made ({error.strerror}); choose another one.") from error


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes a JSON file whole or not at all."""
    _replace_text(path, json.dumps(_finite(value), indent=1) + "\n")


def _replace_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
