"""A recipe's skill memory at work in a run, the same in all processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from skillc_gym.chat import Message
from trainers.advantages import RolloutBatch
from trainers.learner.setup import Backend, Setup
from trainers.memory import Memory, MemoryTools, skill_selectors
from trainers.rollout.chats import EngineChat
from trainers.rollout.collect import derive_seed
from trainers.rollout.policies import Policy, TokenPolicy

__all__ = ["SharedMemory"]

_WRITE = 5
"""What the writer's seeds are derived for."""


class SharedMemory:
    """A memory that all processes have alike: what one has learned, all know.

    Args:
        options: The recipe's memory.
        setup: The run; its rollouts show from now on what the memory chooses, in validations without exploring.

    Attributes:
        memory: The memory at work.
    """

    def __init__(self, options: Memory, setup: Setup) -> None:
        self._policy = PolicyChat(setup.rollouts.policy, setup.config.seed)
        self.memory = options.start(MemoryTools(setup.folder.path, setup.prompts.library, self._policy))
        setup.rollouts.choose_skills = partial(skill_selectors, self.memory, training=False)

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
