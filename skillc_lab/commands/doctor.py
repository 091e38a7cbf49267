"""``skillc doctor``: say what is installed, which data is seen, and what will run."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import gymnasium

import skillc_gym
from skillc_gym.envs.registry import EnvSpec, env_spec, env_specs, make_env
from skillc_gym.errors import ConfigError, SkillCError, missing_extra, unknown_name
from skillc_gym.files import cache_folder
from skillc_gym.version import __version__
from skillc_lab.cli.command import Command, say
from skillc_lab.cli.extras import PURPOSES, checkout, declared_extras, version_of
from skillc_lab.planning import episode_length
from skillc_lab.studies import cores
from trainers.config import TrainConfig
from trainers.engines import engine_spec
from trainers.models import context_limit, load_tokenizer
from trainers.rollout import make_chat
from trainers.tracking import complete_settings

Status = Literal["ok", "missing", "note"]


@dataclass(frozen=True)
class DoctorOptions:
    """Say what is installed, which data and devices are seen, what will run, and what mends the rest.

    The exit status is 0 unless something that was asked for here by name cannot run.

    Example: skillc doctor --env alfworld --data generated --model shipped
    """

    env: str | None = None
    """Environment that shall run; all if none."""
    data: str | None = None
    """Its data: a folder, an archive, or "generated"; none looks where the environment looks."""
    model: str | None = None
    """Checkpoint whose context limit is compared with the environment's episodes."""
    engine: str | None = None
    """Engine that shall generate."""
    form: str | None = None
    """Form of the prompts, as in training; what the policy was made with if none."""
    max_context: int | None = None
    """Longest row in tokens, as in training; what the policy was made with if none."""
    json: bool = False
    """Write JSON."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment, as in training; singly as env.generator='{"size": "small"}'."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, under a heading: what is there, and the command that mends it."""

    section: str
    name: str
    status: Status
    """"ok", "missing", or "note" for what limits without stopping anything."""
    found: str
    remedy: str = ""
    asked: bool = False
    """Whether it was asked for by name, so that its absence is a failure."""


def _run(options: DoctorOptions) -> int:
    findings = examine(options)
    say(json.dumps([asdict(finding) for finding in findings], indent=2) if options.json else _page(findings))
    return 2 if any(finding.asked and finding.status == "missing" for finding in findings) else 0


def _page(findings: Sequence[Finding]) -> str:
    marks: Mapping[Status, str] = {"ok": "ok", "missing": "--", "note": "!!"}
    lines: list[str] = []
    for section in dict.fromkeys(finding.section for finding in findings):
        lines += ["", section]
        for finding in (each for each in findings if each.section == section):
            lines.append(f"  {marks[finding.status]:<3} {finding.name}: {finding.found}")
            lines += [f"      {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines[1:])


def examine(asked: DoctorOptions) -> list[Finding]:
    """Looks at everything, what is asked for by name above all; no weights are fetched or loaded."""
    if asked.data is not None and asked.env is None:
        raise ConfigError(f"--data {asked.data} is of one environment; name it by --env")
    if asked.env_options and asked.env is None:
        raise ConfigError(f"The options {dict(asked.env_options)} are of one environment; name it by --env")
    specs = env_specs() if asked.env is None else (_named(asked.env),)
    found = [*_software(), *_machine()]
    for spec in specs:
        found += _data(spec, asked)
    found += _caches()
    if asked.engine:
        found += _checked("machine", f"engine={asked.engine}", lambda: _engine(str(asked.engine)))
    if asked.model:
        contexts = [_context(asked, spec) for spec in specs if spec.warm_start or asked.env]
        # Some models come with some environments; it is missing where it is found in none.
        there = [each for each in contexts if each.status != "missing"]
        found += there or contexts
    return found


def _named(name: str) -> EnvSpec:
    """The environment of a name, which must exist; one without a description is Gymnasium's own."""
    spec = env_spec(name)
    if spec not in env_specs() and spec.id not in gymnasium.registry:
        near = [text for known in env_specs() for text in (known.name, known.id)]
        raise unknown_name("environment", name, near, "One of your own is written module:id.")
    return spec


# Software ------------------------------------------------------------------------------------------------------------


def _software() -> Iterator[Finding]:
    root, declared = checkout(), declared_extras()
    where = f"checkout at {root}" if root else f"installed at {Path(skillc_gym.__file__).parent.parent}"
    yield Finding("software", "skillc-gym", "ok", f"{__version__}, {where}")
    yield Finding("software", "Python", "ok", f"{platform.python_version()} on {platform.platform(terse=True)}")
    absent = {extra: [name for name in packages if version_of(name) is None] for extra, packages in declared.items()}
    for extra in (each for each in PURPOSES if each in declared and not absent[each]):
        said = ", ".join(f"{name} {version_of(name)}" for name in declared[extra])
        yield Finding("software", f"extra {extra}", "ok", said)
    missing = [f"{extra} ({', '.join(absent[extra])}: {PURPOSES[extra]})" for extra in PURPOSES if absent.get(extra)]
    if missing:
        remedy = "pip install 'skillc-gym[NAME]', or in a checkout pip install -e '.[NAME]'"
        yield Finding("software", "extras that are not installed", "missing", "; ".join(missing), remedy)
    others = [extra for extra in declared if extra not in PURPOSES]
    whole = ", ".join(extra for extra in others if not absent[extra])
    yield Finding("software", "other extras", "ok", f"{whole or 'none'} installed, of {', '.join(others) or 'none'}")


# Machine -------------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "processor", "ok", f"{cores()} cores, {_memory()}")
    free = shutil.disk_usage(Path.cwd()).free
    remedy = "free some space, or write runs elsewhere with run=" if free < 2**30 else ""
    yield Finding("machine", "disk", "note" if remedy else "ok", f"{_size(free)} free here", remedy)
    if version_of("torch") is None:
        return
    import torch

    if not torch.cuda.is_available():
        yield Finding(
            "machine", "GPU", "note", "none that torch sees: small policies train, large models and vLLM do not"
        )
    for index in range(torch.cuda.device_count()):
        name = torch.cuda.get_device_name(index)
        yield Finding("machine", f"GPU {index}", "ok", f"{name}, {_size(torch.cuda.mem_get_info(index)[1])}")


def _memory() -> str:
    try:
        return f"{_size(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))} of memory"
    except (AttributeError, ValueError, OSError):
        return "memory unknown"


def _size(amount: int) -> str:
    return f"{amount / 2**30:,.1f} GiB"


def _engine(name: str) -> str:
    spec = engine_spec(name)
    extra = name if name in declared_extras() else "train"
    for package in declared_extras().get(extra, ()):
        if version_of(package) is None:
            raise missing_extra(package, extra)
    return "there" + ("" if spec.exact_logprobs else "; its log-probabilities are corrected in the objective")


# Data ----------------------------------------------------------------------------------------------------------------


def _data(spec: EnvSpec, asked: DoctorOptions) -> Iterator[Finding]:
    """Whether an environment opens on the data that is asked for, or found by itself, and on generated ones."""
    options = asked.env_options
    if spec.warm_start and asked.data is None:
        generator = spec.warm_start.generator
        few = {name: min(value, 20) if isinstance(value, int) else value for name, value in generator.items()}
        generated = {"data": "generated", "generator": few, **options}
        yield from _checked("data", f"{spec.name}, generated", lambda: _tasks(spec, generated), asked=bool(options))
        options = {name: value for name, value in options.items() if name != "generator"}  # real ones have none
    named = {**({} if asked.data is None else {"data": asked.data}), **options}
    which = asked.data or ("real" if spec.warm_start else "")
    title = f"{spec.name}, {which}" if which else spec.name
    needed = asked.data is not None or (asked.env is not None and spec.warm_start is None)
    yield from _checked("data", title, lambda: _tasks(spec, named), asked=needed)


def _tasks(spec: EnvSpec, options: Mapping[str, Any]) -> str:
    env = make_env(spec.id, **options)
    try:
        tasks = getattr(env.unwrapped, "task_ids", None)
        if tasks is None:
            raise ConfigError(f"{spec.id} has no task_ids, as environments of text tasks have: skillc environments")
        env.reset(seed=0)
        return f"{spec.id} plays; {len(tasks):,} tasks in its split"
    finally:
        env.close()


def _checked(section: str, name: str, look: Callable[[], str], *, asked: bool = True) -> Iterator[Finding]:
    """What a look finds; its error says what is missing and what mends it."""
    try:
        yield Finding(section, name, "ok", look(), asked=asked)
    except (SkillCError, gymnasium.error.Error) as error:
        yield Finding(section, name, "missing", str(error), asked=asked)


def _caches() -> Iterator[Finding]:
    place = cache_folder("webshop")
    built = len(list(place.glob("*/manifest.json"))) if place.is_dir() else 0
    yield Finding("data", "built catalogues", "ok", f"{built} in {place} (SKILLC_CACHE names another folder)")
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    known = len(list(hub.glob("models--*"))) if hub.is_dir() else 0
    reach = "nothing is fetched: HF_HUB_OFFLINE is set" if offline else "models named organisation/model are fetched"
    yield Finding("data", "models of a hub", "ok", f"{known} in {hub}; {reach}")


# Model ---------------------------------------------------------------------------------------------------------------


def _context(asked: DoctorOptions, spec: EnvSpec) -> Finding:
    """Whether an episode at its step limit fits the model and ``max_context``."""
    name = f"{asked.model} in {spec.name}"
    try:
        config = _played(asked, spec)
        limit = context_limit(config)
        chat = make_chat(config, load_tokenizer(config))
        length = episode_length(config, chat.prompt) if spec.warm_start else None
    except SkillCError as error:
        return Finding("model", name, "missing", str(error), asked=True)
    takes = f"the model takes {'any number' if limit is None else f'{limit:,}'}, max_context is {config.max_context:,}"
    if length is None:
        return Finding("model", name, "note", f"no expert plays here, so no episode is measured; {takes}")
    room = config.max_context if limit is None else min(limit, config.max_context)
    said = f"an episode of {length.steps} steps takes about {length.longest:,} tokens in {config.form} form; {takes}"
    if length.longest <= room:
        return Finding("model", name, "ok", said)
    longer = f" (a model with a longer context than {limit:,} too)" if limit and length.longest > limit else ""
    remedy = (
        f"episodes end after some {length.steps_within(room)} steps: raise max_context{longer}, or prompt turn by turn "
        "with form=window:5"
    )
    return Finding("model", name, "note", said, remedy)


def _played(asked: DoctorOptions, spec: EnvSpec) -> TrainConfig:
    """What the model would be played with: what is asked for, then what its folder says."""
    named = {name: getattr(asked, name) for name in ("data", "form", "max_context")}
    given = {name: value for name, value in named.items() if value is not None}
    given |= {"model": str(asked.model), "env": spec.name, "env_options": asked.env_options}
    return TrainConfig(**complete_settings(given, learning=False)[0])


COMMAND = Command(DoctorOptions, _run)
