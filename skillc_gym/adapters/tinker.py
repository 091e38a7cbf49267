"""tinker-cookbook: groups of episodes, some with the skill, as ``EnvGroupBuilder`` and ``RLDataset``."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from skillc_gym.adapters.chat_env import ChatEnv, EpisodeRequest, paired_requests, tasks_of
from skillc_gym.errors import ConfigError, needs_extra
from skillc_gym.values import require_whole

with needs_extra("tinker-cookbook", "tinker"):
    from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
    from tinker_cookbook.rl.rollout_strategy import RolloutResult, RolloutStrategy
    from tinker_cookbook.rl.rollouts import do_single_rollout
    from tinker_cookbook.rl.types import STOP_METRIC_PREFIX, EnvGroupBuilder, RLDataset, RolloutError, StopReason

_logger = logging.getLogger(__name__)


class ChatMessageEnv(MessageEnv):  # type: ignore[misc]
    """One episode in messages: an environment of ``make`` plays the ``request``, and nothing after it."""

    def __init__(self, make: Callable[[], ChatEnv], request: EpisodeRequest) -> None:
        self.make, self.request = make, request
        self.example_id = f"{request.group_id}-{request.task_id}"
        self._chat: list[Any] = []

    @cached_property
    def env(self) -> ChatEnv:
        """The environment, made when it is first asked for: a retry makes groups of which one member is played."""
        return self.make()

    def close(self) -> None:
        """Closes the environment if there is one."""
        if "env" in self.__dict__:
            self.env.close()

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
    """One group of episodes of a task. Can be pickled if ``make`` can: a ``functools.partial`` of ``ChatEnv``.

    Raises:
        ConfigError: A limit is no whole number from 1 up, or one would never act.
    """

    make: Callable[[], ChatEnv]
    requests: tuple[EpisodeRequest, ...]
    renderer: Any
    """tinker-cookbook's renderer of the model."""
    max_trajectory_tokens: int | None = None
    """Longest conversation; one that would exceed it ends, and counts as truncated."""
    max_generation_tokens: int | None = None
    """How much of it is kept free for the next reply: the trainer's ``max_tokens``."""
    _made: list[ChatMessageEnv] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("max_trajectory_tokens", "max_generation_tokens"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), 1)
        kept, most = self.max_generation_tokens, self.max_trajectory_tokens
        if kept is not None and (most is None or kept >= most):
            raise ConfigError(
                f"max_generation_tokens={kept} is kept free of max_trajectory_tokens, which is {most}: give a larger "
                "max_trajectory_tokens, or leave max_generation_tokens out"
            )

    async def make_envs(self) -> Sequence[Any]:
        """One environment per member, in their order. Rewards are the environment's alone, 0 for a broken reply."""
        limits = {
            "max_trajectory_tokens": self.max_trajectory_tokens,
            "max_generation_tokens": self.max_generation_tokens,
            "context_overflow_reward": 0.0,
        }
        members = [ChatMessageEnv(self.make, request) for request in self.requests]
        self._made.extend(members)
        return [EnvFromMessageEnv(self.renderer, member, failed_parse_reward=0.0, **limits) for member in members]

    async def compute_group_rewards(self, trajectory_group: Any, env_group: Sequence[Any]) -> list[Any]:
        """Adds nothing to the rewards; tells every episode's outcome, whoever has ended it.

        Metrics are its numbers, success by condition too, as ``won_with`` and ``won_without``; the logs of the last
        transition get the record.

        Raises:
            ConfigError: Retries have changed how many of the group see the skill.
        """
        members = [env.message_env for env in env_group]
        self._require_conditions([member.request.condition for member in members])
        return [
            (0.0, _finished(member.env, trajectory))
            for member, trajectory in zip(members, trajectory_group, strict=True)
        ]

    def _require_conditions(self, played: Sequence[int]) -> None:
        asked, found = Counter(request.condition for request in self.requests), Counter(played)
        if found <= asked and found.keys() == asked.keys():  # some may have failed for good
            return
        raise ConfigError(
            f"Expected a group of {asked[1]} with the skill and {asked[0]} without, got {found[1]} and {found[0]}: "
            "tinker-cookbook plays a group's first member in place of any that fails. Train with "
            "rollout_error_tolerance=RetryMember() of skillc_gym.adapters.tinker"
        )

    async def cleanup(self) -> None:
        """Closes all environments that were made, those of failed members too."""
        while self._made:
            try:
                self._made.pop().close()
            except Exception:  # tinker-cookbook wants none: it would hide what has failed before
                _logger.exception("An environment could not be closed")

    def logging_tags(self) -> list[str]:
        """Tags under which tinker-cookbook aggregates metrics."""
        return ["skillc"]


@dataclass(frozen=True)
class RetryMember(RolloutStrategy):  # type: ignore[misc]  # Any where types are checked: it is not installed there
    """Plays a member that has failed again: the same one, so that the group keeps its conditions.

    For ``rollout_error_tolerance``. Of tinker-cookbook's own strategies, ``RetryOnFailure`` (True) and
    ``MinViableGroup`` put a group's first member, which sees the skill, in the place of any other.
    """

    max_retries: int = 3
    """How often in a group, over all its members; the failure after that is raised, and the group left out."""
    per_rollout_timeout: float = 0
    """Seconds after which an episode has failed; 0 for none."""

    @property
    def catches_group_errors(self) -> bool:
        """A group that fails is left out with a warning, and does not end training."""
        return True

    async def execute(self, env_group_builder: EnvGroupBuilder, policy: Any) -> RolloutResult:
        """Plays a group; trajectories come in the order of its members."""
        envs: list[Any] = list(await env_group_builder.make_envs())
        errors: list[Any] = []
        longest = self.per_rollout_timeout or None

        async def play(place: int) -> Any:
            while True:
                try:
                    return await asyncio.wait_for(do_single_rollout(policy, envs[place]), longest)
                except Exception as error:
                    errors.append(RolloutError(type(error).__name__, str(error)))
                    _logger.warning("Member %d failed (%d retries per group): %r", place, self.max_retries, error)
                    if len(errors) > self.max_retries:
                        raise
                    envs[place] = (await env_group_builder.make_envs())[place]

        return RolloutResult(await _all_or_none(map(play, range(len(envs)))), envs, errors)


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
        max_trajectory_tokens: Longest conversation; one that would exceed it ends, and counts as truncated.
        max_generation_tokens: How much of it is kept free for the next reply: the trainer's ``max_tokens``.

    Raises:
        ConfigError: There are fewer tasks than a batch needs, or a number is out of its range.
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
        max_trajectory_tokens: int | None = None,
        max_generation_tokens: int | None = None,
    ) -> None:
        names = tasks_of(make) if task_ids is None else task_ids
        if require_whole("batch_size", batch_size, 1) > len(names):
            raise ConfigError(
                f"Expected at least {batch_size} tasks, one per group of a batch, got {len(names)}: there would be "
                f"no batch. Give more task_ids, or batch_size={max(len(names), 1)} at most"
            )
        requests = paired_requests(names, seed=seed, group_size=group_size, n_plus=n_plus)
        groups = [tuple(requests[start : start + group_size]) for start in range(0, len(requests), group_size)]
        limits = max_trajectory_tokens, max_generation_tokens
        self._builders = [PairedGroupBuilder(make, group, renderer, *limits) for group in groups]
        self._batch_size = batch_size

    def get_batch(self, index: int) -> Sequence[PairedGroupBuilder]:
        """The groups of a batch, made anew: a later epoch's may be played while the first's are."""
        batch = self._builders[index * self._batch_size : (index + 1) * self._batch_size]
        return [replace(builder) for builder in batch]

    def __len__(self) -> int:
        """Number of batches."""
        return len(self._builders) // self._batch_size


async def _all_or_none(episodes: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    tasks = [asyncio.create_task(episode) for episode in episodes]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _finished(env: ChatEnv, trajectory: Any) -> dict[str, float]:
    env.cut()  # a limit of tinker-cookbook ends episodes without a word to the environment
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
