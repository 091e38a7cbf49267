"""Wrappers that shape rewards and look at a setting of torch, a logger, a metric and an allocation from outside."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import torch

from trainers.recipes import Allocation


class Allowance(gymnasium.Wrapper[str, str, str, str]):
    """Pays for every step."""

    def __init__(self, env: Any, amount: float) -> None:
        super().__init__(env)
        self.amount = amount

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) + self.amount, terminated, truncated, info


class WithoutPlans(gymnasium.Wrapper[str, str, str, str]):
    """Is made where cuDNN's attention is off alone."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        attention: Any = torch.backends.cuda
        assert not attention.cudnn_sdp_enabled()


class Kept:
    """A logger that keeps what it is told."""

    name = "kept"
    records: ClassVar[list[Any]] = []
    """What all of them were told."""

    def start(self, folder: Path, config: Any) -> None:
        self.records.clear()

    def log(self, record: Any) -> None:
        self.records.append(record)

    def close(self) -> None:
        self.records.append("closed")


@dataclass(frozen=True)
class FirstType(Allocation):
    """Every rollout of the first task type."""

    name: ClassVar[str] = "first_type"

    def n_plus(self, curriculum: Any, task_type: str, group_size: int) -> int:
        return group_size if task_type == curriculum.task_types[0] else 0


def mean_reward(trajectories: Any) -> dict[str, float]:
    rewards = [trajectory.episode.episode_return for trajectory in trajectories]
    return {"mean_reward": sum(rewards) / len(rewards)}


def taken_names(trajectories: Any) -> dict[str, float]:
    return dict.fromkeys(("mine", "tokens_generated", "entropy", "tokens_total"), 1.0)


def no_figures(trajectories: Any) -> None:
    pass


def unwritten(trajectories: Any) -> dict[str, Any]:
    """Gives what JSON cannot hold."""
    return {"lengths": {len(trajectories)}}
