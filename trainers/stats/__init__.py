"""Statistics of what is reported: intervals of rates, means over seeds and tasks, differences and their tests."""

from trainers.stats.differences import MARGIN, Difference, Verdict, holm, mean_difference, sign_flip_p
from trainers.stats.intervals import (
    Interval,
    MeanEstimate,
    bootstrap_mean,
    detectable_difference,
    mean_over_seeds,
    mean_over_seeds_and_tasks,
    paired_difference,
    t_quantile,
    variance_of_mean,
    wilson,
)

__all__ = ["MARGIN", "Difference", "Verdict", "holm", "mean_difference", "sign_flip_p"]
__all__ += ["Interval", "bootstrap_mean", "detectable_difference", "paired_difference", "wilson"]
__all__ += ["MeanEstimate", "mean_over_seeds", "mean_over_seeds_and_tasks", "t_quantile", "variance_of_mean"]
