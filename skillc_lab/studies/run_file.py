"""A study's run file: which methods, starting points and seeds, and the protocol, in YAML or TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError, require_name
from skillc_lab.studies.declared import Declaration, declared_in
from skillc_lab.studies.plan import ComparisonPlan
from skillc_lab.studies.tuning import cross
from trainers.base import check_values
from trainers.config import TrainConfig, current_settings
from trainers.warmstart import small_policy_settings


@dataclass(frozen=True)
class RunFile:
    """The keys of a run file."""

    methods: tuple[str, ...]
    """Methods, the baseline first, written as for `skillc compare`: ``skillc+baseline:raise_by=0.3``."""
    starts: Mapping[str, str]
    """Models to start from, by the names that tables give them."""
    budget_tokens: int
    """Generated tokens of every run."""
    steps: int
    """Most updates of a run; curricula are laid over them."""
    evaluate_every: int
    """Updates between validations, in both conditions; there is one before the first and one after the last too."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Training seeds."""
    env: str = "alfworld"
    """The environment."""
    data: str | None = "generated"
    """The environment's data; None leaves it to the environment (alfworld: what ALFWORLD_DATA names)."""
    panel_per_type: int | None = None
    """Tasks per type of the validation panel; the demonstration's if none."""
    held_out: str | None = None
    """Split of the tasks that are played before and after training; the demonstration's if none."""
    held_out_per_type: int | None = 24
    """So many of them per type; all if none."""
    held_out_types: tuple[str, ...] | None = None
    """Their task types; those of training if none."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of all runs; what is left out is as in the demonstration."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings that differ for a method, by its label; with a ``method`` among them the label may be any name."""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values by setting, for tuning: every method is run with all combinations, each under a label of its own. The
    overrides of a method then hold for all of its combinations, and others, with a ``method``, are run besides."""

    preregistered: bool = False
    """Whether the study was declared before it ran: refused where git cannot show the file from before the first
    cell."""

    def __post_init__(self) -> None:
        check_values(self)
        if not self.starts:
            raise ConfigError("starts names no model to start from; give at least one, such as easy: shipped")

    def plan(self, title: str, folder: Path, declared: Declaration | None = None) -> ComparisonPlan:
        """The plan that the file describes."""
        if taken := sorted(_OWN & current_settings(self.settings).keys()):
            raise ConfigError(f"settings names {', '.join(taken)}, which the file's own keys say; leave it out there")
        known = env_spec(self.env).warm_start is not None
        settings = small_policy_settings(self.env, self.data) if known else {"env": self.env, "data": self.data}
        own = {
            "steps": self.steps,
            "budget_tokens": self.budget_tokens,
            "validate_every": self.evaluate_every,
            "transcripts_every": 0,
            **({} if self.panel_per_type is None else {"panel_per_type": self.panel_per_type}),
            **check_settings(self.settings, "settings"),
        }
        overrides = self._crossed() if self.grid else self.overrides
        return ComparisonPlan(
            config=TrainConfig(next(iter(self.starts.values()))).with_(**{**settings, **own}),
            methods=tuple(overrides) if self.grid else self.methods,
            seeds=self.seeds,
            folder=folder,
            held_out=held_out_split(self.env, self.held_out),
            per_type=self.held_out_per_type,
            held_out_types=self._full_types(),
            starts=dict(self.starts),
            overrides={label: check_settings(changes, f"overrides of {label}") for label, changes in overrides.items()},
            title=title,
            declared=declared,
            preregistered=self.preregistered,
        )

    def _full_types(self) -> tuple[str, ...] | None:
        """Of held-out tasks, in the environment's order, each once: another spelling is no other protocol."""
        if self.held_out_types is None:
            return None
        known = env_spec(self.env).task_types
        if not self.held_out_types or len(known) < 2:
            raise ConfigError(
                f"held_out_types names some of several task types; got {list(self.held_out_types)} of {self.env}, "
                f"which lists {len(known)}; leave it out for those of training"
            )
        for name in self.held_out_types:
            require_name("task type of the held-out tasks", name, [*known, *known.values()])
        return tuple(full for full, short in known.items() if {full, short}.intersection(self.held_out_types))

    def _crossed(self) -> dict[str, Mapping[str, Any]]:
        """The grid with each method's own overrides, then the settings that stand beside the grid."""
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise ConfigError(f"grid: {name} takes a list of values, got {values!r}")
        crossed = cross(self.methods, self.grid)
        for method, changes in self.overrides.items():
            check_settings(changes, f"overrides of {method}")
        for label, changes in crossed.items():
            check_settings(changes, f"the grid, {label}")
        own = {label: _merged(self.overrides.get(changes["method"], {}), changes) for label, changes in crossed.items()}
        beside = {label: changes for label, changes in self.overrides.items() if label not in self.methods}
        return {**own, **beside}


_OWN = {"env", "data", "model", "steps", "budget_tokens", "validate_every", "panel_per_type"}
"""Settings that the keys of a run file stand for."""


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their current names, the second ones over the first; groups of options add up."""
    first, second = current_settings(under), current_settings(over)
    groups = {name for name in first.keys() & second.keys() if isinstance(second[name], Mapping)}
    return {**first, **second, **{name: {**first[name], **second[name]} for name in groups}}


def read_run_file(path: Path, folder: Path) -> ComparisonPlan:
    """Reads a run file in YAML or TOML, whose name is the study's.

    Raises:
        MissingDataError: There is no such file.
        ConfigError: It holds no such keys, or values that contradict each other.
        UnknownNameError: For a key, method or setting that does not exist.
    """
    values = _parsed(path)
    names = [spec.name for spec in fields(RunFile)]
    for key in values:
        require_name(f"key of {path.name}", key, names)
    missing = [spec.name for spec in fields(RunFile) if spec.default is MISSING and spec.default_factory is MISSING]
    missing = [name for name in missing if name not in values]
    if missing:
        raise ConfigError(f"{path} says nothing of {', '.join(missing)}")
    if "data" not in values and not env_spec(str(values.get("env", RunFile.env))).warm_start:
        values = {**values, "data": None}  # the default is of environments that make tasks
    try:
        return RunFile(**values).plan(path.stem, folder, declared_in(path))
    except (TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: a value has another form than its key wants ({error})") from error


def held_out_split(env: str, named: str | None) -> str:
    """The split that is named, or the environment's own for it."""
    found = named or env_spec(env).held_out_split
    if not found:
        raise ConfigError(f"held_out, the split of the held-out tasks, must be named: {env} lists no second split")
    return found


def _parsed(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise MissingDataError(f"There is no run file {path}; expected a study in YAML or TOML")
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text) if path.suffix == ".toml" else yaml.load(text, _EachKeyOnce)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold keys and values (methods: ..., starts: ...), got {type(values).__name__}")
    return values


class _EachKeyOnce(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML takes the last."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._looked_at: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        names = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        # A mapping that was merged before has been looked at.
        for name in () if node in self._looked_at else names:
            if names.count(name) > 1:
                raise ValueError(f"the key {name} stands twice; leave one of the two")
        self._looked_at.add(node)
        super().flatten_mapping(node)


def check_settings(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings under their current names; an error says where one stood that does not exist."""
    names = {spec.name for spec in fields(TrainConfig)}
    current = {name: _number(name, value) for name, value in current_settings(settings).items()}
    for name, value in current.items():
        require_name(f"setting in {where}", name, names)
        given = [old for old in settings if current_settings({old: value}).keys() == {name}]
        if len(given) > 1:
            raise ConfigError(f"{where}: {' and '.join(given)} are one setting; leave one of them out")
        _require_writable(f"{where}: {name}", value)
    return current


def _number(name: str, value: Any) -> Any:
    """A setting's value; YAML takes 1e-3 for a text, which settings with a number for a default do not hold."""
    power = isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value)
    return float(value) if power and isinstance(getattr(TrainConfig, name, None), float) else value


def _require_writable(where: str, value: object) -> None:
    """Refuses what records cannot hold, such as the dates that YAML and TOML make of what is not in quotes."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{where} holds what no JSON can, in {value!r:.80} ({error}); put dates into quotes, and leave out what is "
            "no text, number, list or mapping"
        ) from error
