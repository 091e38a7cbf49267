import pytest
from gymnasium.wrappers import TimeLimit
from toy_env import ToyEnv

from skillc_gym.errors import ConfigError
from skillc_gym.vector import PairedVectorEnv, collect
from skillc_gym.wrappers import ActionFormat, ChatPrompt, format_reply


def make(library, limit=6):
    return PairedVectorEnv(
        lambda: TimeLimit(ToyEnv(), limit), 3, 2, library=library, where="info", wrappers=(ActionFormat, ChatPrompt)
    )


def win(info):
    return next(command for command in info["admissible_commands"] if command != "wait")


def by_condition(observations, infos):
    return [format_reply(win(info) if info["condition"] else "wait") for info in infos]


def test_groups_come_as_they_finish_with_whole_episodes(toy_library):
    groups = make(toy_library)
    tasks = ["toy/open/0", "toy/paint/1", "toy/fetch/2"]
    groups.reset(seed=0, options={"task_ids": tasks, "n_plus": [1, 2, 1]})
    collected = list(collect(groups, by_condition))
    assert [group.group_id for group in collected] == [1, 0, 2]
    quick, mixed = collected[0], collected[1]
    assert [len(episode) for episode in quick.episodes] == [2, 2]
    assert [len(episode) for episode in mixed.episodes] == [2, 6]
    assert [episode.won for episode in mixed.episodes] == [1.0, 0.0]
    assert (mixed.episodes[0].terminated, mixed.episodes[1].truncated) == (True, True)
    assert mixed.with_skill == mixed.episodes[:1]
    assert mixed.without_skill == mixed.episodes[1:]
    assert {episode.task_id for episode in mixed.episodes} == {"toy/open/0"}
    assert len({episode.seed for episode in mixed.episodes}) == 1
    assert mixed.episodes[0].skill_text in mixed.episodes[0].messages[0]["content"]
    assert mixed.episodes[1].skill_text == ""
    assert mixed.episodes[0].final_observation == "You won."


def test_the_policy_is_asked_only_for_active_members(toy_library):
    groups, asked = make(toy_library), []
    groups.reset(seed=0, options={"n_plus": [1, 1, 1]})

    def watching(observations, infos):
        assert len(observations) == len(infos)
        asked.append(len(infos))
        return by_condition(observations, infos)

    list(collect(groups, watching))
    assert asked == [6, 6, 3, 3, 3, 3]


def test_it_starts_at_a_reset_and_checks_the_policy(toy_library):
    groups = make(toy_library)
    with pytest.raises(ConfigError, match="right before it"):
        next(collect(groups, by_condition))
    groups.reset(seed=0)
    with pytest.raises(ConfigError, match="asked for 6 actions and gave 1"):
        next(collect(groups, lambda observations, infos: ["wait"]))
    groups.step({0: "wait"})
    with pytest.raises(ConfigError, match="right before it"):
        next(collect(groups, by_condition))


def test_a_group_finishes_even_with_autoreset_on(toy_library):
    groups = PairedVectorEnv(lambda: TimeLimit(ToyEnv(), 2), 2, 2, library=toy_library, autoreset=True)
    groups.reset(seed=0)
    assert len(list(collect(groups, lambda observations, infos: ["wait"] * len(infos)))) == 2
