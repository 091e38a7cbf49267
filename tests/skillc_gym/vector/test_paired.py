import copy
import itertools
import json
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from toy_env import ToyEnv

from skill_library import SkillText, load_library
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.vector import PairedVectorEnv, collect
from skillc_gym.vector.columns import InfoColumns, info_columns
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply

TASKS = ["toy/open/1", "toy/paint/0"]


def make(library, groups=2, size=3, **kwargs):
    return PairedVectorEnv(ToyEnv, groups, size, library=library, **kwargs)


@pytest.fixture
def groups(toy_library):
    return make(toy_library)


def start(groups, n_plus=(2, 0), seed=0):
    return groups.reset(seed=seed, options={"task_ids": TASKS, "n_plus": list(n_plus)})


def test_a_group_shares_task_and_seed_and_splits_by_condition(groups):
    observations, infos = start(groups)
    assert infos["task_id"].tolist() == ["toy/open/1"] * 3 + ["toy/paint/0"] * 3
    assert infos["condition"].tolist() == [1, 1, 0, 0, 0, 0]
    assert infos["group_id"].tolist() == [0, 0, 0, 1, 1, 1]
    first, *_, last = seeds = infos["episode_seed"].tolist()
    assert seeds == [first] * 3 + [last] * 3
    assert first != last
    assert observations[0] == observations[1] == infos["skill_text"][0] + "\n\n" + observations[2]
    assert len(set(observations[3:])) == 1
    assert observations in groups.observation_space


def test_members_are_what_single_environments_are(toy_library):
    groups = make(toy_library)
    start(groups, seed=[11, 12])
    single = SkillInjection(ToyEnv(), toy_library)
    assert groups.observations[0] == single.reset(seed=11, options={"task_id": TASKS[0]})[0]
    for action in ("wait", "fly", "take key", "open it"):
        *expected, info = single.step(action)
        *found, infos = groups.step({0: action})
        assert [column[0] for column in found] == expected
        assert all(infos[key][0] == value for key, value in info.items())


def test_finished_members_are_held_until_reset(groups):
    start(groups)
    groups.step(["take key", "wait", "take key", *["wait"] * 3])
    before = groups.step(["open it", *["wait"] * 5])
    assert before[1].tolist() == before[2].tolist() == [True] + [False] * 5
    assert not before[4]["held"][0]
    assert groups.active.tolist() == [False] + [True] * 5
    for action in (None, "fly"):
        after = groups.step([action, *["wait"] * 5])
        assert after[0][0] == before[0][0]
        assert (after[1][0], after[2][0], after[3][0]) == (0, False, False)
        assert after[4]["held"].tolist() == [True] + [False] * 5
        assert after[4]["won"][0] == 1.0
    assert groups.episode_lengths.tolist() == [2, 4, 4, 4, 4, 4]
    assert groups.episode_returns.tolist() == [1, 0, 0, 0, 0, 0]
    assert groups.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.DISABLED


def test_an_episode_of_a_held_member_has_ended_once(toy_library):
    groups = make(toy_library, 1, 2, wrappers=(RecordEpisodeStatistics,))
    groups.reset(seed=0, options={"task_ids": TASKS[:1]})
    steps = [["take key", "take key"], ["open it", "wait"], [None, "open it"], [None, None]]
    ended = [groups.step(actions)[4].get("_episode", np.zeros(2, bool)).tolist() for actions in steps]
    assert ended == [[False, False], [True, False], [False, True], [False, False]]


def test_only_those_ready_are_stepped(groups):
    first, _ = start(groups)
    observations, _, _, _, infos = groups.step({4: "take key", np.int64(1): "fly"})
    assert [i for i in range(6) if observations[i] != first[i]] == [1, 4]
    assert groups.episode_lengths.tolist() == [0, 1, 0, 0, 1, 0]
    assert infos["action_valid"].tolist() == [True, False, True, True, True, True]
    assert groups.step({})[0] == observations


def test_a_seed_decides_everything_and_may_be_given_per_group_or_per_member(toy_library):
    one, other = make(toy_library), make(toy_library)
    assert one.reset(seed=0)[1]["condition"].tolist() == [1, 0, 0, 1, 0, 0]
    for seed in ([4, 5], None, 3, None):  # whatever was drawn before
        left, right = one.reset(seed=seed), other.reset(seed=seed)
        assert left[0] == right[0]
        assert left[1]["task_id"].tolist() == right[1]["task_id"].tolist()
    assert len({tuple(one.reset()[1]["task_id"]) for _ in range(10)}) > 1
    assert one.reset(seed=[5, 9])[0] == one.reset(seed=[5, 5, 5, 9, 9, 9])[0]
    assert one.reset(seed=[2**64 - 1, 0])[1]["episode_seed"].tolist() == [2**64 - 1] * 3 + [0] * 3


def test_a_mask_resets_whole_groups_only(groups):
    start(groups)
    groups.step(["take key"] * 6)
    mask = np.array([False] * 3 + [True] * 3)
    options = {"reset_mask": mask, "task_ids": [None, "toy/fetch/2"], "n_plus": [None, 3]}
    _, infos = groups.reset(seed=1, options=options)
    assert list(options) == ["reset_mask", "task_ids", "n_plus"]
    assert groups.episode_lengths.tolist() == [1, 1, 1, 0, 0, 0]
    assert infos["condition"].tolist() == [1, 1, 0, 1, 1, 1]
    assert groups.n_plus.tolist() == [2, 3]
    assert infos["task_id"][3] == "toy/fetch/2"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"reset_mask": [False, True] + [True] * 4}, "splits group 0"),
        ({"reset_mask": [1, 0]}, "one bool per member"),
        ({"n_plus": [1]}, "expected 2, got 1"),
        ({"n_plus": 2}, "one entry per group"),
        ({"n_plus": [4, 0]}, "n_plus of group 0 is a whole number from 0 to 3, got 4"),
        ({"n_plus": [None, 0]}, "n_plus of group 0"),
        ({"task_ids": ["toy/opn/1", TASKS[1]]}, "Did you mean 'toy/open/1'"),
        ({"task_ids": [["a"], TASKS[1]]}, "a string such as"),
        ({"task_id": TASKS[0]}, "Did you mean 'task_ids'"),
        ({"skills": [[SkillText("a", "Look.")], None]}, "one per member"),
        ({"skills": [SkillText("a", "Look.")]}, "one entry per group"),
        ({"seed": [5, 5, 5, 9, 9, 8]}, "share their seed; group 1"),
        ({"seed": [1, 2, 3]}, "one seed per group"),
        ({"seed": [1, -2]}, "from 0 to"),
        ({"seed": 1.5}, "from 0 to"),
    ],
)
def test_bad_requests_change_nothing(groups, options, complaint):
    start(groups)
    before, asked = groups.observations, dict(options)
    with pytest.raises((ConfigError, UnknownNameError), match=complaint):
        groups.reset(seed=asked.pop("seed", None), options=asked)
    assert groups.observations == before


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        (["wait"] * 5, r"one action per member \(6\), got 5"),
        ("waits!", "a list of 6 actions"),
        ([None] + ["wait"] * 5, "Member 0 is active but its action is None"),
        ({6: "wait"}, "no member 6"),
        ({-1: "wait"}, "no member -1"),
    ],
)
def test_bad_actions_are_named(groups, actions, complaint):
    start(groups)
    with pytest.raises(ConfigError, match=complaint):
        groups.step(actions)
    assert not groups.episode_lengths.any()


def test_entries_of_groups_that_are_not_reset_are_ignored(groups):
    start(groups)
    before = groups.observations
    rest = {"skills": [None, ["x"] * 7], "n_plus": [1, "x"], "task_ids": [None, "x"]}
    groups.reset(options={"reset_mask": [True] * 3 + [False] * 3, **rest})
    assert groups.observations[3:] == before[3:]


def test_the_first_reset_is_of_all(groups):
    with pytest.raises(ResetNeeded):
        groups.step({})
    with pytest.raises(ConfigError, match="first reset"):
        groups.reset(options={"reset_mask": np.array([True] * 3 + [False] * 3)})


def test_without_skills_every_condition_is_0():
    groups = PairedVectorEnv(ToyEnv, 2, 2)
    assert groups.reset(seed=0)[1]["condition"].tolist() == [0] * 4
    with pytest.raises(ConfigError, match="no skills to switch"):
        groups.reset(options={"n_plus": [1, 0]})
    with pytest.raises(ConfigError, match="library="):
        groups.reset(seed=0, options={"skills": [SkillText("a", "Look.")] * 2})


def test_the_task_after_a_groups_last_does_not_depend_on_who_finished_first():
    def second_tasks(order):
        groups = PairedVectorEnv(lambda: TimeLimit(ToyEnv(), 2), 2, 1, autoreset=True)
        groups.reset(seed=0)
        for member in order:
            *_, infos = groups.step({member: "wait"})
        return infos["task_id"].tolist()

    assert second_tasks([0, 0, 0, 1, 1, 1]) == second_tasks([1, 1, 1, 0, 0, 0])


def test_a_group_that_has_finished_starts_again_with_autoreset(toy_library):
    groups = make(toy_library, size=2, autoreset=True)
    start(groups, n_plus=(1, 1))
    groups.step(["take key"] * 4)
    groups.step(["open it", "open it", "paint it", "wait"])
    assert groups.active.tolist() == [False, False, False, True]
    observations, rewards, terminations, _, infos = groups.step([None, None, None, "wait"])
    assert groups.active.tolist() == [True, True, False, True]
    assert groups.episode_lengths.tolist() == [0, 0, 2, 3]
    assert (rewards.any(), terminations.any()) == (False, False)
    assert infos["condition"].tolist() == [1, 0, 1, 0]
    assert "Room" in observations[0]
    assert groups.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP


def test_environments_by_id_and_by_example(toy_id, toy_library):
    by_id = PairedVectorEnv(toy_id, 1, 2, library=toy_library, per_type=2)
    assert len(by_id.envs[0].unwrapped.task_ids) == 6
    by_id.reset(seed=0)
    for _ in range(9):
        truncations = by_id.step(["wait", "wait"])[3]
    assert truncations.all()
    example = SkillInjection(gymnasium.make(toy_id, per_type=3), toy_library)
    by_example = PairedVectorEnv(example, 1, 2)
    assert len(by_example.envs[1].unwrapped.task_ids) == 9
    assert by_example.reset(seed=0)[1]["condition"].tolist() == [1, 0]


counter = itertools.count()
ONE = ToyEnv()


class Careless(ToyEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=next(counter))


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: PairedVectorEnv(ONE, 1, 2), "pass a function"),
        (lambda: PairedVectorEnv(lambda: ONE, 1, 2), "share one environment"),
        (lambda: PairedVectorEnv(Careless, 1, 8).reset(seed=0), "different tasks from seed"),
        (lambda: PairedVectorEnv(ToyEnv, 2, 0), "is a whole number from 1 up"),
        (lambda: PairedVectorEnv(ToyEnv, 1.5, 2), "is a whole number from 1 up"),
        (lambda: PairedVectorEnv(ToyEnv, 1, 2, autoreset="no"), "autoreset is true or false"),
        (lambda: PairedVectorEnv(ToyEnv, 2, 2, skill_grade="minimal"), "pass library="),
    ],
)
def test_what_cannot_be_a_vector_is_refused(ask, complaint):
    with pytest.raises(ConfigError, match=complaint):
        ask()


def test_it_works_for_environments_that_are_not_text():
    groups = PairedVectorEnv("CartPole-v1", 2, 3)
    observations, infos = groups.reset(seed=0)
    assert observations.shape == (6, 4)
    assert (observations[0] != observations[3]).any()
    observations, rewards, *_ = groups.step(np.array([0, 1, 0, 1, 1, 1]))
    assert rewards.tolist() == [1.0] * 6
    assert (observations[0] == observations[2]).all()
    assert infos["group_id"].tolist() == [0, 0, 0, 1, 1, 1]


def test_rendering_and_closing(toy_library):
    groups = PairedVectorEnv(lambda: TimeLimit(ToyEnv(render_mode="ansi"), 5), 1, 2, library=toy_library)
    with pytest.raises(ResetNeeded):
        groups.render()
    (_, plain), _ = groups.reset(seed=0)
    assert groups.render() == (plain, plain)
    groups.close()
    groups.close()
    assert groups.closed
    groups.reset(seed=0)
    assert not groups.closed  # so that another close() closes what has started again


def test_goals_may_be_named_by_number_as_the_shop_itself_takes_them():
    groups = PairedVectorEnv("skillc/WebShop-v0", 1, 2, data="generated", generator={"size": 60})
    _, infos = groups.reset(options={"task_ids": [3]})
    assert [task.rpartition("/")[2] for task in infos["task_id"]] == ["3", "3"]


def test_returned_arrays_are_the_callers(groups):
    _, infos = start(groups)
    infos["condition"][:] = 7
    infos["held"][:] = True
    groups.active[:] = False
    assert groups.active.all()
    assert groups.step({})[-1]["condition"].tolist() == [1, 1, 0, 0, 0, 0]


def test_members_with_the_skill_see_the_vectors_grade_or_each_another_text(toy_library):
    groups, look, wait = make(toy_library, skill_grade="minimal"), SkillText("a", "Look."), SkillText("b", "Wait.")
    _, infos = start(groups)
    assert infos["skill_grade"].tolist() == ["minimal"] * 2 + ["none"] * 4
    shown = load_library(toy_library).graded("minimal").for_task("open").text
    assert infos["skill_text"].tolist() == [shown] * 2 + [""] * 4
    told = ["a", "b", "", "general+paint", "", ""], ["a", "a", "", "b", "", ""]
    for skills, names in zip(([[look, wait, look], None], [look, wait]), told, strict=True):
        _, infos = groups.reset(seed=0, options={"task_ids": TASKS, "n_plus": [2, 1], "skills": skills})
        assert infos["skill"].tolist() == names


def test_wrappers_may_come_from_a_generator(toy_library):
    limit = partial(TimeLimit, max_episode_steps=9)
    assert all(isinstance(env, TimeLimit) for env in make(toy_library, wrappers=(wrap for wrap in (limit,))).envs)


@pytest.fixture
def chatting(toy_library):
    wrappers = (ActionFormat, ChatPrompt)
    return PairedVectorEnv(lambda: TimeLimit(ToyEnv(), 6), 3, 2, library=toy_library, where="info", wrappers=wrappers)


def win(info):
    return next(command for command in info["admissible_commands"] if command != "wait")


def by_condition(observations, infos):
    assert len(observations) == len(infos)
    return [format_reply(win(info) if info["condition"] else "wait") for info in infos]


def test_groups_come_as_they_finish_with_whole_episodes(chatting):
    asked = []
    chatting.reset(seed=0, options={"task_ids": ["toy/open/0", "toy/paint/1", "toy/fetch/2"], "n_plus": [1, 2, 1]})
    quick, mixed, last = collect(chatting, lambda *seen: asked.append(len(seen[1])) or by_condition(*seen))
    assert [group.group_id for group in (quick, mixed, last)] == [1, 0, 2]
    assert asked == [6, 6, 2, 2, 2, 2], "only those that are active"
    assert [len(episode) for episode in quick.episodes + mixed.episodes] == [2, 2, 2, 6]
    won, lost = mixed.episodes
    assert (won.won, lost.won, won.terminated, lost.truncated) == (True, False, True, True)
    assert (mixed.with_skill, mixed.without_skill) == ((won,), (lost,))
    assert (won.task_id, won.seed) == (lost.task_id, lost.seed)
    assert (won.task_id, won.final_observation, lost.skill_text) == ("toy/open/0", "You won.", "")
    assert won.skill_text in won.messages[0]["content"]


def test_it_starts_at_a_reset_and_checks_the_policy(chatting):
    with pytest.raises(ConfigError, match="right before it"):
        next(collect(chatting, by_condition))
    chatting.reset(seed=0)
    with pytest.raises(ConfigError, match="asked for 6 actions and gave 1"):
        next(collect(chatting, lambda observations, infos: ["wait"]))
    chatting.step({0: "wait"})
    with pytest.raises(ConfigError, match="right before it"):
        next(collect(chatting, by_condition))


def test_a_group_finishes_even_with_autoreset_on(toy_library):
    groups = PairedVectorEnv(lambda: TimeLimit(ToyEnv(), 2), 2, 2, library=toy_library, autoreset=True)
    groups.reset(seed=0)
    assert len(list(collect(groups, lambda observations, infos: ["wait"] * len(infos)))) == 2


whole = st.integers(-(2**70), 2**70)
value = st.one_of(st.booleans(), whole, st.floats(allow_nan=False), st.text(), st.lists(st.integers()), st.none())


@given(st.lists(st.dictionaries(st.sampled_from("abc"), value), min_size=1))
def test_every_value_survives(infos):
    columns = info_columns(infos)
    for key in {key for info in infos for key in info}:
        assert columns[f"_{key}"].tolist() == [key in info for info in infos]
        assert columns[key].shape == (len(infos),)
        for got, info in zip(columns[key], infos, strict=True):
            if key in info:
                assert got == info[key]


def test_dtypes_follow_all_values_not_the_first():
    columns = info_columns([{"n": 0, "b": True, "i": 1, "s": "x"}, {"n": 0.5, "b": False, "i": 2, "s": "y"}])
    assert columns["n"].tolist() == [0.0, 0.5]
    assert columns["b"].dtype == np.bool_
    assert columns["i"].dtype == np.int64
    assert columns["s"].dtype == object


def test_nested_dicts_become_nested_columns():
    columns = info_columns([{}, {"episode": {"r": 1.0, "l": 3}}, None])
    assert columns["_episode"].tolist() == [False, True, False]
    assert columns["episode"]["r"].tolist() == [0.0, 1.0, 0.0]
    assert columns["episode"]["_l"].tolist() == [False, True, False]
    assert info_columns([]) == info_columns([{}, {}]) == {}


def test_arrays_of_one_shape_are_stacked():
    one = np.array([1, 2], np.int8)
    columns = info_columns([{"mask": one, "odd": one}, {}, {"mask": 2 * one, "odd": np.zeros(3)}])
    assert columns["mask"].dtype == np.int8
    assert columns["mask"].tolist() == [[1, 2], [0, 0], [2, 4]]
    assert columns["_mask"].tolist() == [True, False, True]
    assert (columns["odd"].dtype, columns["odd"].shape) == (object, (3,))


@pytest.mark.parametrize(
    "look",
    [
        dict,
        lambda infos: infos | {},
        lambda infos: {key: infos.get(key) for key in reversed(infos)},
        lambda infos: pickle.loads(pickle.dumps(infos)),
        copy.copy,
        copy.deepcopy,
        lambda infos: json.loads(json.dumps(infos)),
    ],
)
def test_columns_made_late_are_the_dict_they_become(look):
    made = []
    infos = InfoColumns(lambda n: made.append(n) or {"n": n, "m": [n]}, 3)
    assert not made
    assert look(infos) == {"n": 3, "m": [3]} == infos == InfoColumns(lambda: {"n": 3, "m": [3]})
    assert made == [3]


def test_columns_made_late_can_be_written_to():
    for write in (lambda infos: infos.update(b=2), lambda infos: infos.__setitem__("b", 2)):
        infos = InfoColumns(lambda: {"a": 1})
        write(infos)
        assert ("a" in infos, len(infos), repr(infos)) == (True, 2, "{'a': 1, 'b': 2}")


def test_columns_read_late_tell_the_step_they_came_from():
    early, late = PairedVectorEnv(ToyEnv, 2, 2), PairedVectorEnv(ToyEnv, 2, 2)
    read, kept = [], []
    for groups, found, look in ((early, read, dict), (late, kept, lambda infos: infos)):
        found.append(look(groups.reset(seed=0)[1]))
        for actions in (["take key"] * 4, {0: "open it", 3: "fly"}, {1: "wait"}):
            found.append(look(groups.step(actions)[-1]))
        found.append(look(groups.reset(seed=1)[1]))
    for one, other in zip(read, kept, strict=True):
        assert list(one) == list(other)
        assert all(np.array_equal(one[key], other[key]) for key in one)
