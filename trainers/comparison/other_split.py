"""The policies of a finished comparison on another split: nothing is trained again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from skillc_gym.errors import MissingDataError, unknown_name
from trainers.comparison.cells import held_out_fields, play_held_out, read_cell, write_cell
from trainers.comparison.plan import Cell, ComparisonPlan
from trainers.comparison.result import CellResult
from trainers.tracking.run_folder import RunFolder, provenance

__all__ = ["OtherSplit", "other_split_place", "other_split_plan"]


def other_split_place(folder: Path, title: str, split: str) -> tuple[Path, str]:
    """Folder and title of the record on another split, beside those of a comparison."""
    return folder / split, f"{title}_{split}"


def other_split_plan(plan: ComparisonPlan, split: str) -> ComparisonPlan:
    """The plan of the same cells with other held-out tasks, in a folder and a record of its own.

    Raises:
        UnknownNameError: The environment names its splits, and this is none of them.
    """
    splits = plan.config.env_spec.splits
    if splits and split not in splits:
        raise unknown_name("split", split, splits)
    folder, title = other_split_place(plan.folder, plan.title, split)
    return replace(plan, held_out=split, folder=folder, title=title)


@dataclass(frozen=True)
class OtherSplit:
    """Plays cells of another split's plan with the policies that were trained.

    Attributes:
        trained: The plan whose cells are done.
    """

    trained: ComparisonPlan

    def __call__(self, plan: ComparisonPlan, cell: Cell) -> CellResult | None:
        """Plays a cell and writes it; None if it has not been trained to its end.

        What belongs to training, such as curve and cost, is the trained cell's.

        Raises:
            MissingDataError: The cell's policy is not here, as in a folder that was restored from a record.
        """
        done = read_cell(self.trained, cell)
        if done is None:
            return None
        report = play_held_out(plan, cell, self._policy(cell))
        result = replace(done, **held_out_fields(report), versions=provenance())
        write_cell(plan, cell, result)
        return result

    def _policy(self, cell: Cell) -> Path | str:
        if not cell.trained:
            return self.trained.models[cell.start]
        policy = RunFolder(Path(self.trained.training(cell).run)).policy_path
        if not (policy / "config.json").is_file():
            raise MissingDataError(f"There is no policy {policy}; it lies where the cell was trained")
        return policy
