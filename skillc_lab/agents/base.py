"""What an agent is: options that start it, and at work it says what an episode is shown beside the skill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import gymnasium

from skill_library import SkillText
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from trainers.base import Options, flat_options
from trainers.config import TrainConfig
from trainers.evaluation.agents import PhaseProgress, RunningAgent
from trainers.evaluation.player import PolicyPlayer
from trainers.writers import AgentWriter, AnswerChats, PolicyWriter, StepWriter

__all__ = ["ActingAgent", "Agent", "AgentTools", "Choose", "Play", "WritingAgent", "at_least", "note"]

Choose = Callable[[Mapping[str, Any]], SkillText | None]
"""From the info of a reset (task, type, goal, condition) to what the episode is shown; None for nothing."""


class Play(Protocol):
    """Plays training tasks with the policy, without the library's skill."""

    def __call__(self, task_ids: Sequence[str], choose: Choose, attempt: int) -> list[Episode]:
        """One episode per task; another ``attempt`` at a task draws other random numbers from the same start."""
        ...


@dataclass(frozen=True)
class AgentTools:
    """What an agent may use.

    Attributes:
        spec: The environment.
        training_tasks: Gives the type of every training task by its id, without those that are evaluated.
        make_env: Makes the environment of the training tasks, without skills and prompts.
        play: Plays training tasks.
        write: The policy as a writer: chats in, replies out.
        writes: Whether the policy is a language model, of which a readable text can be hoped for.
        seed: Decides which training tasks are taken.
    """

    spec: EnvSpec
    training_tasks: Callable[[], Mapping[str, str]]
    make_env: Callable[[], gymnasium.Env[Any, Any]]
    play: Play
    write: AnswerChats
    writes: bool
    seed: int


class Agent(Options):
    """Base of an agent: a frozen dataclass of its options."""

    name: ClassVar[str]
    trials: int = 1
    """Most tries at a task; more than one only for agents that retry, and reported by trial."""

    def start(self, tools: AgentTools) -> ActingAgent:
        """The agent before it has prepared itself."""
        return ActingAgent(self)

    def around(
        self, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> RunningAgent:
        """The agent around a policy, prepared; see :class:`trainers.evaluation.agents.EvaluatedAgent`."""
        from skillc_lab.agents.acting import ActedPolicy

        return ActedPolicy(self, player, config, panel, phase)

    def record(self) -> dict[str, Any]:
        """Name and options as JSON-able values."""
        return {"name": self.name, "options": flat_options(self)}


@dataclass(frozen=True)
class WritingAgent(Agent):
    """Options of the agents that write.

    Attributes:
        writer: Who writes: "policy" asks the policy itself, "steps" goes by rule; "auto" is the policy, except for the
            small ones that were made from demonstrations and know no English.
    """

    writer: Literal["auto", "policy", "steps"] = "auto"

    def new_writer(self, tools: AgentTools) -> AgentWriter:
        """The writer that the options ask for."""
        by_policy = tools.writes if self.writer == "auto" else self.writer == "policy"
        return PolicyWriter(tools.write) if by_policy else StepWriter()


class ActingAgent:
    """An agent at work; this one shows nothing.

    Args:
        options: The agent.
        writer: Who writes for it, if somebody does.
    """

    def __init__(self, options: Agent, writer: AgentWriter | None = None) -> None:
        self.options, self.writer = options, writer

    @property
    def shows(self) -> bool:
        """Whether it ever shows anything."""
        return type(self).choose is not ActingAgent.choose

    def prepare(self) -> None:
        """Learns from training tasks; called once, before anything is evaluated."""

    def choose(self, info: Mapping[str, Any]) -> SkillText | None:
        """What an episode is shown, beside the library's skill where that is on."""
        return None

    def reflect(self, failed: Sequence[Episode]) -> None:
        """Takes in the failed episodes of a trial, before their tasks are tried again."""

    def state_dict(self) -> dict[str, Any]:
        """What it knows, as JSON-able values."""
        return {}

    def figures(self) -> dict[str, Any]:
        """What it cost and what came of it, as JSON-able values."""
        return {} if self.writer is None else {"writer": self.writer.name, "bad_replies": self.writer.bad_replies}

    def fingerprint(self) -> str:
        """Names the agent with all that it knows now."""
        known = json.dumps([self.options.record(), self.state_dict()], sort_keys=True)
        return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()


def note(name: str, text: str) -> SkillText:
    """A text to be shown, hashed."""
    return SkillText(name, text, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest())


def at_least(least: int, **options: int) -> None:
    """Checks whole numbers.

    Raises:
        ConfigError: One is below ``least``.
    """
    for name, value in options.items():
        if value < least:
            raise ConfigError(f"The agent's option {name} is at least {least}, got {value}")
