"""What training and evaluation have in common: tasks, tokenizer, model, environments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import env_specs
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, missing_extra, unknown_name
from trainers.config import TrainConfig
from trainers.rollout.chat_tokens import ChatTokens, load_chat_template
from trainers.rollout.collect import GroupRollouts

if TYPE_CHECKING:
    from trainers.engines import Engine

__all__ = ["chat_format", "load_model", "load_tokenizer", "make_rollouts", "open_env", "tasks_of", "without_bars"]


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
    """The configured wording of the prompts."""
    named = ChatFormat.named(config.chat).with_form(config.form)
    return ChatFormat.from_dict({**named.to_dict(), **config.chat_options})


def _pretrained(load: Callable[..., Any], config: TrainConfig, **options: Any) -> Any:
    try:
        return load(config.model_path, **options)
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        if Path(config.model_path).is_dir():
            raise CheckpointError(
                f"The folder model={config.model!r} holds no usable transformers checkpoint ({said}). It needs "
                "config.json, weights and tokenizer files; copy it again, or make one with `skillc make-policy`."
            ) from error
        if not isinstance(error, OSError):
            raise
        raise MissingDataError(
            f"No checkpoint at model={config.model!r}: neither a folder with a transformers checkpoint nor a name that "
            f"could be fetched ({said})."
        ) from error


def load_tokenizer(config: TrainConfig) -> Any:
    """The model's tokenizer, with the configured chat template.

    Raises:
        MissingDataError: If there is no such checkpoint.
        CheckpointError: If the folder does not hold a usable one.
        MissingExtraError: If transformers is not installed.
    """
    try:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    except ImportError as error:
        raise missing_extra("transformers", "train") from error
    # Auto classes prefer the model family's tokenizer to the one in the folder, also where that is of another kind.
    own = _declared_class(config.model_path) in ("TokenizersBackend", "PreTrainedTokenizerFast")
    tokenizer = _pretrained((PreTrainedTokenizerFast if own else AutoTokenizer).from_pretrained, config)
    if config.chat_template:
        load_chat_template(tokenizer, config.chat_template)
    return tokenizer


def _declared_class(model: str) -> str | None:
    path = Path(model) / "tokenizer_config.json"
    if not path.is_file():
        return None
    try:
        declared: str | None = json.loads(path.read_text(encoding="utf-8")).get("tokenizer_class")
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read ({error}); copy the checkpoint again.") from error
    return declared


def load_model(config: TrainConfig) -> Any:
    """The policy to start from, in the configured precision.

    Raises:
        MissingDataError: If there is no such checkpoint.
        CheckpointError: If the folder does not hold a usable one.
        MissingExtraError: If torch or transformers is not installed.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise missing_extra("torch and transformers", "train") from error
    pure = config.precision == "pure_bfloat16"
    return _pretrained(
        AutoModelForCausalLM.from_pretrained,
        config,
        dtype=torch.bfloat16 if pure else torch.float32,
        attn_implementation="sdpa",
    )


def make_rollouts(config: TrainConfig, chat: ChatTokens, engine: Engine) -> GroupRollouts:
    """The configured environments, played by an engine."""
    return GroupRollouts(
        config.env_id,
        engine=engine,
        chat=chat,
        chat_format=chat_format(config),
        library=config.skill_library,
        env_kwargs=config.env_kwargs,
        max_reply_tokens=config.max_reply_tokens,
        max_context=config.max_context,
        max_parallel=config.max_parallel,
        require_think=config.require_think,
    )


@contextmanager
def without_bars() -> Iterator[None]:
    """Hides transformers' own progress bars, which would tear the display apart."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
