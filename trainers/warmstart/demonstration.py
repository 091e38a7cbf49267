"""Demonstrations for behaviour cloning: an expert plays with and without skills, and errs more often without them.

The dependence on skills is put there on purpose and in the open: without a skill in the prompt the demonstrator
leaves out the type's essential step (heating, choosing a product's options, ...) with a probability per type; with one
it almost never does. A policy cloned from it therefore profits from skills, and has something to internalise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import make_env, warm_started
from skillc_gym.envs.warm_start import Demonstrator, MistakenDemonstrator
from skillc_gym.errors import ConfigError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from trainers.base import Count, Fraction, check_values
from trainers.rollout.chat_tokens import without_thoughts

IDLE_STEPS = 2
"""A demonstrator that erred and thinks it is done waits this many steps; then the demonstration ends."""


@dataclass(frozen=True)
class DemonstrationConfig:
    """What is demonstrated, and how often the essential step is left out."""

    env: str = "alfworld"
    """The environment's short name."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment: data, split, generator options, ..."""
    error_rates_without_skill: Mapping[str, float] | None = None
    """Probability per task type that a skill-free demonstration leaves out the essential step; None: as the
    environment's description has it."""
    error_rate_with_skill: Fraction = 0.03
    """The same with the skill in the prompt, for every type."""
    slips: Fraction = 0.0
    """Probability per step of a slip: an impossible command, at times after a wrong thought, half of them the mistake
    that the expert knows of. It is in the context, and is not imitated; what comes after it teaches to recover. Only
    where the environment lists its commands."""
    max_steps: Count = 30
    """Demonstrations stop after this many commands, whatever they reached."""
    thoughts: bool = True
    """Whether replies begin with the expert's thought; without, they are the command alone."""


@dataclass(frozen=True)
class Demonstration:
    """One demonstrated episode as a chat."""

    task_id: str
    task_type: str
    condition: int
    won: bool
    messages: list[dict[str, str]]
    slips: frozenset[int] = frozenset()
    """Which of the assistant's turns are slips, counted from 0."""


def _make_env(config: DemonstrationConfig, chat_format: ChatFormat) -> gymnasium.Env[str, str]:
    spec, start = warm_started(config.env)
    if config.slips and not start.slips:
        raise ConfigError(f"Demonstrations have no slips in {config.env}; slips must be 0, got {config.slips}.")
    if spec.library is None:
        raise ConfigError(f"Demonstrations show skills, and the description of {spec.id} names no skill library.")
    env = make_env(spec.id, **config.env_kwargs)
    injected = SkillInjection(env, library=spec.library, where="info")
    formatted = ActionFormat(injected, require_think=config.thoughts, tail=chat_format.reply_tail)
    return ChatPrompt(formatted, chat_format)


def _play(
    env: gymnasium.Env[str, str], config: DemonstrationConfig, task_id: str, condition: int, *, errs: bool, seed: int
) -> Demonstration:
    start = warm_started(config.env)[1]
    options = {"task_id": task_id, "skill": bool(condition), **start.skill_options()}
    _, info = env.reset(seed=seed, options=options)
    expert = start.demonstrator(info, errs)
    rng = np.random.default_rng(seed)
    messages, slips, idle, meant = list(info["messages"]), set[int](), 0, ""
    for turn in range(config.max_steps):
        if not meant:
            command = expert.act(info["observation"], info["admissible_commands"])
            meant = _reply_text(expert.thought, command)
        reply = meant
        if rng.random() < config.slips:
            reply = _slip(env, expert, info, rng)
            slips.add(turn)
        else:
            meant = ""
        reply = reply if config.thoughts else without_thoughts(reply)
        _, _, terminated, truncated, info = env.step(reply)
        messages.append({"role": "assistant", "content": reply})
        idle += expert.thought == "done"
        if terminated or truncated or idle == IDLE_STEPS:
            break
        messages.extend(info["new_messages"])
    return Demonstration(task_id, info["task_type"], condition, bool(info["won"]), messages, frozenset(slips))


def _reply_text(thought: str, command: str) -> str:
    """A reply as the small policy's tokenizer writes it: a space around every tag."""
    return f"<think> {thought} </think> <action> {command} </action>"


def _slip(env: gymnasium.Env[str, str], expert: Demonstrator, info: Mapping[str, Any], rng: np.random.Generator) -> str:
    """A command that is impossible now: the expert's typical mistake, or any, after a thought that is right or not."""
    if isinstance(expert, MistakenDemonstrator) and rng.random() < 0.5:
        mistaken = expert.mistake(info["admissible_commands"], rng)
        if mistaken is not None:
            return _reply_text(*mistaken)
    core: Any = env.unwrapped
    possible = frozenset(info["admissible_commands"])
    others = [command for command in core.commands if command not in possible]
    if not others:
        raise ConfigError(f"slips are commands that are impossible, and {env} has none now; give slips=0")
    command = others[int(rng.integers(len(others)))]
    # Half of the slips get another number (go to shelf 7), if that is impossible too. And half of the thoughts, drawn
    # apart, are wrong: they end in what the command names, its last word but one.
    if rng.random() < 0.5:
        changed = f"{command.rsplit(' ', 1)[0]} {int(rng.integers(1, 9))}"
        command = command if changed in possible else changed
    words = expert.thought.split()
    if rng.random() < 0.5 and words:
        words[-1] = command.split()[-2:][0]  # of a command like "look" the word itself
    return _reply_text(" ".join(words), command)


def _error_rates(config: DemonstrationConfig, task_types: Iterable[str]) -> Mapping[str, float]:
    check_values(config)
    named = config.error_rates_without_skill
    given = warm_started(config.env)[1].error_rates if named is None else named
    missing = [kind for kind in task_types if kind not in given]
    if missing:
        raise ConfigError(f"error_rates_without_skill names no probability for {', '.join(missing)}.")
    for kind, rate in given.items():
        if not 0 <= rate <= 1:
            raise ConfigError(f"{kind}: a probability is a number between 0 and 1, got {rate}.")
    return given


def demonstrations(
    config: DemonstrationConfig, chat_format: ChatFormat, *, count: int, seed: int
) -> Iterator[Demonstration]:
    """Plays so many episodes as chats, types and conditions in turn so that any prefix is balanced.

    The seed is of tasks, errors and slips; the policy's training must use the same ``chat_format``. A ConfigError for
    slips where there are none, and for what is no probability.
    """
    with closing(_make_env(config, chat_format)) as env:
        core: Any = env.unwrapped
        by_type: dict[str, list[str]] = {}
        for task_id in core.task_ids:
            by_type.setdefault(core.task_type_of(task_id), []).append(task_id)
        rates, types, rng = _error_rates(config, by_type), sorted(by_type), np.random.default_rng(seed)
        for index in range(count):
            task_type, condition = types[index // 2 % len(types)], index % 2
            task_id = by_type[task_type][int(rng.integers(len(by_type[task_type])))]
            errs = bool(rng.random() < (config.error_rate_with_skill if condition else rates[task_type]))
            yield _play(env, config, task_id, condition, errs=errs, seed=int(rng.integers(2**31)))
