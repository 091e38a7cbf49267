"""What an agent is: options that start it; at work it says what an episode is shown beside the skill."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import gymnasium

from skill_library import SkillText
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from skillc_lab.agents.shown import Choose, ShowNotes
from trainers.base import Options, flat_options
from trainers.config import TrainConfig
from trainers.evaluation import (
    PANEL_SEED,
    PairedReport,
    PhaseProgress,
    PolicyPlayer,
    RunningAgent,
    TrialReport,
    play_trials,
)
from trainers.rollout import GroupRollouts, derive_seed, tasks_of
from trainers.writers import AgentWriter, AnswerChats, PolicyWriter, StepWriter

PlayTasks = Callable[[Sequence[str], Choose, int], list[Episode]]
"""Plays training tasks without the library's skill, once each; another number draws others from the same start."""
_GATHERING_SEED, _WRITER_SEED = 6, 7
"""What the seeds of the preparation and of the writer are derived for."""


@dataclass(frozen=True)
class AgentTools:
    """What an agent may use.

    Attributes:
        training_tasks: Gives the type of every training task by its id, without those that are evaluated.
        make_env: Makes the environment of the training tasks, without skills and prompts.
        write: The policy as a writer: chats in, replies out.
        writes: Whether the policy is a language model, of which a readable text can be hoped for.
        seed: Decides which training tasks are taken.
    """

    spec: EnvSpec
    training_tasks: Callable[[], Mapping[str, str]]
    make_env: Callable[[], gymnasium.Env[Any, Any]]
    play: PlayTasks
    write: AnswerChats
    writes: bool
    seed: int


class ActingAgent:
    """An agent at work, with who writes for it, if somebody does; this one shows nothing."""

    writer: AgentWriter | None = None

    def __init__(self, options: Agent, tools: AgentTools) -> None:
        self.options, self.tools = options, tools

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
        return _sha256([self.options.record(), self.state_dict()])


class Agent(Options):
    """Base of an agent: a frozen dataclass of its options."""

    name: ClassVar[str]
    acting: ClassVar[type[ActingAgent]] = ActingAgent
    """What is at work with these options."""
    trials: int = 1
    """Most tries at a task; more than one only for agents that retry, and reported by trial."""

    def start(self, tools: AgentTools) -> ActingAgent:
        """The agent before it has prepared itself."""
        return self.acting(self, tools)

    def around(
        self, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> RunningAgent:
        """The agent around a policy, prepared; see :class:`trainers.evaluation.EvaluatedAgent`."""
        return AgentRunner(self, player, config, panel, phase)

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


class ActingWriter(ActingAgent):
    """An agent at work for which its options' writer writes."""

    def __init__(self, options: WritingAgent, tools: AgentTools) -> None:
        super().__init__(options, tools)
        by_policy = tools.writes if options.writer == "auto" else options.writer == "policy"
        self.writer: AgentWriter = PolicyWriter(tools.write) if by_policy else StepWriter()


class AgentRunner(RunningAgent):
    """Prepares an agent around the configured policy, and plays with it; it never sees the panel before."""

    def __init__(
        self, agent: Agent, player: PolicyPlayer, config: TrainConfig, panel: Sequence[str], phase: PhaseProgress
    ) -> None:
        super().__init__(player, config)
        self._panel, self._phase = tuple(panel), phase
        self._training = config.with_(split=config.env_spec.training_split)
        self._label = _sha256(agent.record())
        self._spent = Counter[str]()
        self._write = player.chat(derive_seed(config.seed, _WRITER_SEED))
        self.acting = agent.start(
            AgentTools(
                spec=config.env_spec,
                training_tasks=lambda: self._training_tasks,
                make_env=partial(gymnasium.make, self._training.env_id, **self._training.env_kwargs),
                play=self._gather,
                write=self._write,
                writes=player.writes,
                seed=config.seed,
            )
        )
        self.acting.prepare()

    def rollouts(self) -> GroupRollouts:
        """Plays episodes that see what the agent knows now."""
        wrappers = [partial(ShowNotes, choose=self.acting.choose)]
        return self._player.rollouts(self._config, wrappers, label=self.acting.fingerprint())

    def play_trials(self, first: PairedReport) -> TrialReport | None:
        """Tries failed tasks again, if the agent does that."""
        trials = self.acting.options.trials
        return play_trials(first, trials, self._retry, self.acting.reflect) if trials > 1 else None

    def record(self) -> dict[str, Any]:
        """Name, options, figures and all that it knows, as JSON-able values."""
        return {
            **self.acting.options.record(),
            "figures": {**self.acting.figures(), **self._cost()},
            "knows": self.acting.state_dict(),
            "fingerprint": self.acting.fingerprint(),
        }

    def _cost(self) -> dict[str, Any]:
        """What was played beside the evaluated panel, and written; nothing where a server's usage tells it."""
        if self._player.usage() is not None:
            return {}
        return {"cost": {**self._spent, "tokens_written": getattr(self._write, "tokens_generated", 0)}}

    def warning(self) -> str:
        """A sentence on replies of the writer that could not be read, and on what to do; "" if there were none."""
        bad = 0 if self.acting.writer is None else self.acting.writer.bad_replies
        told = f"{bad} replies of the policy as the agent's writer could not be read and were passed over. "
        return f"{told}--agent.writer steps writes by rule" if bad else ""

    @cached_property
    def _training_tasks(self) -> Mapping[str, str]:
        evaluated = set(self._panel)
        left = {task: kind for task, kind in sorted(tasks_of(self._training).items()) if task not in evaluated}
        if not left:
            raise ConfigError(
                f"The agent learns from tasks of the split {self._training.split!r}, and all of them are to be "
                "evaluated; evaluate another split, or a panel of fewer tasks (--per-type)"
            )
        return left

    def _gather(self, task_ids: Sequence[str], choose: Choose, attempt: int) -> list[Episode]:
        wrappers = [partial(ShowNotes, choose=choose)]
        rollouts = self._player.rollouts(self._training, wrappers, f"{self._label} {attempt}", preparing=True)
        rollouts.on_progress = self._phase("training episodes")
        tasks = [(task, 0) for task in task_ids]
        return self._collect(rollouts, tasks, tuple(self._training_tasks), _GATHERING_SEED, attempt)

    def _retry(self, trial: int, tasks: Sequence[tuple[str, int]]) -> list[Episode]:
        rollouts = self.rollouts()
        rollouts.on_progress = self._phase(f"episodes of trial {trial}")
        return self._collect(rollouts, tasks, self._panel, PANEL_SEED, trial - 1)

    def _collect(
        self,
        rollouts: GroupRollouts,
        tasks: Sequence[tuple[str, int]],
        everything: Sequence[str],
        purpose: int,
        attempt: int,
    ) -> list[Episode]:
        """Plays (task, condition) once each; a task's place among all gives it the same start in every attempt."""
        numbers = {task: number for number, task in enumerate(everything)}
        with closing(rollouts):
            played = rollouts.collect(
                [task for task, _ in tasks],
                [skill for _, skill in tasks],
                1,
                seed=derive_seed(self._config.seed, purpose),
                sampling=self._config.eval_sampling,
                numbers=[numbers[task] for task, _ in tasks],
                first_attempt=attempt,
            )
        for result in played:
            self._spent.update({"episodes": 1, "steps": len(result.episode), **asdict(result.usage)})
        return [result.episode for result in played]


def _sha256(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
