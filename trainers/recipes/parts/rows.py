"""Row makers: what a recipe trains on beside the rollouts of the update, or in their place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from skillc_gym.episodes import Episode
from trainers.advantages import Advantages, FloatArray, RolloutBatch, relabelling_weights
from trainers.advantages.group_baselines import is_guided
from trainers.base import Aggregation, Fraction, Natural, Options, TokenRow, Trajectory
from trainers.memory import specific_text
from trainers.retrieval.rules import words
from trainers.rollout.batches import TrainingRow, token_share, token_weight
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.rows import Prompts
from trainers.writers import StepWriter


@dataclass(frozen=True)
class UpdateView:
    """An update as a row maker sees it: all processes' trajectories with signals, and what the scheme made of them.

    ``own`` numbers the rollouts whose rows this process trains on, ``update`` counts from 1, ``minibatches`` are the
    update's optimiser steps, and ``aggregation`` and ``longest`` as of
    :func:`trainers.rollout.batches.make_training_rows`.
    """

    batch: RolloutBatch
    advantages: Advantages
    own: Sequence[int]
    prompts: Prompts
    update: int
    seed: int
    minibatches: int = 1
    aggregation: Aggregation = "trajectory"
    longest: int = 1

    def weight(self, rollout: int, factor: float = 1.0) -> float:
        """Weight of an own token of a rollout in a loss that acts on it by some factor.

        Its share (:func:`trainers.rollout.batches.token_share`) is that in the whole update, whatever optimiser step it
        is trained in.
        """
        played = self.batch.trajectories
        counts = {"rollouts": len(played), "own": played[rollout].model_tokens, "tokens": self._own_tokens}
        share = token_share(self.aggregation, **counts, longest=self.longest)
        return token_weight(share * self.minibatches, factor)

    @cached_property
    def _own_tokens(self) -> int:
        return sum(each.model_tokens for each in self.batch.trajectories)


class RowMaker(Options):
    """Base of a row maker: a frozen dataclass of its options."""

    name: ClassVar[str]
    needs_comparison: ClassVar[bool] = False
    """Whether it makes rows only where both conditions are played beside each other."""
    needs_skill: ClassVar[bool] = False
    """Whether it makes rows of rollouts that saw the skill alone."""
    needs_fitting_text: ClassVar[bool] = False
    """Whether its rows follow who read the skill also where nothing was won, so that the text must be the right one."""

    @property
    def most_rows(self) -> float:
        """The most rows that it adds to an update, as a share of its rollouts."""
        return 1.0

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """Makes this process's rows.

        A row names the losses that act on it, and its tokens' weight in each: see :meth:`UpdateView.weight`. A row for
        a loss with a teacher may bring the row that the teacher reads; without, the loss's own prompt is rendered.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class ImitatedRows(RowMaker):
    """Base of row makers for :class:`trainers.losses.distillation.Relabelling`.

    Behind the prompt without the skill a thought that quotes the skill is out of place: it teaches to recite what was
    not shown, and whatever follows it in the row still reads the quotation.
    """

    quoting_thoughts: Literal["keep", "mask", "drop"] = "keep"
    """What becomes of such thoughts: "keep"; "mask": they are not imitated, and later turns read them; "drop": they are
    taken out of the row."""
    quoted_words: Natural = 4
    """Words in a row that a thought has in common with the skill, and that nobody else said, make it a quotation; 0 for
    every thought."""

    def imitated(self, update: UpdateView, i: int, weight: float, *, as_played: bool = False) -> list[TrainingRow]:
        """A rollout's rows behind the prompt without the skill, or, ``as_played``, behind that which was played."""
        trajectory = update.batch.trajectories[i]
        rows = trajectory.rows
        if not as_played:
            rows = [update.prompts.with_skill_text(row, "") for row in self._edited(trajectory, update.prompts.chat)]
        return _rows(update, i, "relabelling", rows, factor=weight)

    def _edited(self, trajectory: Trajectory, chat: ChatTokens) -> list[TokenRow]:
        if self.quoting_thoughts == "keep" or any(row.allowed for row in trajectory.rows):
            # What was drawn among commands holds no thought of its own.
            return trajectory.rows
        quoting = iter(quoting_turns(trajectory.episode, self.quoted_words))
        drop = self.quoting_thoughts == "drop"
        rows = [_edited_row(row, [next(quoting) for _ in row.reply_lengths], chat, drop) for row in trajectory.rows]
        return [row for row in rows if row.model_tokens]


def quoting_turns(episode: Episode, words_in_common: int) -> list[bool]:
    """Of each turn, whether its thought quotes the skill: see :class:`ImitatedRows`."""

    def runs(text: str) -> set[tuple[str, ...]]:
        found = words(text)
        return {tuple(found[i : i + words_in_common]) for i in range(len(found) - words_in_common + 1)}

    thoughts = [_thoughts(turn.reply) for turn in episode.turns]
    if not words_in_common:
        return [bool(thought) for thought in thoughts]
    others = "\n".join([episode.goal, *(turn.observation for turn in episode.turns)])
    secret = runs(episode.skill_text) - runs(others)
    return [bool(runs(thought) & secret) for thought in thoughts]


def _thoughts(reply: str) -> str:
    """What stands in front of a reply's command: all up to the last thought's end, and one that is left open."""
    closed, _, rest = reply.rpartition("</think>")
    return closed + rest.partition("<think>")[2]


def _edited_row(row: TokenRow, quoting: Sequence[bool], chat: ChatTokens, drop: bool) -> TokenRow:
    own = [place for place, mine in enumerate(row.loss_mask) if mine]
    thoughts, lengths, start = set[int](), [], 0
    for length, quotes in zip(row.reply_lengths, quoting, strict=True):
        ids = [row.completion_ids[place] for place in own[start : start + length]]
        cut = _thought_tokens(ids, chat) if quotes else 0
        thoughts |= set(own[start : start + cut])
        lengths.append(length - cut)
        start += length
    # Behind a thought that was left open the end of the turn stays, as the next turn needs it.
    dropped = {place for place in thoughts if row.completion_ids[place] not in chat.eos_ids} if drop else set()
    kept = [place for place in range(len(row.completion_ids)) if place not in dropped]
    return replace(
        row,
        completion_ids=[row.completion_ids[place] for place in kept],
        loss_mask=[int(row.loss_mask[place] and place not in thoughts) for place in kept],
        logprobs=[row.logprobs[place] for place in kept],
        reply_lengths=tuple(lengths),
    )


def _thought_tokens(ids: Sequence[int], chat: ChatTokens) -> int:
    """How many of a reply's first tokens are its thoughts; the end of one that the prompt began is none of them."""
    reply = chat.reply_text(ids)
    if "<think>" in reply.rpartition("</think>")[2]:  # left open
        return len(ids)
    ends = reply.count("</think>")
    end = bisect_left(range(len(ids)), ends, key=lambda count: chat.reply_text(ids[:count]).count("</think>"))
    if not chat.opens_thought:
        return end
    tag = end
    while tag and "</think>" not in chat.reply_text(ids[tag:end]):  # of several tokens in some vocabularies
        tag -= 1
    return tag


@dataclass(frozen=True)
class RelabelledRows(ImitatedRows):
    """Won skill-injected rollouts, weighed by :func:`relabelling_weights`."""

    name: ClassVar[str] = "relabelled_rows"
    needs_comparison: ClassVar[bool] = True
    most: Fraction = 0.5
    """Largest number of relabelled episodes, as a share of the update's."""
    discounted: bool = True
    """Whether an episode weighs less, the more often its task is won without the skill."""
    by_contrast: bool = True
    """Whether an episode weighs less as its type's contrast closes."""

    @property
    def most_rows(self) -> float:
        """As many as it may relabel."""
        return self.most

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's relabelled rows."""
        weights = self._weights(update)
        return [row for i in update.own if weights[i] for row in self.imitated(update, i, float(weights[i]))]

    def _weights(self, update: UpdateView) -> FloatArray:
        """Weight of every rollout of the update, float64[N]; the same on all processes."""
        batch = update.batch
        contrast = batch.signals.contrast if self.by_contrast else np.ones(len(batch.trajectories))
        weights = relabelling_weights(batch.success, batch.task, batch.condition, contrast, discounted=self.discounted)
        order = np.argsort(-weights, kind="stable")
        weights[order[int(self.most * len(weights)) :]] = 0.0
        return weights


@dataclass(frozen=True)
class WonRows(ImitatedRows):
    """Every won episode at full weight, in whichever condition it was played."""

    name: ClassVar[str] = "won_rows"
    imitated_behind: Literal["without_skill", "both"] = "without_skill"
    """Where an episode that was played with the skill is imitated: behind the prompt without it, or behind both, which
    ``hint_reliance`` then averages over."""

    @property
    def most_rows(self) -> float:
        """One for each prompt."""
        return 2.0 if self.imitated_behind == "both" else 1.0

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's won episodes."""
        made = []
        for i in update.own:
            if update.batch.success[i]:
                made += self.imitated(update, i, 1.0)
                if self.imitated_behind == "both" and update.batch.condition[i]:
                    made += self.imitated(update, i, 1.0, as_played=True)
        return made


@dataclass(frozen=True)
class PlainRows(RowMaker):
    """Every rollout that saw the skill, behind the prompt without it and with its advantage.

    For :class:`trainers.losses.policy_gradient.PrivilegedStudent`.
    """

    name: ClassVar[str] = "plain_rows"
    needs_skill: ClassVar[bool] = True
    needs_fitting_text: ClassVar[bool] = True

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's rollouts."""
        return [row for i in update.own if update.batch.condition[i] for row in _credited(update, i, "student", "")]


@dataclass(frozen=True)
class HindsightRows(RowMaker):
    """The update's own rollouts with a teacher's text each, in place of those without: OPID (arXiv 2606.26790).

    A won episode's text is its own steps; a lost one's are those of the won episodes of its task in this update, or of
    its task type if there are none. Where nobody won, the teacher reads what the student reads. The paper lets a
    language model write, for the episode and for up to five single steps.
    """

    name: ClassVar[str] = "hindsight_rows"
    least: Fraction = 0.6
    """Share of the won episodes that must have taken a step."""
    most_rows = 0.0
    """They stand in place of others."""

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's rows, each with the policy gradient acting on it."""
        episodes = [trajectory.episode for trajectory in update.batch.trajectories]
        writer = StepWriter(self.least)
        return [
            row
            for i in update.own
            for row in _taught(update, _credited(update, i, "policy"), _lesson(writer, episodes[i], episodes))
        ]


def _lesson(writer: StepWriter, episode: Episode, everyone: Sequence[Episode]) -> str:
    if episode.won:
        told = [episode]
    else:
        won = [other for other in everyone if other.won and other.task_type == episode.task_type]
        told = [*([other for other in won if other.task_id == episode.task_id] or won), episode]
    drafts = writer.write(told)
    return drafts[0].text if drafts else ""


def _taught(update: UpdateView, rows: Sequence[TrainingRow], text: str) -> list[TrainingRow]:
    """Rows with a teacher that reads this text, or without one what the student reads, for the loss on each."""
    teach = update.prompts.with_skill_text
    return [
        replace(row, teachers=dict.fromkeys(row.weights, teach(row.row, text) if text else row.row)) for row in rows
    ]


def _credited(update: UpdateView, i: int, loss: str, text: str | None = None) -> list[TrainingRow]:
    """A rollout's rows with its advantage, behind the prompt that was played, or behind one with this text."""
    trajectory = update.batch.trajectories[i]
    values = np.broadcast_to(np.asarray(update.advantages.values[i], dtype=np.float64), trajectory.model_tokens)
    rows = [row if text is None else update.prompts.with_skill_text(row, text) for row in trajectory.rows]
    return _rows(update, i, loss, rows, advantages=[values[own] for _, own in trajectory.own_rows()])


def _rows(
    update: UpdateView,
    i: int,
    loss: str,
    rows: Sequence[TokenRow],
    *,
    factor: float = 1.0,
    advantages: Sequence[FloatArray] | None = None,
) -> list[TrainingRow]:
    """Rows of a rollout for one loss, which acts on it by a factor; ``advantages`` are those of each row, 0 if None."""
    weights, place = {loss: update.weight(i, factor)}, update.own.index(i)
    kind = update.batch.trajectories[i].episode.task_type
    given = advantages or [np.zeros(row.model_tokens) for row in rows]
    return [TrainingRow(row, own, weights, place, kind) for row, own in zip(rows, given, strict=True)]


@dataclass(frozen=True)
class GuidedRows(RowMaker):
    """Rows for :class:`trainers.losses.distillation.GuidedDistillation`."""

    name: ClassVar[str] = "guided_rows"

    def __call__(self, update: UpdateView) -> list[TrainingRow]:
        """This process's won guided episodes."""
        made, prompts = [], update.prompts
        for i in update.own:
            episode = update.batch.trajectories[i].episode
            if prompts.library is not None and episode.won and is_guided(episode.skill):
                usual = specific_text(prompts.library, episode.task_type).text
                rows = [prompts.with_skill_text(row, usual) for row in update.batch.trajectories[i].rows]
                made += _taught(update, _rows(update, i, "guided_distillation", rows), episode.skill_text)
        return made
