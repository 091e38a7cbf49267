"""``skillc gpu-check``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from skillc_lab.commands.cli.command import Command
from skillc_lab.commands.cli.console import say
from skillc_lab.commands.gpu_check import GpuCheckConfig, as_table, run_gpu_check
from trainers.tracking.progress import make_progress
from trainers.warmstart.model import TINY

__all__ = ["COMMAND", "GpuCheckOptions"]


@dataclass(frozen=True)
class GpuCheckOptions:
    """Check and measure training on this machine's GPU: make a policy, train it with SkillC, write figures."""

    out: Path = Path("runs/gpu_check")
    """Folder for policy, run and figures."""
    steps: int = GpuCheckConfig.steps
    """SkillC updates."""
    engine: str = GpuCheckConfig.engine
    """Who generates: transformers, vllm, or an engine of your own as module:NAME."""
    tiny: bool = False
    """Take 0.9 instead of some 28 million parameters, and little cloning."""
    allow_cpu: bool = False
    """Run without a GPU too, to try the check itself."""

    def config(self) -> GpuCheckConfig:
        """What the check is asked to do."""
        config = GpuCheckConfig(out=self.out, steps=self.steps, engine=self.engine, allow_cpu=self.allow_cpu)
        if not self.tiny:
            return config
        return replace(config, size=TINY, demonstrations=240, cloning_batches=20, tasks_per_step=4, group_size=4)


def check(options: GpuCheckOptions) -> int:
    """Runs the command."""
    table = as_table(run_gpu_check(options.config(), progress=make_progress()))
    (options.out / "gpu_check.md").write_text(table + "\n", encoding="utf-8")
    say(table)
    return 0


COMMAND = Command(GpuCheckOptions, check)
