"""The policies of a finished comparison on another split, or shown other skills: nothing is trained again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from skill_library import load_library
from skillc_gym.errors import MissingDataError, unknown_name
from skillc_lab.studies.cells import held_out_fields, play_held_out, read_cell, write_cell
from skillc_lab.studies.plan import Cell, ComparisonPlan
from skillc_lab.studies.result import CellResult
from trainers.tracking.run_folder import RunFolder, provenance

__all__ = ["Changed", "Replay"]


@dataclass(frozen=True)
class Changed:
    """What is played otherwise than in the comparison that trained the policies.

    Attributes:
        split: Another split of held-out tasks; None for the comparison's.
        library: Another skill library for skill-injected episodes; None for the comparison's.
    """

    split: str | None = None
    library: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is."""
        return self.split is not None or self.library is not None

    @property
    def name(self) -> str:
        """A file name for it: ``valid_seen``, ``alfworld.wrong`` or both."""
        words = [word for word in (self.split, self.library) if word is not None]
        return re.sub(r"[^A-Za-z0-9._-]", ".", "-".join(words))

    def place(self, folder: Path, title: str) -> tuple[Path, str]:
        """Folder and title of the record, beside those of a comparison."""
        return folder / self.name, f"{title}_{self.name}"

    def plan(self, trained: ComparisonPlan) -> ComparisonPlan:
        """The plan of the same cells played so, in a folder and a record of its own.

        Raises:
            UnknownNameError: The environment names its splits, and this is none of them.
            SkillFileError: There is no such library.
        """
        config, splits = trained.config, trained.config.env_spec.splits
        if self.split is not None and splits and self.split not in splits:
            raise unknown_name("split", self.split, splits)
        if self.library is not None:
            load_library(self.library)
            config = config.with_(library=self.library)
        folder, title = self.place(trained.folder, trained.title)
        return replace(trained, config=config, held_out=self.split or trained.held_out, folder=folder, title=title)


@dataclass(frozen=True)
class Replay:
    """Plays cells of a changed plan with the policies that were trained.

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
