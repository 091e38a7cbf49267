"""What cloning keeps on its way, so that the same command goes on after an interruption to the same weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    import torch

CLONING_FILE = "cloning.pt"
"""In the folder of a policy whose cloning is not done yet."""


@dataclass(frozen=True)
class ProgressFile:
    """The file in which an unfinished cloning lies.

    Attributes:
        path: The file.
        key: Names everything that decides the weights: what was begun under another is not gone on with.
        every: Optimiser steps between two writings.
    """

    path: Path
    key: str
    every: int = 100

    def check(self) -> None:
        """Refuses what was begun otherwise.

        Raises:
            ConfigError: The file is of another recipe.
            CheckpointError: The file cannot be read.
        """
        if self.path.is_file():
            self._read()

    def restore(self, model: Any, optimiser: torch.optim.Optimizer) -> list[float]:
        """Puts model and optimiser where the file left them; gives the loss of every step done, none without a file.

        Raises:
            ConfigError: The file is of another recipe.
            CheckpointError: The file cannot be read.
        """
        import torch

        if not self.path.is_file():
            return []
        saved = self._read()
        trained = _trained(model)
        for name, weights in saved["weights"].items():
            trained[name].data.copy_(weights)
        optimiser.load_state_dict(saved["optimiser"])
        torch.set_rng_state(saved["rng"])
        return list(saved["losses"])

    def keep(self, model: Any, optimiser: torch.optim.Optimizer, losses: list[float]) -> None:
        """Writes the file where its turn has come; an interruption leaves the old one or the new one."""
        import torch

        if len(losses) % self.every:
            return
        unfinished = self.path.with_name(f"{self.path.name}.tmp")
        weights = {name: parameter.detach().cpu() for name, parameter in _trained(model).items()}
        state = {"key": self.key, "weights": weights, "losses": losses, "rng": torch.get_rng_state()}
        torch.save({**state, "optimiser": optimiser.state_dict()}, unfinished)
        unfinished.replace(self.path)

    def remove(self) -> None:
        """Takes the file away, once the policy is written."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        import torch

        try:
            saved = torch.load(self.path, weights_only=True, map_location="cpu")
            key = saved["key"]
        except Exception as error:  # a damaged file fails in many ways, by its place
            raise CheckpointError(
                f"{self.path} cannot be read ({type(error).__name__}: {error}); remove it to begin anew"
            ) from error
        if key != self.key:
            raise ConfigError(
                f"{self.path} is of a cloning begun with other settings; repeat these to go on, name another folder, "
                "or remove the file to begin anew"
            )
        return dict(saved)


def _trained(model: Any) -> dict[str, Any]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
