"""Records to trackio, which keeps them on this machine unless its variables name another."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

from skillc_gym.errors import needs_extra
from trainers.tracking.loggers import PROJECT, kept_id, scalars


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


LOGGER = _Trackio
