"""What a configuration plays: tasks, to train on or held back; environments, wordings, skills, and the policy."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from skill_library import SkillLibrary, load_library
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import make_env
from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.panels import panel_hash, ranked, tasks_by_type
from skillc_gym.vector import PairedVectorEnv
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, find_wrapper
from trainers.base import TaskSampling, load_object
from trainers.config import TrainConfig
from trainers.engines.types import Engine
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import GroupRollouts
from trainers.rollout.policies import Policy, TokenPolicy
from trainers.rollout.rows import Prompts


def tasks_of(config: TrainConfig) -> dict[str, str]:
    """Task type of every task of the configured split; a ConfigError if the environment does not list them by type.

    Where the environment names its splits, an UnknownNameError for any other one.
    """
    require_split(config)
    with open_env(config) as core:
        try:
            return {task: core.task_type_of(task) for task in core.task_ids}
        except AttributeError as error:
            raise ConfigError(
                f"{config.env_id} cannot be trained on: training needs task_ids and task_type_of(task_id) ({error})."
            ) from error


def require_split(config: TrainConfig) -> None:
    """Refuses a split that is not among those named; the default, and "all", an environment may have beside them."""
    split, named = config.env_kwargs["split"], config.env_spec.splits
    if named and split not in (*named, TrainConfig.split, "all"):
        raise unknown_name("split", split, named)


@contextmanager
def open_env(config: TrainConfig) -> Iterator[Any]:
    """The configured environment without wrappers, to ask it for its tasks; closed in the end."""
    kwargs = {key: value for key, value in config.env_kwargs.items() if key != "max_episode_steps"}
    with closing(make_env(config.env_id, **kwargs)) as env:
        yield env.unwrapped


def chat_format(config: TrainConfig) -> ChatFormat:
    """The configured wording of the prompts: the environment's own where it has one of that name."""
    named = config.env_spec.chat_format(config.chat).with_form(config.form)
    return ChatFormat.from_dict({**named.to_dict(), **config.chat_options})


def chat_sha256(config: TrainConfig) -> str:
    """Hash of that wording: a name may stand for a file, or for another text in another version."""
    return hashlib.sha256(json.dumps(chat_format(config).to_dict(), sort_keys=True, default=str).encode()).hexdigest()


def require_library(config: TrainConfig) -> None:
    """Refuses (ConfigError) an environment without skills: evaluations and validations play each task with and without.

    A method that shows none, such as grpo, is validated in both conditions too. Environments may bring a switch.
    """
    if config.skill_library is None and not _switchable(config):
        raise ConfigError(
            f"env={config.env} has no skills of its own, and every evaluation, as every validation of a training, "
            "plays each task with a skill and without. Name a folder of skills by library=FOLDER: one file, "
            'FOLDER/general/SKILL.md with `task_types: ["*"]`, is enough (`skillc skills check FOLDER` reads it).'
        )
    if config.skill_library is None and config.skill_grade != "full":
        raise ConfigError(
            f"skill_grade={config.skill_grade} shortens a library's texts, and env={config.env} shows skills by a "
            "switch of its own; leave it out, or name the skills by library=FOLDER."
        )


def _switchable(config: TrainConfig) -> bool:
    with closing(make_env(config.env_id, **config.env_kwargs)) as env:
        return find_wrapper(reduce(lambda env, wrap: wrap(env), _wrappers(config), env), SkillInjection) is not None


def make_chat(config: TrainConfig, tokenizer: Any) -> ChatTokens:
    """Turns the configured chats into tokens; a ConfigError if the template does not serve their form."""
    return ChatTokens(
        tokenizer,
        growing=chat_format(config).form == "conversation",
        thoughts=config.thoughts,
        options=config.template_options,
    )


def token_policy(config: TrainConfig, chat: ChatTokens, engine: Engine) -> TokenPolicy:
    """The configured policy, over an engine of tokens."""
    return TokenPolicy(engine, chat, max_reply_tokens=config.max_reply_tokens, max_context=config.max_context)


def make_rollouts(config: TrainConfig, policy: Policy, wrappers: Sequence[Callable[[Any], Any]] = ()) -> GroupRollouts:
    """The configured environments, played by a policy; ``wrappers`` go around the configured ones."""
    wording = chat_format(config)
    reading = partial(ActionFormat, require_think=config.require_think, tail=wording.reply_tail)
    environments = partial(
        PairedVectorEnv,
        config.env_id,
        library=config.skill_library,
        where="info",
        skill_grade=config.skill_grade if config.skill_library else "full",
        wrappers=(*_wrappers(config), *wrappers, reading, partial(ChatPrompt, chat_format=wording)),
        **config.env_kwargs,
    )
    return GroupRollouts(policy, environments, config.max_parallel)


def _wrappers(config: TrainConfig) -> list[Callable[[Any], Any]]:
    return [_wrapper(path, options) for path, options in config.env_wrappers.items()]


def _wrapper(path: str, options: object) -> Callable[[Any], Any]:
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"env_wrappers: the options of {path} are values by their names, {{}} for none; got {options!r}."
        )
    wrapper = load_object(path, "wrapper")
    try:
        taken = inspect.signature(wrapper)
    except ValueError:  # written in C, and without one
        return partial(wrapper, **options)
    try:
        taken.bind(None, **options)
    except TypeError as error:
        raise ConfigError(
            f"env_wrappers: {path} takes {taken}, an environment and its options, and got {dict(options)} ({error})."
        ) from error
    return partial(wrapper, **options)


def make_prompts(config: TrainConfig, chat: ChatTokens) -> Prompts:
    """Renders training rows behind other prompts, in the configured wording."""
    return Prompts(chat, chat_format(config), graded_library(config), config.max_context)


def graded_library(config: TrainConfig) -> SkillLibrary | None:
    """The configured skill library, as much of it as is shown; None without one."""
    return load_library(config.skill_library).graded(config.skill_grade) if config.skill_library else None


def library_sha256(config: TrainConfig) -> str:
    """Hash of the texts of the configured skill library as they are shown; empty without one."""
    library = graded_library(config)
    return library.sha256 if library else ""


def tasks_sha256(config: TrainConfig, tasks: Iterable[str]) -> str:
    """Hash of what identifies tasks beside their names; empty where the environment does not say."""
    with open_env(config) as env:
        identify = getattr(env, "identify", None)
        told = identify(sorted(tasks)) if identify else {}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest() if told else ""


def words_sha256(tokenizer: Any) -> str:
    """Hash of what turns conversations into tokens: the chat template and the vocabulary."""
    told = [tokenizer.chat_template, sorted(tokenizer.get_vocab().items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True)
class TaskSplit:
    """A split's tasks, dealt to training and to the curriculum's fixed panel; both sorted."""

    training: tuple[str, ...]
    panel: tuple[str, ...]
    type_of: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Hash over both lists, recorded with every run."""
        return panel_hash([*self.training, "", *self.panel])


def split_tasks(type_of: Mapping[str, str], per_type: int, seed: int) -> TaskSplit:
    """Holds back a panel of each type, at most half of its tasks, chosen by hash; adding a task moves no other."""
    for kind, ids in tasks_by_type(type_of).items():
        if len(ids) < 2:
            raise ConfigError(
                f"Task type {kind!r} has {len(ids)} task; training and the held-back panel need at least one each. "
                "Leave the type out (task_types=...) or use more games."
            )
    held_back = panel_of(type_of, per_type, seed, share=0.5)
    training = tuple(sorted(set(type_of).difference(held_back)))
    return TaskSplit(training, held_back, dict(type_of))


def panel_of(type_of: Mapping[str, str], per_type: int, seed: int, *, share: float = 1.0) -> tuple[str, ...]:
    """Chooses so many tasks of each type by hash, at most the given share of a type's tasks; sorted."""
    chosen: list[str] = []
    for ids in tasks_by_type(type_of).values():
        chosen += ranked(ids, seed)[: min(per_type, int(len(ids) * share))]
    return tuple(sorted(chosen))


def sample_tasks(split: TaskSplit, count: int, how: TaskSampling, *, seed: int, step: int) -> list[str]:
    """An update's tasks by nothing but the arguments, different unless too few: of all, or of the types in turn."""
    rng = np.random.default_rng([seed, step])
    if how == "uniform":
        return _some(split.training, count, rng)
    pools = list(tasks_by_type({task: split.type_of[task] for task in split.training}).values())
    wanted = [(step * count + i) % len(pools) for i in range(count)]
    return [task for i, pool in enumerate(pools) for task in _some(pool, wanted.count(i), rng)]


def _some(pool: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    picked = rng.choice(len(pool), size=count, replace=count > len(pool))
    return [pool[int(i)] for i in picked]
