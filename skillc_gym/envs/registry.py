"""One description per environment: everything that the rest of the suite knows of it.

The environments of the suite describe themselves in the ``spec`` module of their own folder. Others call
:func:`register`, or name an `EnvSpec` under the entry point group ``skillc_gym.environments`` of their package.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium

import skillc_gym.envs
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.warm_start import WarmStart
from skillc_gym.errors import ConfigError, SkillCError, unknown_name
from skillc_gym.lazy import load_module, load_reference
from skillc_gym.values import require_several

__all__ = [
    "ENTRY_POINTS",
    "EnvSpec",
    "check_env_options",
    "described_env",
    "description_of",
    "env_spec",
    "env_specs",
    "make_env",
    "register",
    "short_type",
    "warm_started",
    "warm_started_names",
]

ENTRY_POINTS = "skillc_gym.environments"
"""Group of entry points under which packages name their `EnvSpec`."""


CHAT_READERS: Mapping[str, str] = {"verl-agent": "skillc_gym.adapters.verl_agent.prompts:read_chat"}
"""What reads the wording of prompts from a folder, ``NAME:FOLDER``, as ``module:function`` by name."""

# The presets speak of ALFWorld's houses, to the letter that its records and policies have.
_ROLES: Mapping[str, str] = {
    "default": "You are an agent in a world described in words. You fulfil the task by giving one command per turn.",
    "compact": "agent",
}
"""Roles in environments that have no wording of their own for a preset, by its name."""


@dataclass(frozen=True)
class EnvSpec:
    """An environment, as everybody else knows it."""

    name: str
    """Short name, as users type it: ``env=alfworld``."""
    id: str
    entry_point: str = ""
    """``module:class`` of the environment; empty for one that registers itself with Gymnasium."""
    vector_entry_point: str | None = None
    """``module:name`` of its own vector environment."""
    max_episode_steps: int | None = None
    library: str | None = None
    """Skill library, by name or path."""
    chat: Mapping[str, ChatFormat] = field(default_factory=dict)
    """Wording of prompts by the format's name; for others that of `ChatFormat.named`, its role that of an agent in no
    world in particular."""
    splits: tuple[str, ...] = ()
    """Names of its splits, that of the training tasks first; empty if unknown."""
    split_of: str = ""
    """``module:function`` from a task's id to its split; empty where the id begins with it."""
    task_types: Mapping[str, str] = field(default_factory=dict)
    """Task types in the fixed order that breaks ties, each with the short name for tables."""
    curriculum: Mapping[str, Any] = field(default_factory=dict)
    """Options that the environment implies for a skill curriculum, unless a run sets them itself."""
    warm_start: WarmStart | None = None
    """How a small policy starts here; None if there are no demonstrations."""
    planner: str = ""
    """``module:function`` that gives the shortest commands from where an environment stands; empty without one."""

    def __post_init__(self) -> None:
        require_several("splits", self.splits)
        if not isinstance(self.task_types, Mapping):
            raise ConfigError(f"task_types gives each type a short name: {{type: name}}, got {self.task_types!r:.80}")
        if "overall" in {*self.task_types, *self.task_types.values()}:
            raise ConfigError("No task type is called 'overall': changes of success have those of all tasks under it.")
        if len(set(self.task_types.values())) < len(self.task_types):
            raise ConfigError(f"Two task types have one short name, where tables would mix them: {self.task_types}")

    def chat_format(self, name: str) -> ChatFormat:
        """The wording of a named format in this environment; of ``verl-agent:FOLDER``, as it stands in that folder."""
        reader, _, folder = name.partition(":")
        if folder and reader in CHAT_READERS:
            found: ChatFormat = load_reference(CHAT_READERS[reader])(folder, self.name)
            return found
        if name in self.chat:
            return self.chat[name]
        preset = ChatFormat.named(name)
        return replace(preset, role=_ROLES[name]) if name in _ROLES else preset

    @property
    def training_split(self) -> str:
        """The split of the training tasks; "train" if unknown."""
        return self.splits[0] if self.splits else "train"

    @property
    def held_out_split(self) -> str:
        """The split to test on: the demonstration's, else the last one listed; "" if unknown."""
        if self.warm_start is not None:
            return self.warm_start.demo.held_out_split
        return self.splits[-1] if len(self.splits) > 1 else ""

    def split_of_task(self, task_id: str) -> str:
        """The split of a task, told by its id alone; "" for an id that is of no known split."""
        found = str(load_reference(self.split_of)(task_id)) if self.split_of else task_id.partition("/")[0]
        return found if found in self.splits else ""

    def ordered(self, task_types: Iterable[str]) -> tuple[str, ...]:
        """Task types in the environment's order; those that it does not list follow by the alphabet."""
        present = set(task_types)
        return (*filter(present.__contains__, self.task_types), *sorted(present.difference(self.task_types)))


_registered: dict[str, EnvSpec] = {}


def register(spec: EnvSpec) -> None:
    """Makes an environment known by its short name and its id, and registers it with Gymnasium; twice is once.

    Raises:
        ConfigError: Another environment has that short name, or other code or another step limit that id.
    """
    there = gymnasium.registry.get(spec.id)
    if spec.entry_point and there is not None:
        made = {"entry_point": there.entry_point, "max_episode_steps": there.max_episode_steps}
        for name, value in made.items():
            if (mine := getattr(spec, name)) not in (None, value):
                raise ConfigError(
                    f"Gymnasium makes {spec.id!r} with {name}={value!r}, this says {mine!r}; take another id, or leave "
                    "entry_point out to describe what is registered"
                )
    known = _registered.get(spec.name, spec)
    if known != spec:
        raise ConfigError(
            f"The environment {known.id} has the short name {spec.name!r} already; name {spec.id} otherwise"
            if known.id != spec.id
            else f"{spec.id} was described otherwise in this process; start a new one, or give another name and id"
        )
    if spec.entry_point and there is None:
        gymnasium.register(
            id=spec.id,
            entry_point=spec.entry_point,
            vector_entry_point=spec.vector_entry_point,
            max_episode_steps=spec.max_episode_steps,
            # It takes most of a step; gymnasium.make(..., disable_env_checker=False) adds it.
            disable_env_checker=True,
        )
    _registered[spec.name] = spec


def register_built_in() -> None:
    """Registers the environments of the suite: one folder each, with a module ``spec`` that holds ``SPECS``."""
    for found in pkgutil.iter_modules(skillc_gym.envs.__path__):
        if found.ispkg:
            for spec in importlib.import_module(f"{skillc_gym.envs.__name__}.{found.name}.spec").SPECS:
                register(spec)


def env_specs() -> tuple[EnvSpec, ...]:
    """All environments that are known, by short name: the suite's, those of installed packages, those registered."""
    _register_installed()
    return tuple(_registered[name] for name in sorted(_registered))


def env_spec(name: str) -> EnvSpec:
    """Returns the description of a short name or an id; an empty one for an id without a description.

    ``module:id`` imports a module first, which registers the environment; ConfigError if it cannot be imported.
    """
    module, _, rest = name.rpartition(":")
    if module:
        load_module(module, name, "environment")
    known = env_specs() if rest not in _registered else (_registered[rest],)
    return next((spec for spec in known if rest in (spec.name, spec.id)), EnvSpec(name=rest, id=rest))


def described_env(name: str) -> EnvSpec:
    """As :func:`env_spec`, for those who need a description; UnknownNameError if there is none."""
    spec = env_spec(name)
    if spec not in env_specs():
        raise unknown_name("environment", name, [known.name for known in env_specs()])
    return spec


def description_of(env: gymnasium.Env[Any, Any]) -> EnvSpec | None:
    """Returns the description of an environment, however it was made; None if there is none."""
    kind, made = type(env.unwrapped), env.spec.id if env.spec else ""
    entry_point = f"{kind.__module__}:{kind.__qualname__}"
    by_id = (spec for spec in env_specs() if spec.id == made)
    return next(by_id, None) or next((spec for spec in env_specs() if spec.entry_point == entry_point), None)


def warm_started(name: str) -> tuple[EnvSpec, WarmStart]:
    """As :func:`described_env`, with how a small policy starts there; ConfigError if there are no demonstrations."""
    spec = described_env(name)
    if spec.warm_start is None:
        raise ConfigError(
            f"The environment {spec.name!r} comes without demonstrations (EnvSpec.warm_start), so without a small "
            f"policy; name a model that is not 'shipped', or take one of {', '.join(warm_started_names())}"
        )
    return spec, spec.warm_start


def warm_started_names() -> tuple[str, ...]:
    """Short names of the environments in which a small policy can start."""
    return tuple(spec.name for spec in env_specs() if spec.warm_start)


def make_env(env_id: str, /, **given: Any) -> gymnasium.Env[Any, Any]:
    """``gymnasium.make``, with its errors in words.

    Raises:
        UnknownNameError: There is no such id, or the environment takes no such argument; with those that there are.
        ConfigError: It cannot be made from these.
    """
    try:
        return gymnasium.make(env_id, **given)
    except SkillCError:
        raise
    except (TypeError, ValueError, gymnasium.error.Error) as error:
        check_env_options(env_id, given)
        reason, _, _ = str(error).partition(" was raised from the environment creator")
        raise ConfigError(
            f"{env_id} cannot be made from {dict(given)} (env= and its options env.x=): {reason}"
        ) from error


def check_env_options(env_id: str, names: Iterable[str]) -> None:
    """Refuses (UnknownNameError) an environment that is not there, or arguments that it does not take."""
    try:
        gymnasium.spec(env_id)
    except gymnasium.error.UnregisteredEnv as error:
        remedy = "Registered ids such as skillc/ALFWorld-v0 work too."
        raise unknown_name("environment", env_id, [spec.name for spec in env_specs()], remedy) from error
    except gymnasium.error.Error:  # no id at all, of which making it tells
        return
    known = _parameters(env_id)
    if known and not any(each.kind is each.VAR_KEYWORD for each in known.values()):
        for name in names:
            if name not in (*known, *inspect.signature(gymnasium.make).parameters):
                raise unknown_name(f"option of {env_id}", name, known)


def _parameters(env_id: str) -> Mapping[str, inspect.Parameter]:
    """The arguments that an environment takes; empty where it is not registered under exactly this id."""
    found = gymnasium.registry.get(env_id)
    if found is None or found.entry_point is None:
        return {}
    maker = load_reference(found.entry_point) if isinstance(found.entry_point, str) else found.entry_point
    return inspect.signature(maker).parameters


def short_type(task_type: str) -> str:
    """A task type's name as narrow as it stays clear: ``pick_heat_then_place_in_recep`` is ``heat``.

    A type that environments call differently goes by its own name.
    """
    named = {spec.task_types[task_type] for spec in env_specs() if task_type in spec.task_types}
    return named.pop() if len(named) == 1 else task_type


@functools.cache
def _register_installed() -> None:
    for found in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            spec = found.load()
        except Exception as error:  # a package of somebody else's may raise anything
            why = f"{type(error).__name__}: {error}"
            raise ConfigError(
                f"The entry point {found.value!r} of {ENTRY_POINTS} cannot be loaded ({why}): mend the package that "
                "names it, or uninstall it"
            ) from error
        if not isinstance(spec, EnvSpec):
            raise ConfigError(
                f"The entry point {found.value!r} of {ENTRY_POINTS} must name an EnvSpec, got {spec!r:.80}"
            )
        register(spec)
