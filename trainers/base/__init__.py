"""What every room of the trainers speaks: options, names of objects, trajectories, and how a process ends."""

from trainers.base.model_folders import (
    PACKAGES,
    REAL,
    SHIPPED,
    fetched_trained,
    hardest_start,
    named_folder,
    package_named,
    shipped_names,
    shipped_policy,
    shipped_trained_policy,
)
from trainers.base.options import (
    Aggregation,
    AtLeastTwo,
    Count,
    Fraction,
    Level,
    MaskTruncated,
    Natural,
    NotNegative,
    Options,
    Part,
    Positive,
    RatioLevel,
    Returns,
    Sampling,
    Share,
    TaskSampling,
    Thoughts,
    check_values,
    flat_options,
    option_names,
    override,
)
from trainers.base.processes import check_sharded, end_together, interrupts, launch_warning, stop_requests
from trainers.base.registry import Registry, Wanted, current_names, instance_of, load_object, understands_old_names
from trainers.base.trajectory import TokenRow, Trajectory, Usage

__all__ = ["PACKAGES", "REAL", "SHIPPED", "fetched_trained"]
__all__ += ["hardest_start", "named_folder", "package_named", "shipped_names", "shipped_policy"]
__all__ += ["shipped_trained_policy"]
__all__ += ["Aggregation", "AtLeastTwo", "Count", "Fraction", "Level", "MaskTruncated", "Natural", "NotNegative"]
__all__ += ["Options", "Part", "Positive", "RatioLevel", "Returns", "Sampling", "Share", "TaskSampling", "Thoughts"]
__all__ += ["check_values", "flat_options", "option_names", "override"]
__all__ += ["Registry", "Wanted", "current_names", "instance_of", "load_object", "understands_old_names"]
__all__ += ["TokenRow", "Trajectory", "Usage"]
__all__ += ["check_sharded", "end_together", "interrupts", "launch_warning", "stop_requests"]
