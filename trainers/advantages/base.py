"""What a credit-assignment scheme gets to see, one update as trajectories and in columns, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError
from trainers.advantages.grouping import FloatArray, finite_vector, flag_vector
from trainers.base import Options, Returns, Trajectory


@dataclass(frozen=True)
class Signals:
    """What curriculum and contrast say of each rollout's task, float64[N] each.

    The ``gate``: how much its type still leans on its skill; the smoothed ``contrast``, 0 for retired types; and the
    ``correction`` C(x), the correction's weight times the positive part of the contrast.
    """

    gate: FloatArray
    contrast: FloatArray
    correction: FloatArray

    @classmethod
    def none(cls, size: int) -> Signals:
        """All zero."""
        return cls(*np.zeros((3, size)))


@dataclass(frozen=True)
class RolloutBatch:
    """The rollouts of one update over all processes, one entry per rollout in every field."""

    returns: FloatArray
    """What the learner maximises; the success scale [0, 1] unless the configuration chooses another."""
    outcome: FloatArray
    """The return on the success scale [0, 1], from which contrast and curriculum are made. float64[N]."""
    task: tuple[str, ...]
    """Task ids, the same string for the same task in every update."""
    task_type: tuple[str, ...]
    """Type of each task."""
    condition: NDArray[np.bool_]
    """True with the skill. bool[N]."""
    success: NDArray[np.bool_]
    """True where the episode succeeded. bool[N]."""
    length: FloatArray
    """Steps of each episode. float64[N]."""
    trajectories: tuple[Trajectory, ...]
    """The episodes themselves, with their tokens; empty where a batch was built from columns alone."""
    signals: Signals
    """What the method's other parts say of each rollout."""
    text: tuple[str, ...] = ()
    """Hash of the text that each was shown; empty where a batch does not say."""
    scores: Mapping[str, Sequence[FloatArray]] = field(default_factory=dict)
    """Figures per own token that a scheme asked for, by name; one array per rollout."""

    @classmethod
    def build(
        cls,
        *,
        returns: Sequence[float],
        task: Sequence[str],
        task_type: Sequence[str],
        condition: Sequence[int],
        length: Sequence[float] | None = None,
        outcome: Sequence[float] | None = None,
        text: Sequence[str] = (),
    ) -> RolloutBatch:
        """Reads and checks plain sequences, one entry per rollout.

        Outcomes are the returns unless given, and lie in [0, 1]; a success is an outcome of 1, and lengths are 0
        unless given. A ConfigError if lengths differ, a value is out of range, or a task has two types.
        """
        values = finite_vector("returns", returns)
        size = values.size
        if not size:
            raise ConfigError("An update needs at least one rollout, got none")
        outcomes = values if outcome is None else finite_vector("outcome", outcome, size)
        if outcomes.min() < 0 or outcomes.max() > 1:
            raise ConfigError(
                f"returns are on the success scale [0, 1], got {outcomes.min()} to {outcomes.max()}; "
                "apply a reward scale outside of the method"
            )
        if len(task) != size or len(task_type) != size:
            raise ConfigError(f"task and task_type need {size} entries, got {len(task)} and {len(task_type)}")
        if len(text) not in (0, size):
            raise ConfigError(f"text needs {size} entries or none, got {len(text)}")
        if len(set(zip(task, task_type, strict=True))) != len(set(task)):
            raise ConfigError("A task appears under two task types; task ids name one task each")
        return cls(
            returns=values,
            outcome=outcomes,
            task=tuple(task),
            task_type=tuple(task_type),
            condition=flag_vector("condition", condition, size),
            success=outcomes >= 1.0,
            length=np.zeros(size) if length is None else finite_vector("length", length, size),
            trajectories=(),
            signals=Signals.none(size),
            text=tuple(text),
        )

    @classmethod
    def from_episodes(cls, episodes: Sequence[Any], returns: Returns = "won") -> RolloutBatch:
        """Reads episodes (:class:`skillc_gym.episodes.Episode`, or like them); the outcome is ``won`` in any case."""
        return cls.build(
            returns=[_RETURNS[returns](episode) for episode in episodes],
            outcome=[float(episode.won) for episode in episodes],
            task=[episode.task_id for episode in episodes],
            task_type=[episode.task_type for episode in episodes],
            condition=[int(episode.condition) for episode in episodes],
            length=[float(len(episode.turns)) for episode in episodes],
            text=[episode.skill_sha256 for episode in episodes if hasattr(episode, "skill_sha256")],
        )

    @classmethod
    def from_trajectories(cls, trajectories: Sequence[Trajectory], returns: Returns = "won") -> RolloutBatch:
        """Reads the episodes of trajectories, and keeps the trajectories."""
        batch = cls.from_episodes([trajectory.episode for trajectory in trajectories], returns)
        return replace(batch, trajectories=tuple(trajectories))

    @cached_property
    def type_of(self) -> dict[str, str]:
        """Each task's type, in order of first appearance."""
        return dict(zip(self.task, self.task_type, strict=True))


_RETURNS: Mapping[str, Any] = {
    "won": lambda episode: float(episode.won),
    "task_score": lambda episode: float(episode.task_score),
    "reward": lambda episode: float(sum(turn.reward for turn in episode.turns)),
}


Values = FloatArray | Sequence[FloatArray]
"""One number per rollout, float64[N]; or per rollout one array with an entry per own token, in order."""


@dataclass(frozen=True)
class Advantages:
    """What a scheme makes of a batch."""

    values: Values
    """The advantages."""
    targets: Mapping[str, Values] = field(default_factory=dict)
    """Further figures for losses, in the same form; they reach :class:`trainers.losses.LossInputs` by name."""
    parts: Mapping[str, Values] = field(default_factory=dict)
    """Shares that sum to the values, in the same form; their gradient norms can be measured apart."""
    log: Mapping[str, Any] = field(default_factory=dict)
    """What the scheme has to say beside them, JSON-able."""


class Scheme(Options):
    """Base of a credit-assignment scheme: a frozen dataclass of its own options."""

    name: ClassVar[str]
    inputs: ClassVar[frozenset[str]] = frozenset()
    """Figures per own token that it needs in ``batch.scores``: "logprobs", "ref_logprobs", or a head of a loss."""
    targets: ClassVar[frozenset[str]] = frozenset()
    """Figures for losses that it gives beside the advantages."""
    whole_trajectories: ClassVar[bool] = False
    """Whether it reads ``batch.trajectories``; columns are enough for the others."""
    judges_steps: ClassVar[bool] = False
    """Whether steps are credited one by one, so that a group of equal returns may still teach."""
    needs_memory: ClassVar[str] = ""
    """The name of the one memory that it goes with, if any."""
    needs_allocation: ClassVar[str] = ""
    """The name of the one allocation that it goes with, if any."""

    @property
    def by_text(self) -> bool:
        """Whether a rollout is compared with those alone that were shown the same text."""
        return False

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """Computes the advantages of a batch."""
        raise NotImplementedError


def check_advantages(advantages: Advantages, batch: RolloutBatch, scheme: str) -> None:
    """ConfigError unless a scheme gave a finite number per rollout of a batch, or one per own token of each."""
    size, own = len(batch.task), [each.model_tokens for each in batch.trajectories]
    for name, values in {"advantages": advantages.values, **advantages.targets}.items():
        if len(values) != size:
            raise ConfigError(f"advantage={scheme!r} gave {len(values)} {name} for {size} rollouts; it gives one each")
        shapes = [np.shape(value) for value in values]
        expected = [()] * size if isinstance(values, np.ndarray) else [(tokens,) for tokens in own] or shapes
        for row, (found, right) in enumerate(zip(shapes, expected, strict=True)):
            if found != right:
                raise ConfigError(
                    f"advantage={scheme!r} gave {name} of shape {found} for rollout {row}, not {right}; it gives one "
                    "array with a number per rollout, or for each rollout an array with a number per own token"
                )
        if wrong := [row for row, value in enumerate(values) if not np.isfinite(value).all()]:
            raise ConfigError(f"advantage={scheme!r} gave {name} that are not finite, for rollouts {wrong[:5]}")


def per_rollout(values: Values) -> FloatArray:
    """One number per rollout: the value itself, or the mean over its tokens (0 without tokens); float64[N]."""
    if isinstance(values, np.ndarray):
        return values
    return np.asarray([float(np.mean(entry)) if len(entry) else 0.0 for entry in values], dtype=np.float64)
