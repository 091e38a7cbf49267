"""What is compared, and under which protocol."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError, SkillCError, require_name
from skillc_lab.studies.declared import Declaration
from trainers.config import TrainConfig, current_settings
from trainers.evaluation import deciding_settings
from trainers.recipes import get_recipe, recipe_in, recipe_names
from trainers.rollout import chat_sha256, library_sha256
from trainers.tracking import NO_WEIGHTS, sha256_of_file, weights_sha256

UNTRAINED = "untrained"
"""Stands in the place of a method for a starting point as it is."""

_PER_PLACE = ("run", "resume", "seed", "save_every", "keep_checkpoints", "transcripts_every", "stream_norms_every")
"""Settings that move no figure, and the seed, which the cell names."""
PATIENCE = {name: getattr(TrainConfig, name) for name in ("max_minutes", "ddp_timeout")}
"""Settings that move no figure either, at the defaults that they have in the hashes of recorded cells."""
_OF_CELLS = frozenset(
    {"run", "resume", "seed", "model", "budget_tokens", "panel_seed", "panel_per_type"}
    | {"env", "data", "env_options", "split", "task_types"}
    | {"eval_temperature", "eval_greedy", "top_p", "top_k", "min_p", "max_episode_steps"}
)
"""What the comparison sets for each cell, or all share: the start, the budget, the tasks, how they are measured."""
_BESIDE_WEIGHTS = ("config.json", "tokenizer*.json", "*.jinja")
"""Files that decide what a start's weights compute, and from which tokens."""


def typed(text: str) -> Any:
    """The value that was typed: JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_method(label: str) -> tuple[str, dict[str, Any]]:
    """Reads ``skillc`` or ``skillc:omega=0.2,rho=0``: a recipe that exists, and changed options, values as JSON.

    A recipe of one's own has a colon in its name: ``my_method:RECIPE:clip=0.1``.
    """
    name, _, changes = label.partition(":")
    own, _, rest = changes.partition(":")
    if own and "=" not in own and name not in recipe_names():
        name, changes = f"{name}:{own}", rest
    options: dict[str, Any] = {}
    for change in filter(None, changes.split(",")):
        option, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"A method's options are written name:option=value,option=value; got {label!r}")
        options[option] = typed(value)
    get_recipe(name, **options)
    return name, options


@dataclass(frozen=True)
class Cell:
    """One method with one seed from one starting point; :data:`UNTRAINED` is the starting point itself."""

    start: str
    method: str
    seed: int

    @property
    def place(self) -> tuple[str, str, int]:
        """What a record finds it by."""
        return self.start, self.method, self.seed

    @property
    def trained(self) -> bool:
        """Whether there is anything to train."""
        return self.method != UNTRAINED

    @property
    def name(self) -> str:
        """A file name for it."""
        words = [self.start, self.method, f"seed{self.seed}" if self.trained else ""]
        return re.sub(r"[^A-Za-z0-9.+=_-]", "_", "-".join(filter(None, words)))


@dataclass(frozen=True)
class ComparisonPlan:
    """A table's methods, starting points and seeds, and the protocol that they share.

    Attributes:
        config: Settings of every run; what belongs to a cell is replaced.
        methods: As :func:`read_method` takes them, or names of their own whose overrides say a ``method``; the first is
            the baseline.
        seeds: Training seeds.
        folder: Where everything is written.
        held_out: Split of the tasks that are played before and after training.
        per_type: So many of them per type; all if None.
        held_out_types: Their task types, which may be others than training's; the shared settings' if None.
        starts: Models to start from, by the names that tables give them; the configured one, nameless, if empty.
        overrides: Settings that differ for a method, by its label; they are recorded with its cells.
        title: Name of the record and its pictures.
        declared: The run file, where there is one.
        preregistered: Whether the study says that it was declared before its first cell.
        of: The comparison whose policies are played otherwise here, if they are.
    """

    config: TrainConfig
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    folder: Path
    held_out: str
    per_type: int | None
    starts: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    title: str = "comparison"
    declared: Declaration | None = field(default=None, compare=False)
    preregistered: bool = False
    of: ComparisonPlan | None = field(default=None, compare=False)
    held_out_types: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise ConfigError(f"A comparison needs methods, each once; got {', '.join(self.methods) or 'none'}")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"A comparison needs seeds, each once; got {list(self.seeds)}")
        if min(self.seeds) < 0:
            raise ConfigError(f"Seeds are numbers from 0 up, such as --seeds 0 1 2; got {list(self.seeds)}")
        if self.config.budget_tokens is None:
            raise ConfigError("A comparison needs a budget of generated tokens per run, such as --budget-tokens 500000")
        self._check_held_out()
        self._check_overrides()
        for cell in self.cells:
            config = self.training(cell)
            recipe_in(config.env, config.method, config.method_options)
        if len({cell.name for cell in self.jobs}) < len(self.jobs):
            raise ConfigError("Two cells would have one file name; give the starting points plainer names")

    def _check_held_out(self) -> None:
        if splits := self.config.env_spec.splits:
            require_name("split of the held-out tasks", self.held_out, splits)
        if self.per_type is not None and self.per_type < 1:
            raise ConfigError(f"Held-out tasks per type must be at least 1, or none for all; got {self.per_type}")

    def _check_overrides(self) -> None:
        strangers = sorted(set(self.overrides) - set(self.methods))
        if strangers:
            raise ConfigError(f"Settings are overridden for methods that are not compared: {', '.join(strangers)}")
        for label, changes in self.overrides.items():
            if taken := sorted(_OF_CELLS.intersection(current_settings(changes))):
                raise ConfigError(f"{label} overrides {', '.join(taken)}, which is the comparison's; leave it out")

    @property
    def models(self) -> Mapping[str, str]:
        """The starting points' models by their names."""
        return self.starts or {"": self.config.model}

    @property
    def budget(self) -> int:
        """Generated tokens of every run."""
        return self.config.budget_tokens or 0

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, seed by seed, so that an interrupted table is a whole one of fewer seeds."""
        return tuple(Cell(start, label, seed) for seed in self.seeds for start in self.models for label in self.methods)

    @property
    def jobs(self) -> tuple[Cell, ...]:
        """All that is to be run: the starting points as they are, then the cells."""
        return (*(Cell(start, UNTRAINED, self.config.seed) for start in self.models), *self.cells)

    def choose(
        self, methods: Sequence[str] = (), starts: Sequence[str] = (), seeds: Sequence[int] = ()
    ) -> tuple[Cell, ...]:
        """Some of the cells, in the plan's order; an empty sequence stands for all."""
        _require("method", methods, self.methods)
        _require("starting point", starts, self.models)
        _require("seed", seeds, self.seeds)
        return tuple(
            cell
            for cell in self.cells
            if (not methods or cell.method in methods)
            and (not starts or cell.start in starts)
            and (not seeds or cell.seed in seeds)
        )

    def with_starts(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """Cells, their starting points as they are before them."""
        starts = {cell.start for cell in cells}
        return (*(job for job in self.jobs if not job.trained and job.start in starts), *cells)

    @property
    def protocol(self) -> dict[str, Any]:
        """What all cells share, as JSON-able values."""
        apart = (*_PER_PLACE, "preset", "model")
        settings = {name: value for name, value in self.config.legacy_json().items() if name not in apart}
        return {
            "settings": settings,
            "starts": dict(self.models),
            "methods": list(self.methods),
            "overrides": {label: dict(changes) for label, changes in self.overrides.items()},
            "seeds": list(self.seeds),
            "evaluation_seed": self.config.seed,
            "held_out": self.held_out,
            "per_type": self.per_type,
            **self._named_types,
        }

    @property
    def _named_types(self) -> dict[str, Any]:
        """The types of the held-out tasks where they are named; older records and hashes know of none."""
        return {} if self.held_out_types is None else {"held_out_types": list(self.held_out_types)}

    def digest(self, cell: Cell, *, patience: bool = False) -> str:
        """Hash of all that decides a cell's figures beside code and seed; a cell of another digest is another's.

        Earlier versions hashed the settings of ``PATIENCE``, too.
        """
        config = self._played(cell)
        config = config if patience else config.with_(**PATIENCE)
        settings = {name: value for name, value in config.legacy_json().items() if name not in _PER_PLACE}
        if len(config.env_wrappers) > 1:  # sorted below, and their order counts
            settings["wrappers"] = list(config.env_wrappers)
        if not cell.trained:
            # No method plays a starting point; its hashes were first taken over the default of that time.
            settings["preset"] = "skillc"
        protocol = {"settings": settings, "held_out": self.held_out, "per_type": self.per_type, "by": self.config.seed}
        return _sha256({**protocol, **self._named_types})

    def library_sha256(self, cell: Cell) -> str:
        """Hash of the texts of the skill library that a cell is shown; empty without one."""
        return library_sha256(self._played(cell))

    def chat_sha256(self, cell: Cell) -> str | None:
        """Hash of the wording that a cell is prompted with; None where that is a file that is not here."""
        try:
            return chat_sha256(self._played(cell))
        except SkillCError:
            return None

    def end_sha256(self, cell: Cell) -> str:
        """Hash of what the end is played with: the shared settings, also where a method overrides them in training."""
        return _sha256(deciding_settings(self.evaluation(cell, "")))

    def files_sha256(self, cell: Cell) -> str:
        """Hash of the files that a cell's settings name, and of how its start reads, as far as they are here."""
        config = self._played(cell)
        named = [config.chat_template, config.method_options.get("bank")]
        files = [sha256_of_file(path) for path in map(Path, filter(None, named)) if path.is_file()]
        beside = self._beside_weights_sha256[cell.start]
        return _sha256([*files, *beside, self._references_sha256.get(config.reference_model, "")])

    def encoder_sha256(self, cell: Cell) -> str | None:
        """Hash of the sentence encoder that a cell's method is given; None where there is none here."""
        hashes = map(weights_sha256, self._places(cell, "embeddings"))
        return next((found for found in hashes if found != NO_WEIGHTS), None)

    def bank_sha256(self, cell: Cell) -> str | None:
        """Hash of the bank that a cell's method is given; None where there is none here."""
        return next((sha256_of_file(path) for path in self._places(cell, "bank") if path.is_file()), None)

    def _places(self, cell: Cell, option: str) -> list[Path]:
        """What a cell's method is given under an option, be it the method's own or that of one of its parts."""
        options = self.training(cell).method_options if cell.trained else {}
        return [Path(place) for name, place in options.items() if name.rpartition(".")[2] == option and place]

    @cached_property
    def _beside_weights_sha256(self) -> Mapping[str, list[str]]:
        found = {start: Path(self.config.with_(model=model).model_path) for start, model in self.models.items()}
        return {
            start: [sha256_of_file(path) for path in sorted(p for name in _BESIDE_WEIGHTS for p in folder.glob(name))]
            for start, folder in found.items()
        }

    @cached_property
    def _references_sha256(self) -> Mapping[str, str]:
        """Hashes of the weights of references that are no starting points, by their names."""
        configs = [self.training(cell) for cell in self.cells]
        named = {config.reference_model: config.reference_path for config in configs if config.reference_model}
        return {name: weights_sha256(Path(path)) for name, path in named.items()}

    @cached_property
    def starts_sha256(self) -> Mapping[str, str]:
        """Hashes of the starting points' weights, as far as they are here."""
        paths = {start: Path(self.config.with_(model=model).model_path) for start, model in self.models.items()}
        return {start: found for start, path in paths.items() if (found := weights_sha256(path)) != NO_WEIGHTS}

    def _played(self, cell: Cell) -> TrainConfig:
        return self.training(cell) if cell.trained else self.evaluation(cell, self.models[cell.start])

    def training(self, cell: Cell) -> TrainConfig:
        """The settings of a cell's run; an error where they contradict each other."""
        own = current_settings(self.overrides.get(cell.method, {}))
        method, options = (own["method"], {}) if "method" in own else read_method(cell.method)
        changes: dict[str, Any] = {
            "model": self.models[cell.start],
            "seed": cell.seed,
            "run": str(self.folder / "runs" / cell.name),
            "resume": "auto",
            "method_options": {},
            **own,
            "method": method,
        }
        groups = {
            name: each for name, each in changes.items() if name.endswith("_options") and isinstance(each, Mapping)
        }
        changes |= {name: {**self._shared(name, changes), **each} for name, each in groups.items()}
        if options:
            changes["method_options"] = {**changes["method_options"], **options}
        return self.config.with_(**changes)

    def _shared(self, name: str, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """The shared options of a group, as where one types; those of another chat or engine are of no use."""
        of = name.removesuffix("_options")
        other = of in ("chat", "engine") and changes.get(of, getattr(self.config, of)) != getattr(self.config, of)
        found: Mapping[str, Any] = {} if other else getattr(self.config, name)
        return found

    def evaluation(self, cell: Cell, policy: str | Path) -> TrainConfig:
        """The settings of a cell's evaluation: the same tasks and draws for every cell.

        The shared settings alone: what is overridden for a method belongs to its training. The method is named, since
        the memory of one of one's own is read by its code.
        """
        trained = self.training(cell) if cell.trained else self.config
        named: dict[str, Any] = {"method": trained.method, "method_options": trained.method_options}
        if self.held_out_types is not None:
            named["task_types"] = self.held_out_types
        return self.config.with_(model=str(policy), split=self.held_out, resume="auto", run="", **named)


def _sha256(values: Mapping[str, Any] | Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _require(kind: str, chosen: Sequence[object], known: Iterable[object]) -> None:
    names = [str(name) for name in known]
    for name in chosen:
        require_name(f"{kind} of the run file", str(name), names)
