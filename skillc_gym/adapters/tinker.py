"""tinker-cookbook: groups of episodes, some with the skill, as ``EnvGroupBuilder`` and ``RLDataset``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.adapters.chat_env import ChatEnv, EpisodeRequest, paired_requests, tasks_of
from skillc_gym.errors import needs_extra

with needs_extra("tinker-cookbook", "tinker"):
    from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
    from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, EnvGroupBuilder, RLDataset, StopReason


class ChatMessageEnv(MessageEnv):  # type: ignore[misc]
    """One episode in messages: ``env`` plays the ``request``, and nothing after it."""

    def __init__(self, env: ChatEnv, request: EpisodeRequest) -> None:
        self.env, self.request = env, request
        self.example_id = f"{request.group_id}-{request.task_id}"
        self._chat: list[Any] = []

    async def initial_observation(self) -> list[Any]:
        """Starts the episode; returns its first prompt."""
        self._chat = list(self.env.begin(self.request))
        return list(self._chat)

    async def step(self, message: Any) -> MessageStepResult:
        """Carries out a reply."""
        step = self.env.step(_text(message["content"]))
        self._chat += [message, *step.messages]
        reason = StopReason.COMPLETED if step.terminated else StopReason.MAX_TURNS
        metrics = {f"{STOP_METRIC_PREFIX}{reason}": 1.0} if step.done else {}
        return MessageStepResult(step.reward, step.done, list(self._chat), metrics=metrics)


@dataclass(frozen=True)
class PairedGroupBuilder(EnvGroupBuilder):  # type: ignore[misc]
    """One group of episodes of a task. Can be pickled if ``make`` can: a ``functools.partial`` of ``ChatEnv``."""

    make: Callable[[], ChatEnv]
    requests: tuple[EpisodeRequest, ...]
    renderer: Any
    """tinker-cookbook's renderer of the model."""
    max_trajectory_tokens: int | None = None
    """Longest conversation; one that would exceed it ends, and counts as truncated."""

    async def make_envs(self) -> Sequence[Any]:
        """One environment per member, in their order. Rewards are the environment's alone, 0 for a broken reply."""
        limits = {"max_trajectory_tokens": self.max_trajectory_tokens, "context_overflow_reward": 0.0}
        members = [ChatMessageEnv(self.make(), request) for request in self.requests]
        return [EnvFromMessageEnv(self.renderer, member, failed_parse_reward=0.0, **limits) for member in members]

    async def compute_group_rewards(self, trajectory_group: Any, env_group: Sequence[Any]) -> list[Any]:
        """Adds nothing to the rewards; tells every episode's outcome, whoever has ended it.

        Metrics are its numbers, success by condition too, as ``won_with`` and ``won_without``; the logs of the last
        transition get the record.
        """
        return [
            (0.0, _finished(member.message_env.env, trajectory))
            for member, trajectory in zip(env_group, trajectory_group, strict=True)
        ]

    def logging_tags(self) -> list[str]:
        """Tags under which tinker-cookbook aggregates metrics."""
        return ["skillc"]


class PairedDataset(RLDataset):  # type: ignore[misc]
    """The tasks of an environment in batches of groups.

    Args:
        make: Makes an environment; picklable.
        renderer: tinker-cookbook's renderer.
        task_ids: The tasks in the order of training; all of the environment by default.
        batch_size: Groups per batch; a last batch that is not full is left out.
        group_size: Episodes per group.
        n_plus: How many of a group see the skill; half by default.
        seed: Seed of the groups' seeds.
    """

    def __init__(
        self,
        make: Callable[[], ChatEnv],
        renderer: Any,
        task_ids: Sequence[str] | None = None,
        *,
        batch_size: int = 8,
        group_size: int = 8,
        n_plus: int | None = None,
        seed: int = 0,
    ) -> None:
        names = tasks_of(make) if task_ids is None else task_ids
        requests = paired_requests(names, seed=seed, group_size=group_size, n_plus=n_plus)
        groups = [tuple(requests[start : start + group_size]) for start in range(0, len(requests), group_size)]
        self._builders = [PairedGroupBuilder(make, group, renderer) for group in groups]
        self._batch_size = batch_size

    def get_batch(self, index: int) -> Sequence[PairedGroupBuilder]:
        """The groups of a batch."""
        return self._builders[index * self._batch_size : (index + 1) * self._batch_size]

    def __len__(self) -> int:
        """Number of batches."""
        return len(self._builders) // self._batch_size


def _finished(env: ChatEnv, trajectory: Any) -> dict[str, float]:
    env.cut()  # a limit of tinker-cookbook ends episodes without a word to the environment
    env.close()
    record = env.record()
    if trajectory.transitions:
        trajectory.transitions[-1].logs.update(
            {name: value if isinstance(value, str) else float(value) for name, value in record.items()}
        )
    name = "won_with" if record["condition"] else "won_without"
    return {name: record["won"], **env.numbers()}


def _text(content: Any) -> str:
    """A reply in one text; renderers of reasoning models take thoughts apart."""
    if isinstance(content, str):
        return content
    said = (
        f"<think>{part['thinking']}</think>" if part["type"] == "thinking" else part.get("text", "") for part in content
    )
    return "".join(said)
