"""The curriculum: gate, allocation, retirement, K(t), state; and the wrapper that follows it."""

import copy
import json
import math
from collections import Counter

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from toy_env import TYPES as TOYS
from toy_env import ToyEnv, faulty

from skillc_gym.curricula.difficulty import DifficultyCurriculum
from skillc_gym.curricula.skills import InternalizationCurriculum, Retirement, scale_capacity
from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from skillc_gym.vector import PairedVectorEnv
from skillc_gym.wrappers import ProceduralCurriculum, SkillCurriculum, SkillInjection

TYPES = ("pick", "look", "clean", "heat", "cool", "pick2")
a_gap = st.floats(-1.0, 1.0)
validation = st.fixed_dictionaries(dict.fromkeys(TYPES, a_gap))


def of_heat(**options: object) -> InternalizationCurriculum:
    return InternalizationCurriculum(["heat"], **options)


def at_gap(gap: float, **options: object) -> InternalizationCurriculum:
    return of_heat(initial_gap=gap, **options)


def feed(curriculum: InternalizationCurriculum, gaps: dict[str, float], step: int, **more) -> tuple[Retirement, ...]:
    with_ = {k: max(g, 0.0) for k, g in gaps.items()}
    without = {k: max(-g, 0.0) for k, g in gaps.items()}
    return curriculum.update(with_, without, step, **more)


def test_n_plus_rises_at_the_published_thresholds():
    for n_plus, threshold in enumerate((0.022, 0.055, 0.090, 0.132, 0.188, 0.285), start=2):
        below, above = (at_gap(threshold + nudge).n_plus("heat", 8) for nudge in (-0.001, 0.001))
        assert (below, above) == (n_plus - 1, n_plus)


def test_gate_and_shares_at_known_gaps():
    closed, wide = at_gap(0.0), at_gap(1.0)
    assert (closed.gate("heat"), closed.rho_with("heat"), closed.n_plus("heat", 8)) == (0.5, 0.1, 1)
    assert wide.gate("heat") == pytest.approx(1 / (1 + math.exp(-10)), rel=1e-15)
    assert (wide.rho_with("heat"), wide.n_plus("heat", 8)) == (pytest.approx(0.9, abs=1e-4), 7)
    assert at_gap(-1.0).rho_with("heat") == 0.1
    assert at_gap(0.0, rho=0.5).n_plus("heat", 3) == 2, "half shares round up"
    weighted = at_gap(0.1, lam=2.0)
    assert weighted.lam("heat") == 2.0 * weighted.gate("heat")
    assert weighted.lam("heat", visits=100) == pytest.approx(weighted.gate("heat"))


@given(gaps=st.tuples(a_gap, a_gap), temperature=st.floats(1e-6, 10), group_size=st.integers(2, 64))
def test_gate_and_n_plus_grow_with_the_gap_within_their_bounds(gaps, temperature, group_size):
    low, high = (at_gap(gap, temperature=temperature) for gap in sorted(gaps))
    assert 0.0 <= low.gate("heat") <= high.gate("heat") <= 1.0, "and nothing overflows"
    assert 1 <= low.n_plus("heat", group_size) <= high.n_plus("heat", group_size) <= group_size - 1


@given(observed=st.lists(a_gap, min_size=1, max_size=12))
def test_the_smoothed_gap_is_the_exponential_average(observed: list[float]):
    curriculum = of_heat(retire_by=())
    for gap in observed:
        feed(curriculum, {"heat": gap}, 10)
    closed_form = sum(0.3 * 0.7**age * gap for age, gap in enumerate(reversed(observed)))
    assert curriculum.gap("heat") == pytest.approx(closed_form, abs=1e-12)


def test_retirement_by_gap_and_by_budget_is_recorded():
    curriculum = InternalizationCurriculum(TYPES)
    gaps = {"pick": -0.1, "look": 0.2, "clean": 0.2, "heat": 0.9, "cool": 0.2, "pick2": 0.1}
    assert feed(curriculum, gaps, 10) == (Retirement("pick", 10, "gap", curriculum.gap("pick")),)
    assert curriculum.active == TYPES[1:]
    retired = feed(curriculum, gaps, 60)
    # heat leads; look, clean and cool tie, and the fixed order lets look and clean stay.
    assert [(r.task_type, r.reason) for r in retired] == [("cool", "budget"), ("pick2", "budget")]
    assert curriculum.active == ("look", "clean", "heat")
    assert {r.task_type for r in feed(curriculum, gaps, 120)} == {"look", "clean", "heat"}
    assert curriculum.active == ()
    assert len(curriculum.retirements) == 6


def test_a_retired_type_sees_no_skill_and_no_correction_but_keeps_its_gap():
    curriculum = InternalizationCurriculum(["heat", "cool"])
    feed(curriculum, {"heat": -0.5, "cool": 0.5}, 10)
    assert (curriculum.n_plus("heat", 8), curriculum.rho_with("heat"), curriculum.lam("heat")) == (0, 0.0, 0.0)
    feed(curriculum, {"heat": 1.0, "cool": 0.5}, 20)
    assert curriculum.gap("heat") == pytest.approx(0.7 * -0.15 + 0.3)
    assert (curriculum.is_active("heat"), curriculum.is_active("cool")) == (False, True)


def test_a_validation_before_training_moves_the_gap_and_retires_nobody():
    curriculum = InternalizationCurriculum(TYPES, capacity=(1,))
    assert feed(curriculum, dict.fromkeys(TYPES, -1.0), 0) == ()
    assert curriculum.active == TYPES
    assert curriculum.gap("pick") == pytest.approx(-0.3)
    assert feed(of_heat(capacity=(1,)), {"heat": 0.0}, 10) == (), "a gap of exactly the threshold stays"


def test_capacity_comes_in_thirds_and_scales_with_the_number_of_types():
    curriculum = InternalizationCurriculum(TYPES)
    assert [curriculum.capacity_at(s) for s in (0, 59, 60, 119, 120, 180, 500)] == [6, 6, 3, 3, 0, 0, 0]
    asked = [((6, 3, 0), 6), ((6, 3, 0), 1), ((1,), 1), ((4, 2, 0), 2), ((0,), 3)]
    assert [scale_capacity(*one) for one in asked] == [(6, 3, 0), (1, 1, 0), (1,), (2, 1, 0), (0,)]


@given(history=st.lists(validation, min_size=1, max_size=20), total_steps=st.integers(1, 250))
def test_the_active_set_only_shrinks_and_respects_the_budget(history, total_steps):
    curriculum = InternalizationCurriculum(TYPES, total_steps=total_steps)
    before = set(curriculum.active)
    for i, gaps in enumerate(history, start=1):
        feed(curriculum, gaps, 10 * i)
        assert set(curriculum.active) <= before
        assert len(curriculum.active) <= curriculum.capacity_at(10 * i)
        assert all(curriculum.gap(k) >= 0.0 for k in curriculum.active)
        before = set(curriculum.active)


def test_min_validations_shield_from_the_gap_but_not_from_the_budget():
    curriculum = InternalizationCurriculum(["heat", "cool"], min_validations=3, capacity=(2, 1), total_steps=100)
    losing = {"heat": -0.5, "cool": -0.6}
    assert feed(curriculum, losing, 10) == ()
    assert [r.reason for r in feed(curriculum, losing, 60)] == ["budget"]
    assert [(r.task_type, r.reason) for r in feed(curriculum, losing, 70)] == [("heat", "gap")]


def test_the_margin_asks_for_significance():
    noisy, sure = of_heat(margin=1.645), of_heat(margin=1.645)
    for curriculum, error in ((noisy, 0.15), (sure, 0.01)):
        feed(curriculum, {"heat": -0.1}, 10, standard_error={"heat": error})
    assert (noisy.active, sure.active) == (("heat",), ())
    with pytest.raises(ConfigError, match="standard_error"):
        feed(noisy, {"heat": -0.1}, 20)


def test_repeating_a_frozen_panel_makes_its_gap_no_surer():
    curriculum = of_heat(margin=2.0, retire_by=("gap",))
    for step in range(10, 400, 10):
        feed(curriculum, {"heat": -0.1}, step, standard_error={"heat": 0.06})
    assert curriculum.gap("heat") == pytest.approx(-0.1, abs=1e-3)
    assert curriculum.active == ("heat",)  # 0.1 is less than two standard errors of one validation
    feed(curriculum, {"heat": -1.0}, 400, standard_error={"heat": 0.06})
    assert curriculum.active == ()


def test_no_pruning_and_fixed_options():
    curriculum = InternalizationCurriculum(TYPES, retire_by=(), gate=0.5, rho=0.25)
    feed(curriculum, dict.fromkeys(TYPES, -1.0), 180)
    assert curriculum.active == TYPES
    assert (curriculum.gate("heat"), curriculum.rho_with("heat"), curriculum.n_plus("heat", 8)) == (0.5, 0.25, 2)
    only_budget = InternalizationCurriculum(TYPES, retire_by=("budget",))
    feed(only_budget, dict.fromkeys(TYPES, -1.0), 10)
    assert only_budget.active == TYPES


@given(history=st.lists(validation, min_size=2, max_size=10), cut=st.integers(0, 10))
def test_a_restored_curriculum_goes_on_with_the_identical_trace(history, cut):
    first = InternalizationCurriculum(TYPES, total_steps=100, min_validations=2, capacity=(4, 1), margin=0.5)
    errors = {"standard_error": dict.fromkeys(TYPES, np.float32(0.1))}  # numbers that JSON does not know
    second = InternalizationCurriculum(TYPES, **json.loads(json.dumps(first.config)))
    for i, gaps in enumerate(history):
        if i == cut:
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        feed(first, gaps, 10 * i, **errors)
        if i >= cut:
            feed(second, gaps, 10 * i, **errors)
            assert second.state_dict() == first.state_dict()


def test_states_of_another_curriculum_are_refused():
    state = InternalizationCurriculum(TYPES).state_dict()
    with pytest.raises(CheckpointError, match="task_types"):
        InternalizationCurriculum(TYPES[:3]).load_state_dict(state)
    with pytest.raises(CheckpointError, match=r"alpha_val=0\.7"):
        InternalizationCurriculum(TYPES, alpha_val=0.5).load_state_dict(state)
    with pytest.raises(CheckpointError, match="lacks gap"):
        InternalizationCurriculum(TYPES).load_state_dict({key: value for key, value in state.items() if key != "gap"})
    moved = {**state, "gap": dict.fromkeys(TYPES, 0.5)}
    for damage in ({"active": None}, {"validations": dict.fromkeys(TYPES, -4)}):
        curriculum = InternalizationCurriculum(TYPES)
        with pytest.raises(CheckpointError, match="damaged"):
            curriculum.load_state_dict({**moved, **damage})
        assert curriculum.state_dict() == state


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0.0), ("alpha_val", 1.0), ("tau_retire", math.nan), ("retire_by", "gap"), ("capacity", (3, 4))],
)
def test_options_out_of_range_are_named(name: str, value: object):
    with pytest.raises(ConfigError, match=name):
        of_heat(**{name: value})


RATES, ERRORS = {"heat": 0.5, "cool": 0.5}, {"heat": 0.1, "cool": 0.1}


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda one: one.gap("heet"), UnknownNameError),
        (lambda one: one.n_plus("heat", 1), ConfigError),
        (lambda one: one.update({"heat": 0.5}, RATES, 10, standard_error=ERRORS), ConfigError),
        (lambda one: one.update({**RATES, "heat": math.nan}, RATES, 10, standard_error=ERRORS), ConfigError),
        (lambda one: one.update(RATES, RATES, 1.5, standard_error=ERRORS), ConfigError),
        (lambda one: one.update(RATES, RATES, 1, standard_error={**ERRORS, "heat": -0.5}), ConfigError),
        (lambda one: one.update(RATES, RATES, 1, standard_error={**ERRORS, "look": 0.1}), UnknownNameError),
        (lambda one: InternalizationCurriculum(["heat", "heat"]), ConfigError),
        (lambda one: of_heat(retire_by=("bugdet",)), UnknownNameError),
    ],
)
def test_bad_input_is_refused_and_moves_nothing(ask, error):
    curriculum = InternalizationCurriculum(["heat", "cool"], margin=1.0)
    before = curriculum.state_dict()
    with pytest.raises(error):
        ask(curriculum)
    assert curriculum.state_dict() == before


class Fixed:
    task_types = TOYS
    active = ("fetch", "open")

    def rho_with(self, kind):
        return {"fetch": 0.8, "open": 0.25}[kind]


def stack(library, curriculum=None):
    return SkillCurriculum(SkillInjection(ToyEnv(), library, enabled=False), curriculum or Fixed())


def episodes(env, count, seed=0):
    infos = [env.reset(seed=seed)[1]] + [env.reset()[1] for _ in range(count - 1)]
    return [(info["task_id"], info["task_type"], info["condition"]) for info in infos]


def test_types_come_equally_often_and_conditions_at_their_share(toy_library):
    drawn = episodes(stack(toy_library), 3000)
    kinds = Counter(kind for _, kind, _ in drawn)
    shown = Counter(kind for _, kind, condition in drawn if condition)
    assert all(kinds[kind] / 3000 == pytest.approx(1 / 3, abs=0.04) for kind in TOYS)
    assert shown["fetch"] / kinds["fetch"] == pytest.approx(0.8, abs=0.05)
    assert shown["open"] / kinds["open"] == pytest.approx(0.25, abs=0.05)
    assert shown["paint"] == 0
    assert len({task_id for task_id, *_ in drawn}) == 12


@pytest.mark.parametrize(
    "make", [stack, lambda library: ProceduralCurriculum(faulty(difficulty_of=lambda env, name: 0.5)())]
)
def test_a_reset_that_is_refused_moves_no_draw(make, toy_library):
    plain, refused = make(toy_library), make(toy_library)
    for env in (plain, refused):
        env.reset(seed=3)
    with pytest.raises(UnknownNameError):
        refused.reset(seed=9, options={"task_id": "nowhere"})
    with pytest.raises(ConfigError, match="which is a text; got 3"):
        refused.reset(seed=9, options={"task_id": 3})
    for seed in (9, None):
        with pytest.raises(ConfigError, match="tsak_id"):
            refused.reset(seed=seed, options={"tsak_id": "x"})
    assert [plain.reset()[1]["task_id"] for _ in range(6)] == [refused.reset()[1]["task_id"] for _ in range(6)]


def test_another_curriculum_may_be_set_with_other_types_or_as_its_arguments(toy_library):
    env = stack(toy_library)
    env.curriculum = {"task_types": ["paint"], "rho": 1.0}
    assert {(kind, condition) for _, kind, condition in episodes(env, 20)} == {("paint", 1)}
    with pytest.raises(ConfigError, match="types without a task: fly"):
        env.curriculum = InternalizationCurriculum(["open", "fly"])
    assert env.curriculum.task_types == ("paint",)


def test_options_overrule_it_without_shifting_later_draws(toy_library):
    expected, told = episodes(stack(toy_library), 5), stack(toy_library)
    assert expected == episodes(stack(toy_library), 5) != episodes(stack(toy_library), 5, seed=1)
    told.reset(seed=0)
    info = told.reset(options={"task_id": "toy/paint/3", "skill": True})[1]
    assert (info["task_id"], info["condition"]) == ("toy/paint/3", 1)
    assert told.reset()[1]["task_id"] == expected[2][0]
    unnamed = [told.reset(options={"task_id": None})[1]["task_id"] for _ in range(2)]
    assert unnamed == [task_id for task_id, *_ in expected[3:]]


def test_misuse_of_the_wrapper_is_named(toy_library):
    with pytest.raises(ConfigError, match="put a SkillInjection below"):
        SkillCurriculum(ToyEnv(), Fixed())
    difficult = faulty(difficulty_of=lambda env, name: 0.5)
    with pytest.raises(ConfigError, match="would choose none; put that outside"):
        SkillCurriculum(ProceduralCurriculum(SkillInjection(difficult(), toy_library)), Fixed())


@pytest.mark.parametrize("then", [Fixed(), InternalizationCurriculum(["paint"], rho=1.0)])
def test_a_curriculum_that_is_given_or_set_later_is_the_one_of_all_that_are_rebuilt(toy_id, toy_library, then):
    env = SkillCurriculum(SkillInjection(gymnasium.make(toy_id), toy_library, enabled=False), Fixed())
    outer = TimeLimit(env, 9)
    assert gymnasium.make(outer.spec).get_wrapper_attr("curriculum") is env.curriculum
    env.curriculum = then
    members = PairedVectorEnv(outer, 2, 2).envs
    assert all(member.get_wrapper_attr("curriculum") is then for member in members)


@pytest.mark.parametrize("given", [lambda kind: InternalizationCurriculum([kind]), lambda kind: {"task_types": [kind]}])
def test_a_copy_and_what_is_rebuilt_from_it_follow_its_own_curriculum(toy_id, toy_library, given):
    env = SkillCurriculum(SkillInjection(gymnasium.make(toy_id), toy_library), given("open"))
    env = TimeLimit(env, 5)
    assert rebuilt_types(env) == ("open",)
    env.reset(seed=0)
    copied = copy.deepcopy(env)
    assert rebuilt_types(copied) == ("open",)
    copied.set_wrapper_attr("curriculum", given("fetch"))
    assert (rebuilt_types(env), rebuilt_types(copied)) == (("open",), ("fetch",))
    env.set_wrapper_attr("curriculum", given("fetch"))
    copied.set_wrapper_attr("curriculum", given("open"))
    assert (rebuilt_types(env), rebuilt_types(copied)) == (("fetch",), ("open",))


def rebuilt_types(env):
    return tuple(gymnasium.make(env.spec).get_wrapper_attr("curriculum").task_types)


def test_a_vector_sets_each_of_two_curricula_by_its_kind(toy_library):
    def make():
        difficult = faulty(difficulty_of=lambda env, name: 0.5)()
        return ProceduralCurriculum(SkillCurriculum(SkillInjection(difficult, toy_library), Fixed()))

    envs, skills = gymnasium.vector.SyncVectorEnv([make, make]), InternalizationCurriculum(TOYS)
    envs.set_attr("curriculum", skills)
    envs.reset(seed=0)
    assert [env.env.curriculum is skills for env in envs.envs] == [True, True]
    other = DifficultyCurriculum.of(envs.envs[0])
    envs.set_attr("curriculum", other)
    assert [(env.curriculum is other, env.env.curriculum is skills) for env in envs.envs] == [(True, True)] * 2
    with pytest.raises(ConfigError, match="plays by a DifficultyCurriculum"):
        ProceduralCurriculum(faulty(difficulty_of=lambda env, name: 0.5)()).curriculum = skills
