"""The options of the contrast, as a part of a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from trainers.advantages import Contrast, RolloutBatch
from trainers.advantages.contrast import ContrastKey, paired_contrasts, unpaired_contrasts
from trainers.base import NotNegative, Options, Share

__all__ = ["ContrastAverage"]


@dataclass(frozen=True)
class ContrastAverage(Options):
    """What an update shows of the skills' worth, and how it is averaged over updates.

    Attributes:
        key: What shares one moving average: a task type, or a task.
        contrast_decay: Weight of the past in that average.
        contrast_clip: Bound of the smoothed contrast.
        bias_correction: Whether the average is corrected for its start at 0.
    """

    key: ContrastKey = "type"
    contrast_decay: Share = 0.9
    contrast_clip: NotNegative = 2.0
    bias_correction: bool = True

    def start(self) -> Contrast:
        """A fresh moving average."""
        return Contrast(self.contrast_decay, self.contrast_clip, self.bias_correction)

    def observed(self, batch: RolloutBatch, *, pairs: bool) -> dict[str, float]:
        """One update's contrasts by key: within tasks where groups are paired, between tasks of a type otherwise."""
        return paired_contrasts(batch, self.key) if pairs else unpaired_contrasts(batch)
