"""A recipe's skill memory at work in a run, the same in all processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.chat import Message
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Sampling, Trajectory
from trainers.learner.setup import Backend, Setup
from trainers.memory import Memory, MemoryTools, SkillSelector, has_own_choice, skill_selectors
from trainers.rollout.chats import EngineChat
from trainers.rollout.collect import derive_seed
from trainers.rollout.distributed import SharedRollouts
from trainers.rollout.policies import Policy, TokenPolicy

__all__ = ["SharedMemory"]

_WRITE = 5
"""What the writer's seeds are derived for."""


class SharedMemory:
    """Says what episodes see; every process learns the same from an update.

    Args:
        options: The recipe's memory.
        setup: The run.
    """

    def __init__(self, options: Memory, setup: Setup) -> None:
        self._policy = PolicyChat(setup.rollouts.policy, setup.config.seed)
        self.memory = options.start(MemoryTools(setup.folder.path, setup.prompts.library, self._policy))

    @property
    def chooses(self) -> bool:
        """Whether it ever shows another text than the library's."""
        return has_own_choice(self.memory)

    @property
    def shared_draws(self) -> bool:
        """Whether pairs of the two conditions share their draws in training."""
        return self.memory.shared_draws

    def skills(
        self, n_plus: Sequence[int], group_size: int, *, training: bool
    ) -> list[list[SkillSelector | None]] | None:
        """Per group and member, who chooses the text when the episode begins; None for the library's everywhere."""
        return skill_selectors(self.memory, n_plus, group_size, training=training)

    def remembering(self, shared: SharedRollouts) -> SharedRollouts | _Remembering:
        """Rollouts for a validation, in which nothing is explored."""
        return _Remembering(shared, self) if self.chooses else shared

    def returns(self, batch: RolloutBatch) -> FloatArray:
        """What the learner maximises, with the memory's own rewards."""
        return self.memory.returns(batch)

    def observe(self, backend: Backend, batch: RolloutBatch) -> dict[str, Any]:
        """Takes in an update; the first process's state becomes everybody's.

        Returns:
            Figures for the log; ``tokens_written`` if the policy was asked to write.
        """
        before = self._policy.tokens_generated
        log = self.memory.observe(batch)
        written = self._policy.tokens_generated - before
        if backend.num_processes > 1:
            state, written = backend.gather([(self.memory.state_dict(), written)])[0]
            self.memory.load_state_dict(state)
        return {**log, "tokens_written": written} if written else log

    def state_dict(self) -> dict[str, Any]:
        """What it knows, as JSON-able values."""
        return self.memory.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what it knew."""
        self.memory.load_state_dict(state)


@dataclass(frozen=True)
class _Remembering:
    """Shared rollouts whose skill-injected episodes see what a memory retrieves."""

    shared: SharedRollouts
    memory: SharedMemory

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: Sampling
    ) -> list[Trajectory]:
        skills = self.memory.skills(n_plus, group_size, training=False)
        return self.shared.collect(task_ids, n_plus, group_size, seed=seed, sampling=sampling, skills=skills)


class PolicyChat:
    """Answers prompts greedily, each on its own; one that leaves no room has the reply "".

    Attributes:
        tokens_generated: Tokens of all replies so far.
    """

    def __init__(self, policy: Policy, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self.tokens_generated = 0

    def __call__(self, prompts: Sequence[Sequence[Message]]) -> list[str]:
        policy = self._policy
        assert isinstance(policy, TokenPolicy), "models are trained on tokens"
        chat = EngineChat(
            policy.engine,
            policy.chat,
            seed=derive_seed(self._seed, _WRITE),
            max_tokens=policy.max_reply_tokens,
            max_context=policy.max_context,
        )
        policy.engine.reset()
        replies = chat(prompts)
        policy.engine.reset()
        self.tokens_generated += chat.tokens_generated
        return replies
