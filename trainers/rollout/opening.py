"""What a configuration plays: its tasks, environments, wordings and skills, and the policy that plays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skill_library import SkillLibrary, load_library
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import env_specs
from skillc_gym.errors import ConfigError, unknown_name
from trainers.base import load_object
from trainers.config import TrainConfig
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import GroupRollouts
from trainers.rollout.policies import Policy, TokenPolicy
from trainers.rollout.rows import Prompts

if TYPE_CHECKING:
    from trainers.engines import Engine


def tasks_of(config: TrainConfig) -> dict[str, str]:
    """Task type of every task of the configured split.

    Raises:
        ConfigError: If the environment does not list its tasks by type.
    """
    with open_env(config) as core:
        try:
            return {task: core.task_type_of(task) for task in core.task_ids}
        except AttributeError as error:
            raise ConfigError(
                f"{config.env_id} cannot be trained on: training needs task_ids and task_type_of(task_id) ({error})."
            ) from error


@contextmanager
def open_env(config: TrainConfig) -> Iterator[Any]:
    """The configured environment without wrappers, to ask it for its tasks; closed in the end."""
    kwargs = {key: value for key, value in config.env_kwargs.items() if key != "max_episode_steps"}
    env = _make_env(config.env_id, kwargs)
    try:
        yield env.unwrapped
    finally:
        env.close()


def _make_env(env_id: str, kwargs: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(env_id, **kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        remedy = "Registered ids such as skillc/ALFWorld-v0 work too."
        raise unknown_name("environment", env_id, [spec.name for spec in env_specs()], remedy) from error
    except TypeError as error:
        raise ConfigError(
            f"{env_id} cannot be made from {dict(kwargs)} (env= and its options env.x=): {error}"
        ) from error


def chat_format(config: TrainConfig) -> ChatFormat:
    """The configured wording of the prompts: the environment's own where it has one of that name."""
    named = config.env_spec.chat_format(config.chat).with_form(config.form)
    return ChatFormat.from_dict({**named.to_dict(), **config.chat_options})


def make_chat(config: TrainConfig, tokenizer: Any) -> ChatTokens:
    """Turns the configured chats into tokens.

    Raises:
        ConfigError: If the chat template does not serve the configured form of prompts.
    """
    return ChatTokens(
        tokenizer,
        growing=chat_format(config).form == "conversation",
        thoughts=config.thoughts,
        options=config.template_options,
    )


def token_policy(config: TrainConfig, chat: ChatTokens, engine: Engine) -> TokenPolicy:
    """The configured policy, over an engine of tokens."""
    growing = chat_format(config).form == "conversation"
    limits = {"max_reply_tokens": config.max_reply_tokens, "max_context": config.max_context}
    return TokenPolicy(engine, chat, growing=growing, **limits)


def make_rollouts(config: TrainConfig, policy: Policy, wrappers: Sequence[Callable[[Any], Any]] = ()) -> GroupRollouts:
    """The configured environments, played by a policy; ``wrappers`` go around the configured ones."""
    configured = [partial(load_object(path, "wrapper"), **options) for path, options in config.env_wrappers.items()]
    return GroupRollouts(
        config.env_id,
        policy,
        chat_format=chat_format(config),
        library=config.skill_library,
        skill_grade=config.skill_grade,
        env_kwargs=config.env_kwargs,
        max_parallel=config.max_parallel,
        require_think=config.require_think,
        wrappers=[*configured, *wrappers],
    )


def make_prompts(config: TrainConfig, chat: ChatTokens) -> Prompts:
    """Renders training rows behind other prompts, in the configured wording."""
    return Prompts(chat, chat_format(config), graded_library(config), config.max_context)


def graded_library(config: TrainConfig) -> SkillLibrary | None:
    """The configured skill library, as much of it as is shown; None without one."""
    return load_library(config.skill_library).graded(config.skill_grade) if config.skill_library else None
