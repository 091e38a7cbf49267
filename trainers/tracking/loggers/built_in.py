"""The loggers that come with the package; each imports its library when a run begins."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from skillc_gym.errors import ConfigError, needs_extra
from trainers.tracking.loggers import PANELS, PROJECT, kept_id, scalars


class _TensorBoard:
    """Writes a run's numbers to ``<run>/tensorboard``; the page "Custom scalars" shows the method's panels."""

    name: ClassVar[str] = "tensorboard"
    _make: Any
    _writer: Any = None

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        with needs_extra("tensorboard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self._make = partial(SummaryWriter, str(folder / "tensorboard"))

    def log(self, record: Mapping[str, Any]) -> None:
        step = int(record["step"])
        if self._writer is None:
            # A run that goes on from a checkpoint repeats updates that the event file holds already.
            self._writer = self._make(purge_step=step)
            sections = sorted({section.split("/")[0] for section in PANELS.values()})
            self._writer.add_custom_scalars({"Skills": {name: ["Multiline", [f"^{name}/"]] for name in sections}})
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Trackio:
    """One run of trackio per run folder; `trackio show --project skillc-gym` shows them."""

    name: ClassVar[str] = "trackio"
    _run: Any

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        with needs_extra("trackio", "trackio"):
            import trackio
        name = f"{folder.name}-{kept_id(folder, self.name)}"
        with redirect_stdout(sys.stderr):  # standard output belongs to the command's result
            self._run = trackio.init(project=PROJECT, name=name, config=dict(config), resume="allow", embed=False)

    def log(self, record: Mapping[str, Any]) -> None:
        self._run.log(scalars(record), step=int(record["step"]))

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self._run.finish()


class _WeightsAndBiases:
    """One run of W&B per run folder; its variables (``WANDB_MODE``, ``WANDB_PROJECT``, ...) say where to."""

    name: ClassVar[str] = "wandb"
    _run: Any

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        with needs_extra("wandb", "wandb"):
            import wandb
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                name=folder.name,
                id=kept_id(folder, self.name),
                resume="allow",
                dir=str(folder),
                config=dict(config),
                settings=wandb.Settings(console="off", save_code=False),
            )
        except (wandb.errors.Error, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(
                f"report_to=wandb cannot start ({reason}): log in with `wandb login`, or set WANDB_MODE=offline and "
                "send the run later with `wandb sync`."
            ) from error
        # Updates that are repeated after a checkpoint would be dropped if they were W&B's own steps.
        self._run.define_metric("update")
        self._run.define_metric("*", step_metric="update")

    def log(self, record: Mapping[str, Any]) -> None:
        self._run.log({"update": int(record["step"]), **scalars(record)})

    def close(self) -> None:
        self._run.finish()


LOGGERS = (_TensorBoard, _Trackio, _WeightsAndBiases)
