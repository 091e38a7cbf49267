"""Method: what the trainer asks of it, and what a checkpoint keeps; its parts: allocations, row makers, additions."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import load_library
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from tests.trainers.toys import batch_of, episode, trajectory
from trainers.advantages import Advantages, Grpo, RolloutBatch, Signals, csca
from trainers.allocation import (
    Trials,
    annealed_allocation,
    fading_allocation,
    gap_lower_bound,
    signal_allocation,
    skill_needed,
    value_allocation,
)
from trainers.base import TokenRow
from trainers.recipes import get_recipe, recipe_names
from trainers.recipes.method import Method
from trainers.recipes.parts.allocation import (
    Annealed,
    ByContrast,
    ByDifficulty,
    ByNeed,
    BySignal,
    ByTrials,
    ByValue,
    Half,
)
from trainers.recipes.parts.rows import GuidedRows, HindsightRows, PlainRows, RelabelledRows, UpdateView, WonRows
from trainers.rollout.batches import TrainingRow, make_training_rows
from trainers.stats import wilson

RATE = st.floats(0, 1)


@given(RATE, RATE, st.integers(2, 16), st.floats(0.1, 10))
def test_allocations_by_rates_follow_their_definitions(p1, p0, group, kappa):
    s1, s0 = math.sqrt(p1 * (1 - p1)), math.sqrt(p0 * (1 - p0))
    for got, one, other in (
        (signal_allocation(p1, p0, group, kappa), kappa * s1, s0),
        (value_allocation(p1, p0, group), p1 * (1 - p0), s0),
        # As many go without the skill as is reached without it, of what is reached with it.
        (annealed_allocation(p1, p0, group), max(p1 - p0, 0.0), p0 if p0 < p1 else 1.0),
    ):
        assert 1 <= got <= group - 1
        if one + other > 1e-8:
            assert abs(got - min(max(group * one / (one + other), 1), group - 1)) <= 0.5 + 1e-9
    assert signal_allocation(1.0, 0.0, 8) == 4
    assert value_allocation(1.0, 0.0, group) == group - 1
    assert value_allocation(p1, 1.0, group) == 1
    assert [annealed_allocation(0.8, reached, 8) for reached in (0.0, 0.2, 0.4, 0.8, 1.0)] == [7, 6, 4, 1, 1]


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


@given(st.floats(-1, 1), st.floats(-1, 1), st.integers(2, 16), st.floats(0.05, 1))
def test_fewer_see_the_skill_as_the_gap_closes(gap, other, group, full):
    low, high = (fading_allocation(value, group, full) for value in sorted((gap, other)))
    assert 1 <= low <= high <= group // 2
    assert fading_allocation(full, group, full) == group // 2
    assert [fading_allocation(gap, 8) for gap in (-0.3, 0.0, 0.1, 0.15, 0.2, 0.9)] == [1, 1, 2, 3, 4, 4]


CURRICULUM = InternalizationCurriculum(["heat", "cool", "look"], total_steps=10)


def mixed(won_with: int, tries_with: int, won_without: int, tries_without: int, skill: str = "heat") -> RolloutBatch:
    with_ = [episode(won=i < won_with, condition=1, skill=skill) for i in range(tries_with)]
    return batch_of([*with_, *[episode(won=i < won_without) for i in range(tries_without)]])


def test_half_of_a_group_sees_the_skill_while_its_type_has_one():
    curriculum = InternalizationCurriculum(["heat"], total_steps=10, capacity=(1, 0))
    assert Half().n_plus(curriculum, "heat", 7) == 4
    curriculum.expire(10)
    assert Half().n_plus(curriculum, "heat", 7) == 0


@pytest.mark.parametrize(
    ("allocation", "first", "played", "then"),
    [
        # The branch whose outcome varies gets the rollouts.
        (BySignal(), 4, [(10, mixed(8, 8, 4, 8))], [2]),
        # One to probe; half where the skill is needed; none where it is not.
        (ByNeed(), 1, [(12, mixed(4, 4, 0, 12)), (12, mixed(0, 0, 6, 8))], [4, 0]),
        # Fewer as its value fades.
        (ByValue(), 3, [(10, mixed(6, 7, 0, 1)), (40, mixed(4, 4, 4, 5))], [6, 3]),
        # All but one, then what is missing without the skill.
        (Annealed(), 7, [(12, mixed(4, 7, 0, 1)), (30, mixed(3, 4, 2, 4))], [7, 3]),
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


def test_easy_types_are_probed_without_the_skill_also_after_a_restart():
    allocator, shown = ByDifficulty().start(CURRICULUM), []
    assert allocator.n_plus("heat", 8) == 8
    for won in ({"heat": 8, "cool": 4, "look": 0}, {"heat": 5}, {"heat": 6}):  # of ten; easy is above the updates' mean
        played = [(kind, i < count) for kind, count in won.items() for i in range(10)]
        allocator.observe(
            batch_of([episode(kind, won=win, condition=1, kind=kind, skill=kind) for kind, win in played])
        )
        state, allocator = json.dumps(allocator.state_dict()), ByDifficulty().start(CURRICULUM)
        allocator.load_state_dict(json.loads(state))
        shown.append([allocator.n_plus(kind, 8) for kind in ("heat", "cool", "look")])
    assert shown == [[4, 8, 8], [8, 8, 8], [4, 8, 8]]


def view(batch: RolloutBatch, own: list[int] | None = None, library: Any = None) -> UpdateView:
    """An update whose prompts hold the length of the skill's text in place of its tokens."""

    def with_skill_text(row: TokenRow, text: str) -> TokenRow:
        return replace(row, prompt_ids=[len(text)], messages=[{"role": "system", "content": text}])

    prompts: Any = SimpleNamespace(library=library, chat=None, with_skill_text=with_skill_text)
    size = len(batch.task)
    return UpdateView(batch, Advantages(np.arange(size, dtype=np.float64)), own or list(range(size)), prompts, 1, 0)


def taught(row: TrainingRow, loss: str) -> str:
    return row.teachers[loss].messages[0]["content"]


def contrasted(episodes: list[Any], contrast: float = 0.5) -> RolloutBatch:
    size = len(episodes)
    return batch_of(episodes, signals=Signals(np.zeros(size), np.full(size, contrast), np.zeros(size)))


def test_won_injected_episodes_are_relabelled():
    played = [episode(won=won, condition=z) for z in (1, 0) for won in (True, False)]
    update = view(contrasted(played))
    (row,) = RelabelledRows()(update)
    assert (row.row.prompt_ids, row.trajectory) == ([0], 0)
    assert row.weights == {"relabelling": pytest.approx(0.25 / (4 * 4))}
    assert RelabelledRows()(replace(update, own=[1, 2])) == []
    closed = view(contrasted(played, -0.2))
    assert RelabelledRows()(closed) == []
    assert len(RelabelledRows(by_contrast=False)(closed)) == 1
    many = contrasted([episode(str(i), won=True, condition=1) for i in range(8)])
    assert len(RelabelledRows(most=0.25)(view(many))) == 2


@pytest.mark.parametrize("aggregation", ["trajectory", "token", "constant"])
def test_a_rollouts_extra_row_weighs_what_the_rollout_does(aggregation: Any) -> None:
    batch = batch_of([episode(won=True, condition=1), episode(won=False, actions=["go"])])
    (row,) = WonRows()(replace(view(batch), aggregation=aggregation, longest=50))
    played, _ = make_training_rows(batch.trajectories, [0, 0], range(2), aggregation, total=2, tokens=6, longest=50)
    assert row.weights["relabelling"] == played.weights["policy"]


def test_imitation_takes_every_won_episode_behind_the_prompt_without_the_skill_or_behind_both():
    batch = mixed(2, 3, 1, 2)
    alone, both = (WonRows(imitated_behind=behind)(view(batch)) for behind in ("without_skill", "both"))
    won = [i for i, success in enumerate(batch.success) if success]
    played = batch.trajectories[0].rows[0].prompt_ids
    assert played != [0]
    assert [(row.trajectory, row.row.prompt_ids) for row in alone] == [(i, [0]) for i in won]
    twice = [[0], played], [[0], played], [[0]]
    assert [(row.trajectory, row.row.prompt_ids) for row in both] == [
        (i, prompt) for i, prompts in zip(won, twice, strict=True) for prompt in prompts
    ]
    assert {tuple(row.weights) for row in (*alone, *both)} == {("relabelling",)}
    assert len({row.weights["relabelling"] for row in both}) == 1
    assert [row.trajectory for row in WonRows()(view(batch, own=[1, 2]))] == [0]
    assert (WonRows().most_rows, WonRows(imitated_behind="both").most_rows) == (1.0, 2.0)


THOUGHTS = ("key step heat it first", "find the egg", "a hot egg wanted", "find </think> <think> step heat it first")
COMMANDS = ("heat egg", "go", "take egg", "look")


@pytest.mark.parametrize(
    ("options", "masked", "dropped"),
    [
        ({}, (), ()),
        ({"quoting_thoughts": "mask"}, (0, 3), ()),
        ({"quoting_thoughts": "drop"}, (0, 3), (0, 3)),
        ({"quoting_thoughts": "drop", "quoted_words": 9}, (), ()),
        ({"quoting_thoughts": "drop", "quoted_words": 0}, (0, 1, 2, 3), (0, 1, 2, 3)),
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
    prompts.chat = SimpleNamespace(
        opens_thought=opened, reply_text=lambda ids: " ".join(vocabulary[i] for i in ids), eos_ids=[]
    )
    (made,) = RelabelledRows(most=1.0, **options)(update)
    shown = [vocabulary[i] for i in made.row.completion_ids]
    assert " ".join(shown).split(" seen ") == replies(dropped)
    imitated = [word for word, mine in zip(shown, made.row.loss_mask, strict=True) if mine]
    assert imitated == " ".join(replies(masked)).split()
    assert sum(made.row.reply_lengths) == made.row.model_tokens == len(made.row.own_logprobs) == len(made.advantages)


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("left_open", [True, False])
def test_a_quotation_may_be_cut_and_its_end_may_be_of_several_tokens(opened: bool, left_open: bool) -> None:
    """Letter by letter, of which ``$`` ends the turn: that stays, and so does the end of what the prompt began."""
    said = ("" if opened else "<think>") + "key step heat it first" + ("$" if left_open else "</think>go$")
    row = TokenRow([0], [ord(letter) for letter in said], [1] * len(said), [-1.0] * len(said), (len(said),))
    played = episode(condition=1, actions=["<think>" + said.removeprefix("<think>")], text="Key step: heat it first.")
    batch = contrasted([played])
    update = view(replace(batch, trajectories=(replace(batch.trajectories[0], rows=[row]),)))
    prompts: Any = update.prompts
    opening = "<think>" if opened else ""
    prompts.chat = SimpleNamespace(
        opens_thought=opened, reply_text=lambda ids: opening + "".join(map(chr, ids)), eos_ids=[ord("$")]
    )
    made = RelabelledRows(most=1.0, quoting_thoughts="drop")(update)
    kept = {True: "", False: "</think>go$" if opened else "go$"}[left_open]
    assert ["".join(map(chr, each.row.completion_ids)) for each in made] == ([] if left_open else [kept])


def test_hindsight_teaches_with_what_won():
    heat = ["go to fridge 1", "heat egg 1 with microwave 1"]
    batch = batch_of([episode(won=True, actions=heat), episode(won=False), episode("other", won=False, kind="cool")])
    won, lost, nobody = HindsightRows()(view(batch))
    assert "heat O with microwave 1" in taught(won, "policy")
    assert "Key step: heat O with microwave 1" in taught(lost, "policy")
    assert nobody.teachers["policy"] is nobody.row, "it reads what the student reads"
    assert {tuple(row.weights) for row in (won, lost, nobody)} == {("policy",)}
    assert lost.advantages.tolist() == [1.0] * 4


def test_pi_distills_student_learns_from_who_saw_the_skill_alone():
    batch = batch_of([episode(won=True), episode(won=False, condition=1), episode(won=True, condition=1)])
    made = PlainRows()(view(batch))
    assert [(row.trajectory, set(row.weights)) for row in made] == [(1, {"student"}), (2, {"student"})]
    assert [row.advantages.tolist() for row in made] == [[1.0] * 4, [2.0] * 4]


def test_won_guided_episodes_are_put_behind_the_usual_prompt():
    kind, library = "pick_heat_then_place_in_recep", load_library("alfworld")
    guided = {"condition": 1, "kind": kind, "skill": "general+heat", "text": "all of it"}
    batch = batch_of([episode(won=True, **guided), episode(won=False, **guided), episode("u", won=True, condition=1)])
    (row,) = GuidedRows()(view(batch, library=library))
    own = next(skill for skill in library.skills if skill.name == "heat")
    assert (taught(row, "guided_distillation"), row.row.prompt_ids) == ("all of it", [len(own.text)])


TYPES = ("heat", "cool", "look")


def columns(returns: list[float], n_plus: int, task: str = "g1", kind: str = "heat") -> RolloutBatch:
    size = len(returns)
    return RolloutBatch.build(
        returns=returns,
        task=[task] * size,
        task_type=[kind] * size,
        condition=[int(i < n_plus) for i in range(size)],
        length=[float(i + 1) for i in range(size)],
    )


def start(name: str, **overrides: object) -> Method:
    return Method(get_recipe(name, **overrides), TYPES, 180)


def walk(state: Method, seed: int, steps: int) -> list[object]:
    """Some training with every kind of event; returns the trace."""
    rng = np.random.default_rng(seed)
    trace: list[object] = []
    for step in range(steps):
        for kind in TYPES:
            n_plus = state.n_plus(kind, 8)
            task = f"{kind}-{rng.integers(3)}"
            _, adv, log = state.credit(columns(rng.integers(0, 2, 8).astype(float).tolist(), n_plus, task, kind))
            trace.append((n_plus, adv.values.tolist(), log))
        if step % 2 == 0:
            with_, without = ({k: float(rng.uniform()) for k in TYPES} for _ in range(2))
            trace.append(state.curriculum.update(with_, without, 10 * step))
    return trace


def test_repeated_tasks_weigh_less() -> None:
    state = start("skillc", beta_freq=1.0)
    corrections = [state.credit(columns([1.0, 0.0], 1)).log["correction"]["heat"] for _ in range(3)]
    assert corrections == pytest.approx([0.5, 0.25, 0.5 / 3])
    assert state.state_dict()["visits"] == {"g1": 3}


def test_a_harmful_skill_is_never_credited() -> None:
    _, _, log = start("skillc").credit(columns([0.0, 1.0], 1))
    assert log["contrast_observed"] == log["contrast"] == {"heat": -1.0}
    assert log["correction"] == {"heat": 0.0}


def test_a_retired_type_gets_no_correction() -> None:
    state = start("skillc")
    state.credit(columns([1.0, 0.0], 1))
    state.curriculum.update(dict.fromkeys(TYPES, 0.0), {"heat": 1.0, "cool": 0.0, "look": 0.0}, 10)
    assert (state.n_plus("heat", 8), state.n_plus("cool", 8)) == (0, 1)
    returns = [1.0, 0.0, 0.0]
    _, adv, log = state.credit(columns(returns, 0))
    assert log["correction"] == {"heat": 0.0}
    assert np.array_equal(adv.values, csca(returns, ["g1"] * 3, [0] * 3, [0.0] * 3))


def test_contrast_by_task_is_an_option() -> None:
    state = start("skillc", key="task")
    state.credit(columns([1.0, 0.0], 1, task="g1"))
    assert state.correction("g1", "heat") > 0.0
    assert state.correction("g2", "heat") == 0.0


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("skillc", [1, 1, 0, 0, 0]),
        ("skill0", [8, 8, 0, 0, 0]),
        ("static_withdrawal", [8, 8, 8, 0, 0]),
        *((name, [8] * 5) for name in ("skill_grpo", "context_distillation", "guarded_imitation")),
        *((name, [0] * 5) for name in ("grpo", "raft")),
        ("annealed_imitation", [7] * 5),  # by training rollouts alone, of which there are none
    ],
)
def test_who_sees_a_skill_that_harms_before_and_after_each_validation(name: str, shown: list[int]) -> None:
    method = Method(get_recipe(name), ("heat", "cool"), total_steps=20)
    seen = [method.n_plus("heat", 8)]
    for step in (0, 8, 10, 16):
        method.curriculum.update({"heat": 0.1, "cool": 0.1}, {"heat": 0.9, "cool": 0.9}, step)
        seen.append(method.n_plus("heat", 8))
    assert seen == shown
    assert len(method.active) == {8: 2, 7: 2, 0: 0}[shown[-1]]


def test_drawn_groups_are_whole_and_keep_the_curriculums_share() -> None:
    state = start("no_pairing", rho=0.3)
    drawn = [state.n_plus("heat", 8) for _ in range(100)]
    assert set(drawn) == {0, 8}
    assert (drawn[:4], drawn.count(8)) == ([0, 8, 0, 0], 30)


def test_skill0_ranks_by_the_last_gap_alone() -> None:
    state = start("skill0")
    state.curriculum.update({"heat": 1.0, "cool": 1.0, "look": 1.0}, dict.fromkeys(TYPES, 0.0), 10)
    retired = state.curriculum.update({"heat": 0.4, "cool": 0.9, "look": 0.8}, dict.fromkeys(TYPES, 0.5), 60)
    assert [(r.task_type, r.reason) for r in retired] == [("heat", "gap")]
    assert state.curriculum.gap("cool") == pytest.approx(0.4)


def test_diagnostics_say_whom_the_update_rewards() -> None:
    state = start("skillc")
    _, adv, log = state.credit(columns([1.0, 1.0, 0.0, 0.0], 2))
    assert log["advantage_mean"] == {
        "with_success": adv.values[:2].mean(),
        "with_failure": None,
        "without_success": None,
        "without_failure": adv.values[2:].mean(),
    }
    assert log["failed_with_positive_advantage"] == 0.0
    assert (log["n_plus"], log["rollout_fraction_with"]) == ({"heat": 2.0}, {"heat": 0.5})
    assert np.allclose(np.sum(list(adv.parts.values()), axis=0), adv.values)
    assert json.loads(json.dumps(log)) == log
    assert start("grpo").credit(columns([0.0, 0.0], 0)).log["failed_with_positive_advantage"] == 0.0


def test_injected_rollouts_are_counted_per_group_where_a_task_comes_twice() -> None:
    played = [replace(trajectory(episode(condition=i < 2)), group=group) for group in (0, 1) for i in range(4)]
    _, _, log = start("half_skill_grpo").credit(RolloutBatch.from_trajectories(played))
    assert log["n_plus"] == {"heat": 2.0}


@pytest.mark.parametrize(("mask", "share"), [("all", 1.0), ("success", 0.0)])
def test_failed_rollouts_can_be_rewarded_by_the_letter_of_the_correction(mask: str, share: float) -> None:
    state = start("skillc", omega=4.0, correction_mask=mask)
    assert state.credit(columns([1.0, 1.0, 0.0, 0.0], 2)).log["failed_with_positive_advantage"] == share


# These read whole trajectories, which the columns of this file do not have.
FROM_TRAJECTORIES = {"gigpo", "ppo", "skill05"}


@pytest.mark.parametrize("name", sorted({*recipe_names()} - FROM_TRAJECTORIES))
def test_a_restored_method_goes_on_with_the_identical_trace(name: str) -> None:
    state, restored = start(name), start(name)
    walk(state, seed=1, steps=5)
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))
    assert restored.state_dict() == state.state_dict()
    assert walk(restored, seed=2, steps=5) == walk(state, seed=2, steps=5)
    assert restored.state_dict() == state.state_dict()


def test_checkpoints_of_another_run_are_refused() -> None:
    whole = start("skillc").state_dict()
    for says, state in {
        r"method 'grpo'.*'skillc'": start("grpo").state_dict(),
        r"omega=0\.1 \(now 0\.4\)": start("skillc", omega=0.1).state_dict(),
        "task_types": Method(get_recipe("skillc"), TYPES[:2], 180).state_dict(),
        "total_steps": Method(get_recipe("skillc"), TYPES, 90).state_dict(),
        "lacks contrast": {name: value for name, value in whole.items() if name != "contrast"},
    }.items():
        with pytest.raises(CheckpointError, match=says):
            start("skillc").load_state_dict(state)


def test_an_unknown_type_is_named_before_anything_moves() -> None:
    state = start("skillc")
    with pytest.raises(UnknownNameError, match="heet"):
        state.credit(columns([1.0, 0.0], 1, kind="heet"))
    assert state.state_dict() == start("skillc").state_dict()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.array([1.0, math.nan]), r"finite, for rollouts \[1\]"),
        (np.array([1.0]), "1 advantages for 2"),
        ([np.zeros(4), np.zeros(1)], r"shape \(1,\) for rollout 1, not \(4,\)"),
    ],
)
def test_a_scheme_that_gives_no_advantages_is_named(given: Any, says: str) -> None:
    class Broken(Grpo):
        name: ClassVar[str] = "broken"

        def __call__(self, batch: RolloutBatch) -> Advantages:
            return Advantages(given)

    method = Method(replace(get_recipe("grpo"), advantage=Broken()), TYPES, 180)
    rollouts: Any = (SimpleNamespace(model_tokens=4),) * 2
    with pytest.raises(ConfigError, match=f"'broken' gave.*{says}"):
        method.credit(replace(columns([1.0, 0.0], 0), trajectories=rollouts))
