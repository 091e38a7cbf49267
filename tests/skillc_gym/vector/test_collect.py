import pytest
from gymnasium.wrappers import TimeLimit
from toy_env import ToyEnv

from skillc_gym.errors import ConfigError
from skillc_gym.vector import PairedVectorEnv, collect
from skillc_gym.wrappers import ActionFormat, ChatPrompt, format_reply


@pytest.fixture
def groups(toy_library):
    wrappers = (ActionFormat, ChatPrompt)
    return PairedVectorEnv(lambda: TimeLimit(ToyEnv(), 6), 3, 2, library=toy_library, where="info", wrappers=wrappers)


def win(info):
    return next(command for command in info["admissible_commands"] if command != "wait")


def by_condition(observations, infos):
    assert len(observations) == len(infos)
    return [format_reply(win(info) if info["condition"] else "wait") for info in infos]


def test_groups_come_as_they_finish_with_whole_episodes(groups):
    asked = []
    groups.reset(seed=0, options={"task_ids": ["toy/open/0", "toy/paint/1", "toy/fetch/2"], "n_plus": [1, 2, 1]})
    quick, mixed, last = collect(groups, lambda *seen: asked.append(len(seen[1])) or by_condition(*seen))
    assert [group.group_id for group in (quick, mixed, last)] == [1, 0, 2]
    assert asked == [6, 6, 2, 2, 2, 2], "only those that are active"
    assert [len(episode) for episode in quick.episodes + mixed.episodes] == [2, 2, 2, 6]
    won, lost = mixed.episodes
    assert (won.won, lost.won, won.terminated, lost.truncated) == (True, False, True, True)
    assert (mixed.with_skill, mixed.without_skill) == ((won,), (lost,))
    assert (won.task_id, won.seed) == (lost.task_id, lost.seed)
    assert (won.task_id, won.final_observation, lost.skill_text) == ("toy/open/0", "You won.", "")
    assert won.skill_text in won.messages[0]["content"]


def test_it_starts_at_a_reset_and_checks_the_policy(groups):
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
