"""Records as TensorBoard scalars in the run's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from skillc_gym.errors import MissingExtraError

__all__ = ["LOGGER", "TensorBoard"]


class TensorBoard:
    """Writes ``<event>/<figure>`` and ``<event>/<figure>/<task type>`` to ``<run>/tensorboard``."""

    name: ClassVar[str] = "tensorboard"
    _writer: Any

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Opens the event file.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError(
                "report_to=tensorboard needs the package tensorboard: pip install tensorboard"
            ) from error
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, record: Mapping[str, Any]) -> None:
        """Writes every number of the record."""
        for name, value in _scalars(str(record["event"]), record):
            self._writer.add_scalar(name, value, int(record["step"]))
        self._writer.flush()

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()


def _scalars(prefix: str, figures: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _scalars(f"{prefix}/{name}", value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
            yield f"{prefix}/{name}", float(value)


LOGGER = TensorBoard
