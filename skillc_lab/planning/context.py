"""How long an environment's episodes are in a model's tokens: an expert plays one, the tokenizer counts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from skillc_gym.errors import MissingDataError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from skillc_lab.agents.examples import expert_replies
from trainers.config import TrainConfig
from trainers.rollout import chat_format


@dataclass(frozen=True)
class EpisodeLength:
    """Tokens of one episode with its skill, as the trainers prompt it."""

    first: int
    """Of the first prompt; in the window form of the longest one."""
    per_turn: float
    """By which the conversation grows with each turn; 0 in the window form."""
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
    """Counts a model's tokens of one episode that the environment's expert plays, its skill in the prompt."""
    spec = config.env_spec
    assert spec.warm_start, f"{spec.id} has no expert"
    injected = SkillInjection(_open(config), library=str(config.skill_library), where="info")
    wording = chat_format(config)
    env: Any = ChatPrompt(ActionFormat(injected, tail=wording.reply_tail), chat_format=wording)
    try:
        _, info = begun = env.reset(seed=config.seed, options={"skill": True})
        played = expert_replies(env, begun, spec.warm_start.demonstrator(info, False))
        counts = [_tokens(tokenizer, each["messages"]) for each in (info, *(outcome[4] for _, outcome in played))]
    finally:
        env.close()
    steps = config.max_episode_steps or spec.max_episode_steps or len(counts)
    if config.form != "conversation" or len(counts) < 2:
        return EpisodeLength(max(counts), 0.0, steps)
    return EpisodeLength(counts[0], (counts[-1] - counts[0]) / (len(counts) - 1), steps)


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
