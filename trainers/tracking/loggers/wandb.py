"""Records to Weights & Biases, online or offline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from skillc_gym.errors import ConfigError, needs_extra
from trainers.tracking.loggers import PROJECT, kept_id, scalars


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
        except wandb.errors.UsageError as error:
            raise ConfigError(
                f"report_to=wandb cannot start ({error}): log in with `wandb login`, or set WANDB_MODE=offline and "
                "send the run later with `wandb sync`."
            ) from error
        # Updates that are repeated after a checkpoint would be dropped if they were W&B's own steps.
        self._run.define_metric("update")
        self._run.define_metric("*", step_metric="update")

    def log(self, record: Mapping[str, Any]) -> None:
        self._run.log({"update": int(record["step"]), **scalars(record)})

    def close(self) -> None:
        self._run.finish()


LOGGER = _WeightsAndBiases
