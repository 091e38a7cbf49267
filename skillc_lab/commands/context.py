"""What a model's context limit means for an environment's episodes: an expert plays one, the tokenizer counts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from skillc_gym.envs.registry import EnvSpec
from skillc_gym.errors import MissingDataError, SkillCError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply
from skillc_lab.commands.findings import Finding
from trainers.config import TrainConfig
from trainers.models import context_limit
from trainers.session import chat_format, load_tokenizer

__all__ = ["EpisodeLength", "context_findings", "episode_length"]


@dataclass(frozen=True)
class EpisodeLength:
    """Tokens of one episode with its skill, as the trainers prompt it."""

    first: int
    """Of the first prompt."""
    per_turn: float
    """By which the conversation grows with each turn; 0 in the window form, whose longest prompt is ``first``."""
    steps: int
    """Step limit of an episode."""

    @property
    def longest(self) -> int:
        """Of an episode that runs to its step limit."""
        return round(self.first + self.steps * self.per_turn)

    def steps_within(self, limit: int) -> int:
        """Turns that fit into a limit."""
        if self.longest <= limit:
            return self.steps
        return max(0, int((limit - self.first) / self.per_turn)) if self.per_turn else 0


def episode_length(config: TrainConfig, tokenizer: Any) -> EpisodeLength:
    """Counts the tokens of one episode that the environment's expert plays, its skill in the prompt.

    Args:
        config: Environment, wording and form.
        tokenizer: The model's.

    Raises:
        ConfigError: If the environment has no expert.
        MissingDataError: If its data are not there.
    """
    counts, steps = _played(config, lambda messages: _tokens(tokenizer, messages))
    if config.form != "conversation" or len(counts) < 2:
        return EpisodeLength(max(counts), 0.0, steps)
    return EpisodeLength(counts[0], (counts[-1] - counts[0]) / (len(counts) - 1), steps)


def _played(config: TrainConfig, count: Callable[[Sequence[Any]], int]) -> tuple[list[int], int]:
    """The length of each turn's prompt in an expert's episode, and the step limit."""
    spec, env = config.env_spec, _open(config)
    wrapped: Any = ChatPrompt(
        ActionFormat(SkillInjection(env, library=str(config.skill_library), where="info")),
        chat_format=chat_format(config),
    )
    try:
        _, info = wrapped.reset(seed=config.seed, options={"skill": True})
        assert spec.warm_start
        expert, counts, over = spec.warm_start.demonstrator(info, False), [count(info["messages"])], False
        while not over:
            command = expert.act(info["observation"], info["admissible_commands"])
            *_, terminated, truncated, info = wrapped.step(format_reply(command, thought=expert.thought))
            counts.append(count(info["messages"]))
            over = terminated or truncated
        return counts, config.max_episode_steps or spec.max_episode_steps or len(counts)
    finally:
        wrapped.close()


def _open(config: TrainConfig) -> gymnasium.Env[Any, Any]:
    """The environment on its data, or on generated ones where none was named and none is found."""
    try:
        return gymnasium.make(config.env_id, **config.env_kwargs)
    except MissingDataError:
        if config.data is not None:
            raise
        return gymnasium.make(config.env_id, **{**config.env_kwargs, "data": "generated"})


def _tokens(tokenizer: Any, messages: Sequence[Any]) -> int:
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def context_findings(model: str, specs: Sequence[EnvSpec], options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding per environment: whether an episode at its step limit fits the model and ``max_context``."""
    for spec in specs:
        if spec.warm_start is None:
            continue
        try:
            yield _judged(TrainConfig(model=model, env=spec.id, **options), spec)
        except SkillCError as error:
            yield Finding("model", f"{model} in {spec.name}", "missing", str(error), asked=True)


def _judged(config: TrainConfig, spec: EnvSpec) -> Finding:
    limit, length = context_limit(config), episode_length(config, load_tokenizer(config))
    room = config.max_context if limit is None else min(limit, config.max_context)
    said = (
        f"an episode of {length.steps} steps takes about {length.longest:,} tokens in {config.form} form; the model "
        f"takes {'any number' if limit is None else f'{limit:,}'}, max_context is {config.max_context:,}"
    )
    name = f"{config.model} in {spec.name}"
    if length.longest <= room:
        return Finding("model", name, "ok", said)
    remedy = (
        f"episodes end after some {length.steps_within(room)} steps: raise max_context"
        + (f" (a model with a longer context than {limit:,} too)" if limit and length.longest > limit else "")
        + ", or prompt turn by turn with form=window:5"
    )
    return Finding("model", name, "note", said, remedy)
