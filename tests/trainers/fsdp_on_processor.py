"""The command line with FSDP2 on a processor: torch shards there, and accelerate alone would pass over it."""

import sys
from typing import Any

from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType


def shard_on_processors() -> None:
    """Lets accelerate take its FSDP path on processors as it does on GPUs."""
    plain = AcceleratorState.__init__

    def start(self: Any, *args: Any, fsdp_plugin: Any = None, **options: Any) -> None:
        plain(self, *args, fsdp_plugin=fsdp_plugin, **options)
        if fsdp_plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, fsdp_plugin
            # As accelerate does for its own kinds: later states copy it from there.
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP
            if self._mixed_precision != "no":
                fsdp_plugin.set_mixed_precision(self._mixed_precision)

    AcceleratorState.__init__ = start


def count_gatherings() -> list[str]:
    """Lets the copies that generate tell how many tensors they gathered."""
    from torch.distributed.tensor import DTensor

    from trainers.backends.trl import weights

    gathered: list[str] = []
    plain = weights.whole

    def counted(tensor: Any) -> Any:
        gathered.extend(["one"] if isinstance(tensor, DTensor) else [])
        return plain(tensor)

    weights.whole = counted
    return gathered


if __name__ == "__main__":
    from skillc_lab.cli.main import main

    shard_on_processors()
    gathered = count_gatherings()
    status = main(sys.argv[1:])
    sys.stderr.write(f"gathered {len(gathered)} tensors\n")
    sys.exit(status)
