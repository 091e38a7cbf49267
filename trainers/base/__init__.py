"""What every room of the trainers speaks: options, names of objects, trajectories, and how a process ends."""

from trainers.base.choices import Aggregation, MaskTruncated, RatioLevel, Returns, Sampling, TaskSampling, Thoughts
from trainers.base.interruption import interrupts, stop_requests
from trainers.base.launch import asked_processes, launch_warning, launcher_words
from trainers.base.lazy import lazy_exports
from trainers.base.options import Options, flat_options, option_names, override
from trainers.base.registry import Registry, load_object
from trainers.base.trajectory import TokenRow, Trajectory

__all__ = [
    "Aggregation",
    "MaskTruncated",
    "Options",
    "RatioLevel",
    "Registry",
    "Returns",
    "Sampling",
    "TaskSampling",
    "Thoughts",
    "TokenRow",
    "Trajectory",
    "asked_processes",
    "flat_options",
    "interrupts",
    "launch_warning",
    "launcher_words",
    "lazy_exports",
    "load_object",
    "option_names",
    "override",
    "stop_requests",
]
