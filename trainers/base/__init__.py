"""What every room of the trainers speaks: options, names of objects, trajectories, and how a process ends."""

from skillc_gym.lazy import lazy_exports
from trainers.base.bounds import AtLeastTwo, Count, Fraction, Natural, NotNegative, Part, Positive, Share, check_values
from trainers.base.choices import Aggregation, MaskTruncated, RatioLevel, Returns, Sampling, TaskSampling, Thoughts
from trainers.base.interruption import interrupts, stop_requests
from trainers.base.launch import asked_processes, launch_warning, launcher_words
from trainers.base.model_folders import (
    HARD,
    PACKAGES,
    REAL,
    SHIPPED,
    Package,
    fetched_folder,
    fetched_model,
    hardest_start,
    is_shipped,
    named_folder,
    package_named,
    shipped_names,
    shipped_policy,
    shipped_trained_policy,
)
from trainers.base.options import Options, flat_options, option_names, override
from trainers.base.registry import Registry, load_object
from trainers.base.renaming import current_names, understands_old_names
from trainers.base.trajectory import TokenRow, Trajectory

__all__ = [
    "HARD",
    "PACKAGES",
    "REAL",
    "SHIPPED",
    "Aggregation",
    "AtLeastTwo",
    "Count",
    "Fraction",
    "MaskTruncated",
    "Natural",
    "NotNegative",
    "Options",
    "Package",
    "Part",
    "Positive",
    "RatioLevel",
    "Registry",
    "Returns",
    "Sampling",
    "Share",
    "TaskSampling",
    "Thoughts",
    "TokenRow",
    "Trajectory",
    "asked_processes",
    "check_values",
    "current_names",
    "fetched_folder",
    "fetched_model",
    "flat_options",
    "hardest_start",
    "interrupts",
    "is_shipped",
    "launch_warning",
    "launcher_words",
    "lazy_exports",
    "load_object",
    "named_folder",
    "option_names",
    "override",
    "package_named",
    "shipped_names",
    "shipped_policy",
    "shipped_trained_policy",
    "stop_requests",
    "understands_old_names",
]
