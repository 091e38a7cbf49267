"""Records as TensorBoard scalars in the run's folder."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from skillc_gym.errors import needs_extra
from trainers.tracking.loggers import PANELS, scalars


class _TensorBoard:
    """Writes a run's numbers to ``<run>/tensorboard``; the page "Custom scalars" shows the method's panels."""

    name: ClassVar[str] = "tensorboard"

    def __init__(self) -> None:
        self._folder = Path()
        self._writer: Any = None

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        # The first record opens the event file.
        with needs_extra("tensorboard", "tensorboard"):
            importlib.import_module("torch.utils.tensorboard")
        self._folder = folder / "tensorboard"

    def log(self, record: Mapping[str, Any]) -> None:
        step = int(record["step"])
        if self._writer is None:
            self._open(step)
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # A run that goes on from a checkpoint repeats updates that the event file holds already.
        self._writer = SummaryWriter(str(self._folder), purge_step=step)
        sections = sorted({section.split("/")[0] for section in PANELS.values()})
        self._writer.add_custom_scalars({"Skills": {name: ["Multiline", [f"^{name}/"]] for name in sections}})


LOGGER = _TensorBoard
