"""All allocations by name."""

from __future__ import annotations

from collections.abc import Mapping

from trainers.recipes.parts.adaptive_allocation import ByContrast, ByNeed, BySignal
from trainers.recipes.parts.allocation import Allocation, Always, Drawn, Never, Paired, Whole
from trainers.recipes.parts.difficulty_allocation import ByDifficulty

__all__ = ["ALLOCATIONS"]

ALLOCATIONS: Mapping[str, type[Allocation]] = {
    kind.name: kind for kind in (Paired, Drawn, Whole, Always, Never, BySignal, ByNeed, ByContrast, ByDifficulty)
}
"""By the names that ``preset.allocation=`` takes."""
