"""Allocations, row makers and additions of the published methods and the study's variants."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import load_library
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import ConfigError
from tests.trainers.rollouts_of import batch_of, episode
from trainers.advantages import Advantages, RolloutBatch, Signals
from trainers.allocation import (
    DifficultyRouter,
    Trials,
    fading_allocation,
    gap_lower_bound,
    signal_allocation,
    skill_needed,
    value_allocation,
)
from trainers.base import TokenRow
from trainers.recipes import get_recipe
from trainers.recipes.parts.allocation import ByContrast, ByDifficulty, ByNeed, BySignal, ByTrials, ByValue
from trainers.recipes.parts.rows import GuidedRows, HindsightRows, RelabelledRows, UpdateView, WonRows
from trainers.rollout.batches import TrainingRow, make_training_rows
from trainers.stats import wilson

RATE = st.floats(0, 1)


@given(RATE, RATE, st.integers(2, 16), st.floats(0.1, 10))
def test_allocation_follows_its_definition(p1, p0, group, kappa):
    s1, s0 = math.sqrt(p1 * (1 - p1)), math.sqrt(p0 * (1 - p0))
    got = signal_allocation(p1, p0, group, kappa)
    assert 1 <= got <= group - 1
    if s1 + s0 > 1e-9:
        wanted = min(max(group * kappa * s1 / (kappa * s1 + s0), 1), group - 1)
        assert abs(got - wanted) <= 0.5 + 1e-9
    assert signal_allocation(1.0, 0.0, 8) == 4


@given(RATE, RATE, st.integers(2, 16))
def test_rollouts_see_the_skill_by_the_value_of_what_they_give(p1, p0, group):
    got = value_allocation(p1, p0, group)
    assert 1 <= got <= group - 1
    imitated, practised = p1 * (1 - p0), math.sqrt(p0 * (1 - p0))
    if imitated + practised > 1e-9:
        assert abs(got - min(max(group * imitated / (imitated + practised), 1), group - 1)) <= 0.5 + 1e-9
    assert value_allocation(1.0, 0.0, group) == group - 1
    assert value_allocation(p1, 1.0, group) == 1


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 20), st.integers(1, 20))
def test_the_gap_is_bounded_by_the_intervals_of_both_rates(a, n, b, m):
    a, b = min(a, n), min(b, m)
    low = gap_lower_bound(Trials(a, n), Trials(b, m))
    assert wilson(a, n).low - wilson(b, m).high - 1e-9 <= low <= a / n - b / m


def test_the_skill_is_shown_where_a_group_without_it_would_be_blind():
    assert skill_needed(Trials(50, 64), Trials(0, 64), 8)
    assert not skill_needed(Trials(50, 64), Trials(12, 64), 8)  # skill-free success is common enough
    assert not skill_needed(Trials(0, 64), Trials(0, 64), 8)  # the skill does not help
    assert not skill_needed(Trials(8, 8), Trials(0, 8), 8)  # too few trials to be sure
    assert not skill_needed(Trials(8, 8), Trials(0, 0), 8)


def test_bad_arguments_are_named():
    with pytest.raises(ConfigError, match="group_size=1"):
        signal_allocation(0.5, 0.5, 1)
    with pytest.raises(ConfigError, match="3 of 2"):
        skill_needed(Trials(1, 2), Trials(3, 2), 8)
    with pytest.raises(ConfigError, match="got 8 and 0"):
        fading_allocation(0.5, 8, 0.0)
    with pytest.raises(ConfigError, match="got 1 and"):
        fading_allocation(0.5, 1)


@given(st.floats(-1, 1), st.floats(-1, 1), st.integers(2, 16), st.floats(0.05, 1))
def test_fewer_see_the_skill_as_the_gap_closes(gap, other, group, full):
    low, high = (fading_allocation(value, group, full) for value in sorted((gap, other)))
    assert 1 <= low <= high <= group // 2
    assert fading_allocation(full, group, full) == group // 2


def test_a_closed_gap_leaves_one_rollout_with_the_skill():
    assert [fading_allocation(gap, 8) for gap in (-0.3, 0.0, 0.1, 0.15, 0.2, 0.9)] == [1, 1, 2, 3, 4, 4]


CURRICULUM = InternalizationCurriculum(["heat"], total_steps=10)


def mixed(won_with: int, tries_with: int, won_without: int, tries_without: int, skill: str = "heat") -> RolloutBatch:
    with_ = [episode(won=i < won_with, condition=1, skill=skill) for i in range(tries_with)]
    return batch_of([*with_, *[episode(won=i < won_without) for i in range(tries_without)]])


@pytest.mark.parametrize(
    ("allocation", "first", "played", "then"),
    [
        # The branch whose outcome varies gets the rollouts.
        (BySignal(), 4, [(10, mixed(8, 8, 4, 8))], [2]),
        # One to probe; half where the skill is needed; none where it is not.
        (ByNeed(), 1, [(12, mixed(4, 4, 0, 12)), (12, mixed(0, 0, 6, 8))], [4, 0]),
        # Fewer as its value fades.
        (ByValue(), 3, [(10, mixed(6, 7, 0, 1)), (40, mixed(4, 4, 4, 5))], [6, 3]),
        # Half until the gap has closed.
        (ByContrast(), 4, [(12, mixed(3, 4, 0, 4)), (30, mixed(3, 4, 3, 4))], [4, 1]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_who_sees_the_skill_follows_from_the_rollouts_and_goes_on_after_a_restart(
    allocation: ByTrials, first: int, played: list[tuple[int, RolloutBatch]], then: list[int]
) -> None:
    allocator = allocation.start(CURRICULUM)
    found = [allocator.n_plus("heat", 8)]
    assert allocator.n_plus("heat", 1) == 0
    for times, batch in played:
        for _ in range(times):
            allocator.observe(batch)
        again = allocation.start(CURRICULUM)
        again.load_state_dict(json.loads(json.dumps(allocator.state_dict())))
        allocator = again
        found.append(allocator.n_plus("heat", 8))
    assert found == [first, *then]


def test_conditions_are_never_compared_in_contrastive_relabelling():
    scheme = get_recipe("contrastive_relabelling").advantage
    alike = scheme(mixed(4, 4, 0, 4)).values
    assert np.asarray(alike).tolist() == [0.0] * 8
    mixed_up = replace(scheme, group_by="task")(mixed(4, 4, 0, 4)).values
    assert np.asarray(mixed_up).min() < -0.9


def test_easy_types_are_probed_without_the_skill():
    allocator = ByDifficulty().start(InternalizationCurriculum(["heat", "cool"], total_steps=10))
    assert allocator.n_plus("heat", 8) == 8
    cool = [episode("c", won=False, condition=1, kind="cool", skill="cool")]
    allocator.observe(batch_of([*cool, episode(won=True, condition=1, skill="heat")]))
    allocator.observe(batch_of([episode(won=w, condition=1, skill="heat") for w in (True, False)]))
    allocator.observe(batch_of([episode(won=True, condition=1, skill="heat")]))
    assert allocator.n_plus("heat", 8) == 4
    assert allocator.n_plus("cool", 8) == 8


def test_the_router_sorts_by_success():
    router = DifficultyRouter(window=2)
    assert router.level("a") == "medium"
    router.observe({"a": 0.0, "b": 0.4, "c": 0.8})
    assert [router.level(kind) for kind in "abc"] == ["hard", "medium", "easy"]
    again = DifficultyRouter(window=2)
    again.load_state_dict(router.state_dict())
    assert again.state_dict() == router.state_dict()


@dataclass
class FakePrompts:
    """Writes the skill text into the prompt's tokens as its length."""

    library: Any = None
    chat: Any = None

    def with_skill_text(self, row: TokenRow, text: str) -> TokenRow:
        return replace(row, prompt_ids=[len(text)], messages=[{"role": "system", "content": text}])


def taught(row: TrainingRow, loss: str) -> str:
    return row.teachers[loss].messages[0]["content"]


def view(batch: RolloutBatch, own: list[int] | None = None, library: Any = None) -> UpdateView:
    advantages = Advantages(np.arange(len(batch.task), dtype=np.float64))
    numbers = own or list(range(len(batch.task)))
    return UpdateView(batch, advantages, numbers, FakePrompts(library), 1, 0)  # type: ignore[arg-type]


def contrasted(episodes: list[Any], contrast: float = 0.5) -> RolloutBatch:
    size = len(episodes)
    return batch_of(episodes, signals=Signals(np.zeros(size), np.full(size, contrast), np.zeros(size)))


def test_won_injected_episodes_are_relabelled():
    batch = contrasted(
        [episode(won=True, condition=1), episode(won=False, condition=1), episode(won=True), episode(won=False)]
    )
    (row,) = RelabelledRows()(view(batch))
    assert (row.row.prompt_ids, row.trajectory) == ([0], 0)
    assert row.weights == {"relabelling": pytest.approx(0.25 / (4 * 4))}
    assert RelabelledRows()(view(batch, own=[1, 2])) == []
    closed = view(contrasted([e.episode for e in batch.trajectories], -0.2))
    assert RelabelledRows()(closed) == []
    assert len(RelabelledRows(by_contrast=False)(closed)) == 1


@pytest.mark.parametrize("aggregation", ["trajectory", "token", "constant"])
def test_a_rollouts_extra_row_weighs_what_the_rollout_does(aggregation: Any) -> None:
    batch = batch_of([episode(won=True, condition=1), episode(won=False, actions=["go"])])
    (row,) = WonRows()(replace(view(batch), aggregation=aggregation, longest=50))
    played, _ = make_training_rows(batch.trajectories, [0, 0], range(2), aggregation, total=2, tokens=6, longest=50)
    assert row.weights["relabelling"] == played.weights["policy"]


def test_at_most_a_share_is_relabelled():
    batch = contrasted([episode(str(i), won=True, condition=1) for i in range(8)])
    assert len(RelabelledRows(most=0.25)(view(batch))) == 2


def test_imitation_alone_takes_every_won_episode():
    batch = mixed(2, 3, 1, 2)
    rows = WonRows()(view(batch))
    assert [row.trajectory for row in rows] == [i for i, won in enumerate(batch.success) if won]
    assert {int(batch.condition[row.trajectory]) for row in rows} == {0, 1}
    assert all(row.weights.keys() == {"relabelling"} and row.row.prompt_ids == [0] for row in rows)
    assert [row.trajectory for row in WonRows()(view(batch, own=[1, 2]))] == [0]


def test_won_episodes_are_imitated_behind_both_prompts_if_asked():
    batch = contrasted([episode(won=True, condition=1), episode(won=True), episode(won=False, condition=1)])
    maker = WonRows(imitated_behind="both")
    rows = maker(view(batch))
    played = batch.trajectories[0].rows[0].prompt_ids
    assert [(row.trajectory, row.row.prompt_ids) for row in rows] == [(0, [0]), (0, played), (1, [0])]
    assert played != [0]
    assert len({row.weights["relabelling"] for row in rows}) == 1
    assert len(rows) <= maker.most_rows * len(batch.trajectories)


class FakeChat:
    """Knows words by their number."""

    def __init__(self, words: list[str], opens_thought: bool) -> None:
        self.words, self.opens_thought = words, opens_thought

    def reply_text(self, ids: list[int]) -> str:
        return " ".join(self.words[i] for i in ids)


THOUGHTS = ("key step heat it first", "find the egg", "a hot egg wanted")
COMMANDS = ("heat egg", "go", "take egg")


@pytest.mark.parametrize(
    ("options", "masked", "dropped"),
    [
        ({}, (), ()),
        ({"quoting_thoughts": "mask"}, (0,), ()),
        ({"quoting_thoughts": "drop"}, (0,), (0,)),
        ({"quoting_thoughts": "drop", "quoted_words": 9}, (), ()),
        ({"quoting_thoughts": "drop", "quoted_words": 0}, (0, 1, 2), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("opened", [True, False], ids=["the template opens thoughts", "the model does"])
def test_thoughts_that_quote_the_skill_are_kept_masked_or_dropped(
    options: dict[str, Any], masked: tuple[int, ...], dropped: tuple[int, ...], opened: bool
) -> None:
    """What the environment said too, here the goal's words, is no quotation."""
    opening, closing = ("", "</think> ") if opened else ("<think> ", "")

    def replies(without: tuple[int, ...]) -> list[str]:
        said = [f"{opening}{thought} </think> {command}" for thought, command in zip(THOUGHTS, COMMANDS, strict=True)]
        return [closing + COMMANDS[i] if i in without else reply for i, reply in enumerate(said)]

    vocabulary = sorted({word for reply in replies(()) for word in reply.split()} | {"seen"})
    words = " seen ".join(replies(())).split()
    mask = [int(word != "seen") for word in words]
    lengths = tuple(len(reply.split()) for reply in replies(()))
    row = TokenRow([0], [vocabulary.index(word) for word in words], mask, [-1.0] * len(words), lengths)
    played = episode(
        condition=1,
        actions=[f"<think> {reply.removeprefix('<think> ')}" for reply in replies(())],
        text="Key step: heat it first. A hot egg wanted by all.",
        goal="a hot egg wanted in the fridge",
    )
    batch = contrasted([played])
    update = view(replace(batch, trajectories=(replace(batch.trajectories[0], rows=[row]),)))
    prompts: Any = update.prompts
    prompts.chat = FakeChat(vocabulary, opened)
    (made,) = RelabelledRows(most=1.0, **options)(update)
    shown = [vocabulary[i] for i in made.row.completion_ids]
    assert " ".join(shown).split(" seen ") == replies(dropped)
    imitated = [word for word, mine in zip(shown, made.row.loss_mask, strict=True) if mine]
    assert imitated == " ".join(replies(masked)).split()
    assert sum(made.row.reply_lengths) == made.row.model_tokens == len(made.row.own_logprobs) == len(made.advantages)


def test_hindsight_teaches_with_what_won():
    heat = ["go to fridge 1", "heat egg 1 with microwave 1"]
    batch = batch_of([episode(won=True, actions=heat), episode(won=False), episode("other", won=False, kind="cool")])
    won, lost, nobody = HindsightRows()(view(batch))
    assert "heat O with microwave 1" in taught(won, "policy")
    assert "Key step: heat O with microwave 1" in taught(lost, "policy")
    assert taught(nobody, "policy") == ""
    assert {tuple(row.weights) for row in (won, lost, nobody)} == {("policy",)}
    assert lost.advantages.tolist() == [1.0] * 4


def test_won_guided_episodes_are_put_behind_the_usual_prompt():
    kind, library = "pick_heat_then_place_in_recep", load_library("alfworld")
    guided = {"condition": 1, "kind": kind, "skill": "general+heat", "text": "all of it"}
    batch = batch_of([episode(won=True, **guided), episode(won=False, **guided), episode("u", won=True, condition=1)])
    (row,) = GuidedRows()(view(batch, library=library))
    own = next(skill for skill in library.skills if skill.name == "heat")
    assert (taught(row, "guided_distillation"), row.row.prompt_ids) == ("all of it", [len(own.text)])
