"""TRL: environments for ``GRPOTrainer(environment_factory=...)``, in which the agent acts by calling a tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillc_gym.adapters.chat_env import EPISODE_OVER, ChatEnv, EpisodeRequest


class ToolEnvironment:
    """One environment as TRL 1.16 asks for it: ``reset(**row)``, one tool, ``get_reward()``.

    TRL makes instances without arguments: give it ``functools.partial(ToolEnvironment, "alfworld", split="train")``,
    with the arguments of :class:`~skillc_gym.adapters.ChatEnv` but ``tags``: tool calls bring bare commands. Reward
    functions find the instances in their argument ``environments`` and each one's :attr:`record` there.
    """

    # TRL offers every public method as a tool, so what is none is a property or begins with an underscore.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._chat = ChatEnv(*args, tags=False, **kwargs)

    def reset(self, **row: Any) -> str:
        """Starts the row's episode; the text is appended to the row's last user message.

        Args:
            row: The columns of :func:`dataset_rows`; others are ignored.
        """
        return "\n\n".join(message["content"] for message in self._chat.begin(row))

    def act(self, command: str) -> str:
        """Carries out one command and tells what happens.

        Args:
            command: One of the possible commands, exactly as it is listed.

        Returns:
            What the environment answers, and the commands that are possible next.
        """
        return EPISODE_OVER if self._chat.done else self._chat.step(str(command)).messages[-1]["content"]

    def get_reward(self) -> float:
        """The sum of the episode's rewards; an episode that TRL has cut counts as truncated."""
        self._chat.cut()
        return self._chat.episode().episode_return

    @property
    def record(self) -> dict[str, Any]:
        """Identity, provenance and outcome of the latest episode: :meth:`~skillc_gym.adapters.ChatEnv.record`.

        TRL asks reward functions before ``get_reward``, and both after the rollout: one that has not ended was cut.
        """
        record = self._chat.record()
        return {**record, "truncated": record["truncated"] or not self._chat.done}


def dataset_rows(requests: Iterable[EpisodeRequest], prompt: str = "") -> list[dict[str, Any]]:
    """Rows of a training set, one per episode: ``datasets.Dataset.from_list(dataset_rows(paired_requests(...)))``.

    TRL draws ``num_generations`` rollouts per row and compares them among themselves, so a group stays within one
    condition. With ``GRPOConfig(shuffle_dataset=False)`` the two rows of a pair stay side by side. ``prompt`` stands
    before the task.
    """
    content = f"{prompt}\n\n" if prompt else ""  # TRL appends the task as it stands
    return [{"prompt": [{"role": "user", "content": content}], **request.to_row()} for request in requests]
