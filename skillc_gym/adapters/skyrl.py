"""SkyRL-gym: a text environment, registered as ``skillc``, for rows that name task, seed and condition."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from skillc_gym.adapters.chat_env import ChatEnv, EpisodeRequest
from skillc_gym.errors import needs_extra

with needs_extra("skyrl-gym", "skyrl"):
    from skyrl_gym.envs import register
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput


class SkillTextEnv(BaseTextEnv):  # type: ignore[misc]
    """One episode.

    Args:
        env_config: Arguments that go before those of ``chat``.
        extras: The row: the columns of :func:`dataset_rows`; SkyRL's ``max_turns`` too, with a warning where it is 1.
        chat: Arguments of :class:`~skillc_gym.adapters.ChatEnv`; ``env`` names the environment.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] | None = None,
        extras: Mapping[str, Any] | None = None,
        chat: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._chat = ChatEnv(**{**(chat or {}), **(env_config or {})})
        self._row = dict(extras or {})
        self.max_turns = int(self._row.get("max_turns", 1 << 30))
        if self.max_turns == 1:
            warnings.warn(
                "generator.max_turns is 1, SkyRL's default: every episode ends after one command, as truncated. Set it "
                "to the environment's max_episode_steps, such as 50",
                stacklevel=2,
            )

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Starts the row's episode; returns its prompt (the row's own ``prompt`` is not read) and the record so far."""
        return list(self._chat.begin(self._row)), self._chat.record()

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Carries out a reply; ``metadata`` is the record. SkyRL's ``max_turns`` truncates."""
        step = self._chat.step(action)
        self.turns += 1
        if self.turns >= self.max_turns:
            self._chat.cut()
        done, record = self._chat.done, self._chat.record()
        return BaseTextEnvStepOutput(
            observations=[] if done else step.messages, reward=step.reward, done=done, metadata=record
        )

    def get_metrics(self) -> dict[str, Any]:
        """Outcome in numbers, with success under the name of its condition; asked for when the episode is over."""
        self._chat.cut()  # SkyRL's limits of length end episodes without a word to the environment
        numbers = self._chat.numbers()
        won = "won_with" if numbers.pop("condition") else "won_without"
        return {won: numbers.pop("won"), **numbers}

    def close(self) -> None:
        """Closes the environment."""
        self._chat.close()


def register_environment(name: str = "skillc", **config: Any) -> None:
    """Makes the environment known to SkyRL-gym under a name, which rows give in their column ``env_class``.

    SkyRL's own configuration has no place for it, so that ``config`` is given here: arguments of
    :class:`~skillc_gym.adapters.ChatEnv`.
    """
    register(id=name, entry_point=f"{__name__}:{SkillTextEnv.__name__}", kwargs={"chat": config})


def dataset_rows(
    requests: Iterable[EpisodeRequest], env_class: str = "skillc", prompt: str = "The environment has its own."
) -> list[dict[str, Any]]:
    """Rows of a training set, one per episode, with the columns that SkyRL's ``PromptDataset`` reads.

    SkyRL draws ``generator.n_samples_per_prompt`` episodes per row and compares them among themselves, so a group stays
    within one condition. ``env_class`` is the name that :func:`register_environment` gave the environment, ``prompt``
    what SkyRL measures against ``trainer.max_prompt_length``: a placeholder that no episode shows.
    """
    given = {"prompt": [{"role": "user", "content": prompt}], "env_class": env_class}
    return [{**given, **request.to_row()} for request in requests]
