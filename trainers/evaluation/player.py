"""The configured policy, in tokens or in words: it plays, it writes, its tokens are counted, its memory is kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from skillc_gym.errors import CheckpointError, ConfigError
from trainers.base import Usage
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, check_engine, engine_spec
from trainers.engines.text import TextEngine
from trainers.engines.types import ChoosingEngine, Engine
from trainers.memory import MemoryTools, SkillMemory, skill_selectors
from trainers.models import load_model, load_tokenizer, within_model, without_bars
from trainers.recipes import recipe_in
from trainers.rollout.collect import GroupRollouts
from trainers.rollout.opening import (
    chat_sha256,
    graded_library,
    library_sha256,
    make_chat,
    make_rollouts,
    tasks_of,
    tasks_sha256,
    token_policy,
)
from trainers.rollout.policies import EngineChat
from trainers.rollout.text_policy import Journal, ServerChat, TextPolicy
from trainers.tracking.files import read_object, write_json
from trainers.tracking.policy_settings import same_env

Wrappers = Sequence[Callable[[Any], Any]]
_ARMS = {"with": (1,), "without": (0,), "all": (0, 1)}

_DECISIVE = (
    *("model", "engine", "env", "data", "split", "task_types", "env_options", "max_episode_steps", "library"),
    "skill_grade",
    *("chat", "form", "chat_options", "require_think", "max_reply_tokens"),
)
_PATIENCE = (
    *("base_url", "key_variable", "timeout", "deadline", "retries", "first_wait", "longest_wait", "stream"),
    *("requests_per_minute", "token_budget", "input_price", "output_price"),
)

_WRITTEN = 512
"""Tokens that a writer's reply may have at least."""


class TokenPlayer:
    """A policy that answers in tokens; arguments as of :func:`policy_player`."""

    def __init__(self, config: TrainConfig, engine: Engine | None = None, memory: SkillMemory | None = None) -> None:
        self._config, self._memory = within_model(config), memory
        tokenizer = load_tokenizer(self._config)
        self._chat = make_chat(self._config, tokenizer)
        self.max_context: int | None = self._config.max_context
        if engine is None:
            checkpoint = CheckpointModel(self._chat.eos_ids, self._config, lambda: load_model(self._config))
            with without_bars():
                engine = engine_spec(self._config.engine).for_checkpoint(checkpoint)
        self._engine = engine
        # A policy made from demonstrations knows their words alone, and so does what was trained from it.
        core = getattr(tokenizer, "backend_tokenizer", None)
        words_alone = core is not None and type(core.model).__name__ == "WordLevel"
        self.writes = not words_alone and not isinstance(engine, ChoosingEngine)

    def rollouts(
        self, config: TrainConfig, wrappers: Wrappers = (), label: str = "", *, preparing: bool = False
    ) -> GroupRollouts:
        """Plays a configuration of the same policy."""
        within = config.with_(max_context=self._config.max_context)
        rollouts = make_rollouts(within, token_policy(within, self._chat, self._engine), wrappers)
        if self._memory is not None:
            rollouts.choose_skills = partial(skill_selectors, self._memory, training=False)
        return rollouts

    def chat(self, seed: int, journal: Path | None = None) -> EngineChat:
        """The policy as a writer; its replies cost nobody money, so it keeps no journal of them."""
        longest = max(_WRITTEN, self._config.max_reply_tokens)
        return EngineChat(self._engine, self._chat, seed=seed, max_tokens=longest, max_context=self.max_context)

    def usage(self) -> None:
        """Nobody counts its tokens for money."""


class TextPlayer:
    """A policy that answers in words; arguments as of :func:`policy_player`."""

    max_context: int | None = None
    """Its server knows."""
    writes = True
    """Whether it is a language model."""

    def __init__(
        self, config: TrainConfig, engine: TextEngine, folder: Path | None, asked: Mapping[str, Any] | None = None
    ) -> None:
        self._config, self._engine = config, engine
        wrappers = config.to_json()["env_wrappers"]
        # Left out where there are none, so that journals of older versions go on.
        header = {**decisive_settings(config), **({"env_wrappers": wrappers} if wrappers else {})}
        if folder is not None:
            header |= {"tasks_sha256": tasks_sha256(config, tasks_of(config)), "chat_sha256": chat_sha256(config)}
            header |= {
                name: config.to_json()[name] for name in ("seed", "panel_seed", "eval_temperature", "eval_greedy")
            }
            header |= {"evaluation": asked} if asked else {}
        self._journal = None if folder is None else Journal(folder / "journal.jsonl", header)
        self._policies: list[tuple[TextPolicy, bool]] = []
        self._chats: list[ServerChat] = []

    def rollouts(
        self, config: TrainConfig, wrappers: Wrappers = (), label: str = "", *, preparing: bool = False
    ) -> GroupRollouts:
        """Plays a configuration of the same policy; as of :class:`TokenPlayer`."""
        limit = config.max_reply_tokens
        policy = TextPolicy(self._engine, max_reply_tokens=limit, journal=self._journal, label=label)
        self._policies.append((policy, preparing))
        return make_rollouts(config, policy, wrappers)

    def chat(self, seed: int, journal: Path | None = None) -> ServerChat:
        """The policy as a writer, whose replies are kept in a journal of their own, or in that of the episodes."""
        longest, at_once = max(_WRITTEN, self._config.max_reply_tokens), self._config.max_parallel
        kept = self._journal if journal is None else Journal(journal, decisive_settings(self._config))
        chat = ServerChat(self._engine, seed=seed, max_parallel=at_once, journal=kept, max_tokens=longest)
        self._chats.append(chat)
        return chat

    def usage(self) -> dict[str, Any]:
        """Tokens and cost by condition; episodes of a preparation and replies of a writer have rows of their own."""
        played = [entry for policy, preparing in self._policies if not preparing for entry in policy.used]
        report = {
            name: self._row([usage for condition, usage in played if condition in arm]) for name, arm in _ARMS.items()
        }
        if prepared := [usage for policy, preparing in self._policies if preparing for _, usage in policy.used]:
            report["preparing"] = self._row(prepared)
        if any(chat.asked for chat in self._chats):
            report["writer"] = self._row([chat.usage for chat in self._chats], episodes=0)
        return report

    def _row(self, entries: Sequence[Usage], episodes: int | None = None) -> dict[str, Any]:
        """Sums over one entry per episode, unless there were as many ``episodes``; no cost without prices."""
        total = Usage(*(sum(getattr(entry, name) for entry in entries) for name in Usage.__dataclass_fields__))
        # An engine of one's own may have no prices.
        price = getattr(getattr(self._engine, "options", None), "cost", None)
        counted = total.prompt_tokens or total.completion_tokens or not total.requests
        cost = price(total.prompt_tokens, total.completion_tokens) if price is not None and counted else None
        return {"episodes": len(entries) if episodes is None else episodes, **asdict(total), "cost": cost}


PolicyPlayer = TokenPlayer | TextPlayer


def policy_player(
    config: TrainConfig,
    engine: Engine | TextEngine | None = None,
    folder: Path | None = None,
    memory: SkillMemory | None = None,
    asked: Mapping[str, Any] | None = None,
) -> PolicyPlayer:
    """The configured policy, or an ``engine`` in its place; errors say what is missing or does not go together.

    An engine that answers in words keeps its journal in ``folder``, of an evaluation of which that was ``asked``;
    ``memory`` chooses what skill-injected episodes are shown in place of the environment's library.
    """
    check_engine(config.engine, config.engine_options)
    for_text = engine_spec(config.engine).for_text if engine is None else None
    answers = for_text(config) if for_text else engine
    if not isinstance(answers, TextEngine):
        return TokenPlayer(config, answers, memory)
    if memory is not None:
        raise ConfigError(
            f"{config.model} keeps skills of its own, which engine={config.engine!r} cannot show; name an engine that "
            "answers in tokens, or --memory library for the environment's skills"
        )
    if config.eval_sampling.truncates and not config.eval_greedy:
        raise ConfigError(
            f"top_p={config.top_p}, top_k={config.top_k} and min_p={config.min_p} do not reach an engine that answers "
            "in words; give top_p=1, top_k=0 and min_p=0, and send a server its own: engine.body='{\"top_p\": 0.9}'."
        )
    plain = TrainConfig(model=config.model)
    unheard = [name for name in _FOR_TOKENS if getattr(config, name) != getattr(plain, name)]
    if unheard:
        warnings.warn(
            f"An engine that answers in words is not told of {', '.join(unheard)}: no effect. A server takes its own, "
            'such as engine.body=\'{"chat_template_kwargs": {"enable_thinking": false}}\'.',
            stacklevel=2,
        )
    return TextPlayer(config, answers, folder, asked)


_FOR_TOKENS = ("chat_template", "template_options", "thoughts", "max_context")
"""Settings of who turns conversations into tokens."""


def decisive_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide what is asked and answered; patience, price and place do not."""
    values = config.to_json()
    settings = {name: values[name] for name in _DECISIVE}
    options = {name: value for name, value in values["engine_options"].items() if name not in _PATIENCE}
    return {**settings, "engine_options": options, "library_sha256": library_sha256(config)}


MEMORY_FILE = "skill_memory.json"


def save_policy_memory(folder: Path, config: TrainConfig, state: Mapping[str, Any]) -> None:
    """Writes a memory's state beside the weights, with the method that can read it."""
    options = {name: _whole_path(name, value) for name, value in config.method_options.items()}
    method = {"preset": config.method, "preset_options": options, "env": config.env}
    write_json(folder / MEMORY_FILE, {**method, "state": dict(state)})


def _whole_path(option: str, value: Any) -> Any:
    """The option; the folder of an encoder so that it is found from elsewhere, too."""
    encoder = option.rpartition(".")[2] == "embeddings" and isinstance(value, str) and Path(value).is_dir()
    return str(Path(value).resolve()) if encoder else value


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value of JSON, but for the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def policy_memory(config: TrainConfig) -> SkillMemory | None:
    """The memory that lies beside the configured policy, None if there is none.

    A CheckpointError if it is damaged, or names code that the configured method and its options do not name, too.
    """
    path = Path(config.model_path) / MEMORY_FILE
    if not path.is_file():
        return None
    try:
        saved = read_object(path)
    except ValueError as error:
        raise CheckpointError(f"{path} is no skill memory of a policy: {error}") from error
    if not same_env(str(saved.get("env")), config.env):
        raise CheckpointError(
            f"{path} was learned in {saved.get('env')!r}, and {config.env!r} is played; --memory library shows the "
            "environment's own skills"
        )
    try:
        # The file that a run's bank began with need not be there any more.
        options = {name: value for name, value in saved["preset_options"].items() if name.rpartition(".")[2] != "bank"}
        given = {*_texts([config.method, dict(config.method_options)])}
        named = {name: value for name, value in options.items() if name.rpartition(".")[2] != "embeddings"}  # a folder
        if code := [text for text in _texts([saved["preset"], named]) if ":" in text and text not in given]:
            raise CheckpointError(
                f"{path} names code of its own, {code[0]}: look at it, and name it yourself as --method, or the option "
                "of it, if you trust it; --memory library does without"
            )
        part = recipe_in(config.env, str(saved["preset"]), options).memory
        # Memories write from an update's rollouts alone, and here there are none.
        memory = part.start(MemoryTools(Path(), graded_library(config), lambda prompts: [""] * len(prompts)))
        memory.load_state_dict(saved["state"])
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is no skill memory of a policy: {error!r}") from error
    return memory
