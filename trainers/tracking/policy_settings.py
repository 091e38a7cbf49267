"""What a policy was made with, kept beside its weights: commands take it where they are told nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_library.errors import SkillCError
from skill_library.loader import BUILT_IN
from skillc_gym.envs.registry import CHAT_READERS, env_spec
from skillc_gym.errors import CheckpointError, ConfigError
from trainers.base import named_folder
from trainers.config import TrainConfig
from trainers.config.groups import require_meant
from trainers.tracking.files import read_object, write_json

SETTINGS_FILE = "skillc_settings.json"
"""In the folder of a policy that was trained or cloned here."""

_VERSION = 1
_TASKS = ("task_types", "env_options", "max_episode_steps")
_WORLD = ("env", "data", *_TASKS, "env_wrappers", "library", "skill_grade", "chat_options")
_WORDING = ("chat", "form", "template_options", "thoughts", "require_think")
_LIMITS = ("max_reply_tokens", "max_context")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "eval_temperature", "eval_greedy")
_ENGINE = ("engine", "engine_options")
"""Only where the engine chose among commands: a policy that learned so need not be able to write them."""
_PARTS: Mapping[str, tuple[str, ...]] = {
    "playing": (*_WORLD, *_WORDING, *_LIMITS, *_SAMPLING, *_ENGINE),
    "learning": ("learning_rate", "adam_beta2", "kl_coef", "micro_batches", "task_sampling"),
}


def save_policy_settings(folder: Path, config: TrainConfig) -> None:
    """Writes what a policy plays and learns with into its folder, the places of data, skills and wording absolute."""
    values = config.to_json()
    left = () if config.engine == "choosing" else _ENGINE
    parts = {
        part: {name: _absolute(name, values[name]) for name in names if name not in left}
        for part, names in _PARTS.items()
    }
    write_json(folder / SETTINGS_FILE, {"version": _VERSION, **parts})


def playing_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of recorded settings those that an evaluation goes by."""
    return {name: values[name] for name in ("model", "revision", "split", "seed", *_PARTS["playing"]) if name in values}


def policy_settings(model: str, env: str) -> dict[str, dict[str, Any]] | None:
    """What lies beside a policy's weights: by part ("playing", "learning"), settings by name; None if nothing does."""
    path = Path(named_folder(model, env) or model) / SETTINGS_FILE
    if not path.is_file():
        return None
    newer = False
    try:
        found = read_object(path)
        newer = isinstance(version := found.get("version"), int) and version > _VERSION
        if version != _VERSION:
            raise ValueError(f"version {version!r}; this version of skillc-gym reads {_VERSION}")
        parts = {part: dict(found[part]) for part in _PARTS}
        for part, names in _PARTS.items():
            if unknown := sorted(set(parts[part]) - set(names)):
                raise ValueError(f"{part} holds no setting called {unknown[0]}")
        TrainConfig(model=model, **parts["playing"], **parts["learning"])
    except (KeyError, TypeError, ValueError, OSError, SkillCError) as error:
        if newer:
            raise CheckpointError(
                f"{path} was written by a newer skillc-gym ({error}); update this one: pip install -U skillc-gym."
            ) from error
        raise CheckpointError(
            f"{path} is damaged ({error}); copy the policy again, or delete the file and give the settings yourself."
        ) from error
    return parts


def settings_beside(model: str, env: str) -> dict[str, Any]:
    """The settings that lie beside a policy's weights, and stand in the place of defaults where they are not given."""
    return {name: value for part in (policy_settings(model, env) or {}).values() for name, value in part.items()}


_HARMLESS = {"engine": ("native",), "noun_tagger": ("builtin", "spacy", None)}
"""Options of environments that may name programs, and what they may be where a policy's folder says it."""


def _require_harmless(model: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuses to run what a policy's folder names beyond the suite, as it may be a stranger's; what is given stands."""
    own = [name for name in ("env", "env_wrappers", "engine") if name not in given]
    foreign = {name: kept[name] for name in own if _is_foreign(name, kept.get(name))}
    asked, options = given.get("env_options") or {}, kept.get("env_options") or {}
    programs = {name: options[name] for name in _HARMLESS.keys() & options.keys() - asked.keys()}
    if programs := {name: value for name, value in programs.items() if value not in _HARMLESS[name]}:
        foreign["env_options"] = programs
    if foreign:
        raise ConfigError(
            f"{model} says that it plays with {_written(foreign)}, which is code or a server of its own; look at it, "
            "and give it yourself if you trust it."
        )


def _is_foreign(name: str, value: Any) -> bool:
    if name == "engine":  # what a policy learned to choose with is all that is ever written
        return value not in (None, TrainConfig.engine, "choosing")
    return bool(value) if name == "env_wrappers" else ":" in str(value or "")


def same_env(one: str, other: str) -> bool:
    """Whether two names are of one environment; those of code (``module:id``) are compared as they stand, not run."""
    return one == other or (":" not in one + other and env_spec(one).id == env_spec(other).id)


def complete_settings(given: Mapping[str, Any], *, learning: bool) -> tuple[dict[str, Any], list[str]]:
    """The given settings, and the policy's own for others (with ``learning``, all of them); lines to say.

    A ConfigError where the policy names code or a server of its own, which are taken from whoever gives them alone.
    """
    given, model, said = dict(given), str(given.get("model", "")), list[str]()
    require_meant(given)
    parts = policy_settings(model, str(given.get("env", TrainConfig.env))) if model else None
    if parts is None:
        return given, said
    playing = parts["playing"]
    if differing := _differing(playing, given):
        told = _written({name: given[name] for name in differing})
        made = _written({name: playing[name] for name in differing})
        said.append(f"Warning: {model} was made with {made}, and {told} was given.")
    # An environment or data of another kind have their own.
    dropped = [*(_WORLD if "env" in differing else _TASKS if "data" in differing else ())]
    # A server's address, or the variable of its key, is never the folder's to say.
    dropped += _ENGINE if "engine" in differing or playing.get("engine") != "choosing" else ()
    dropped += ("chat_options",) if "chat" in differing else ()  # which changed the wording that it was made with
    kept = {name: value for name, value in playing.items() if name not in dropped}
    kept |= parts["learning"] if learning else {}
    _require_harmless(model, {**kept, "engine": playing.get("engine")}, given)
    elsewhere = "data" not in given and kept.get("data") not in (None, "generated")
    if elsewhere and not Path(kept["data"]).exists():
        said.append(f"{model} was made with data={kept['data']}, which is not here; the environment's own is taken.")
        kept["data"] = None
    plain = TrainConfig(model=model).to_json()
    taken = {name: value for name, value in kept.items() if name not in given and value != plain[name]}
    if taken:
        said.append(f"{model} was made with {_written(taken)}: taken as nothing else is given.")
    mixed = {
        name: {**kept[name], **value}
        for name, value in given.items()
        # Wrappers stand in an order of their own.
        if name != "env_wrappers" and isinstance(value, Mapping) and isinstance(kept.get(name), Mapping)
    }
    return {**kept, **given, **mixed}, said


def unlike_policy(config: TrainConfig) -> str:
    """In which settings a configuration is unlike those that its policy was made with, in words; "" if in none."""
    parts = policy_settings(config.model, config.env)
    if parts is None:
        return ""
    made = {name: parts["playing"][name] for name in ("env", "chat_options", *_WORDING) if name in parts["playing"]}
    values = config.to_json()
    unlike = {name: value for name, value in made.items() if not _same(name, value, values[name])}
    played = _written({name: values[name] for name in unlike})
    return f"it was made with {_written(unlike)}, and {played} was played" if unlike else ""


def _differing(made: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Settings that are given and were others; options of a group differ where both name one."""
    plain = {name: _absolute(name, json.loads(json.dumps(given[name]))) for name in made if name in given}
    if plain.get("library") and made["library"] is None:  # the environment's own, which it may be by its name
        own = env_spec(str(given.get("env", made["env"]))).library
        made = {**made, "library": _absolute("library", own)}
    return [
        name
        for name, value in plain.items()
        if (
            any(made[name].get(key, inner) != inner for key, inner in value.items())
            if isinstance(made[name], Mapping) and isinstance(value, Mapping)
            else not _same(name, made[name], value)
        )
    ]


def _same(name: str, one: Any, other: Any) -> bool:
    return same_env(one, other) if name == "env" else bool(_absolute(name, one) == _absolute(name, other))


def _absolute(name: str, value: Any) -> Any:
    """A setting; where it is a place, as every folder knows it."""
    if name == "chat":
        reader, _, folder = str(value).partition(":")
        place = Path(folder).expanduser()
        return f"{reader}:{place.resolve()}" if reader in CHAT_READERS and folder and place.is_dir() else value
    if name not in ("data", "library") or value in (None, "", "generated", *BUILT_IN):
        return value
    if Path(value).exists():
        return str(Path(value).resolve())
    stem, colon, control = value.rpartition(":")  # a library's control, such as mine:blank
    own = name == "library" and colon and stem not in BUILT_IN and Path(stem).exists()
    return f"{Path(stem).resolve()}:{control}" if own else value


def _written(values: Mapping[str, Any]) -> str:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        group = name.removesuffix("_options")
        grouped = name != group and isinstance(value, Mapping)
        flat |= {f"{group}.{key}": inner for key, inner in value.items()} if grouped else {name: value}
    return " ".join(f"{name}={each if isinstance(each, str) else json.dumps(each)}" for name, each in flat.items())
