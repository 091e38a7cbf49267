"""The machine that a run is planned for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["GIB", "Machine", "Sharding"]

GIB = 2**30
Sharding = Literal["none", "fsdp2", "zero3"]
_KINDS = ("none", "fsdp2", "zero3")


@dataclass(frozen=True)
class Machine:
    """GPUs and how the training state lies on them.

    Attributes:
        gpus: Training processes, one GPU each.
        gpu_memory: Memory of one GPU in GiB.
        sharding: "none": each GPU holds everything (data parallel); "fsdp2", "zero3": weights, gradients, optimiser
            and reference are spread over all GPUs and gathered layer by layer.
        reserve: Share of a GPU's memory that is left to the driver, to kernels and to fragmentation.
        tflops: Operations per second of one GPU in updates, in 10^12, as ``skillc gpu-check`` measures them; None if
            nobody knows.

    Raises:
        ConfigError: If a number is not positive.
    """

    gpus: int = 1
    gpu_memory: float = 80.0
    sharding: Sharding = "none"
    reserve: float = 0.06
    tflops: float | None = None

    def __post_init__(self) -> None:
        if self.sharding not in _KINDS:
            raise unknown_name("sharding", self.sharding, _KINDS)
        if self.gpus < 1 or not self.gpu_memory > 0 or not 0 <= self.reserve < 1:
            raise ConfigError(
                f"A machine has gpus >= 1, gpu_memory > 0 GiB and 0 <= reserve < 1, got {self.gpus}, {self.gpu_memory} "
                f"and {self.reserve}."
            )

    @property
    def usable(self) -> float:
        """Bytes of one GPU that a run may fill."""
        return self.gpu_memory * GIB * (1 - self.reserve)

    @property
    def shards(self) -> int:
        """Over how many GPUs the training state is spread."""
        return 1 if self.sharding == "none" else self.gpus
