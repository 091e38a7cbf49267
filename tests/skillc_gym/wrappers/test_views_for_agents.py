"""The wrappers for agents that choose by index, remember nothing, or want rewards on the way."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import Autoreset
from toy_env import ToyEnv, faulty

from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.episodes import EpisodeRecorder, read_jsonl, write_jsonl
from skillc_gym.errors import ConfigError, DeadEndError
from skillc_gym.vector import PairedVectorEnv
from skillc_gym.wrappers import (
    ActionFormat,
    ChatPrompt,
    DiscreteCommands,
    PlanShaping,
    ProceduralCurriculum,
    SkillInjection,
    TextHistory,
    TypeStatistics,
    WordPresence,
    format_reply,
)
from skillc_gym.wrappers.views import words_of

PICK = {"data": "generated", "task_types": "pick", "generator": {"seed": 1, "games_per_type": 3, "size": "small"}}


def pick_env(**options: object) -> gymnasium.Env:
    return gymnasium.make("skillc/ALFWorld-v0", **{**PICK, **options})


@pytest.fixture
def numbered():
    return DiscreteCommands(pick_env())


def test_the_mask_is_the_admissible_commands(numbered):
    _, info = numbered.reset(seed=0)
    for _ in range(20):
        offered = {numbered.commands[index] for index in np.flatnonzero(info["action_mask"])}
        assert offered == set(info["admissible_commands"])
        assert numbered.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
        *_, info = numbered.step(numbered.action_space.sample(mask=info["action_mask"]))
        assert info["action_valid"]


def test_a_masked_command_is_an_answer_and_a_number_too_large_an_error(numbered):
    _, info = numbered.reset(seed=0)
    observation, *_, info = numbered.step(int(np.flatnonzero(info["action_mask"] == 0)[0]))
    assert (observation, info["action_valid"]) == ("Nothing happens.", False)
    for action in (len(numbered.commands), -1, 1.9, "3"):
        with pytest.raises(ConfigError, match="An action is a whole number from 0 to"):
            numbered.step(action)


def test_episodes_by_numbers_can_be_written_and_read(numbered, tmp_path):
    recorder = EpisodeRecorder(*numbered.reset(seed=0))
    action = np.int64(numbered.commands.index("look"))
    recorder.add(action, numbered.step(action))
    (turn,) = recorder.episode().turns
    assert (turn.reply, turn.action) == (str(action), "look")
    assert read_jsonl(write_jsonl(tmp_path / "episodes.jsonl", [recorder.episode()])) == [recorder.episode()]


def test_words_that_are_left_to_the_agent_may_be_chosen_beforehand():
    env = DiscreteCommands(gymnasium.make("skillc/WebShop-v0", data="generated"), ["search[rug]", "click[next >]"])
    assert env.reset(seed=0)[1]["action_mask"].tolist() == [1, 0]
    assert env.step(0)[-1]["action_valid"]


def test_a_history_shows_the_task_and_the_last_exchanges():
    env, plain = TextHistory(pick_env(), length=2), pick_env()
    first, _ = env.reset(seed=0)
    plain.reset(seed=0)
    commands = ("look", "inventory", "help")
    said, heard = [[one.step(command)[0] for command in commands] for one in (env, plain)]
    assert said[0] == f"{first}\n> look\n{heard[0]}"
    assert said[2] == f"{first}\n{heard[0]}\n> inventory\n{heard[1]}\n> help\n{heard[2]}"
    assert said[2] in env.observation_space


@pytest.mark.parametrize(
    ("inner", "action", "shown"),
    [
        (lambda env: env, "look\ud800", "look?"),
        (ActionFormat, "<think>secret</think>", ""),
        (ActionFormat, format_reply("look", "I think"), "look"),
        (lambda env: DiscreteCommands(env, ["fly", "look"]), 1, "look"),
    ],
)
def test_a_history_shows_commands_that_can_be_written_and_keeps_thoughts_to_the_agent(inner, action, shown):
    env = TextHistory(inner(pick_env()))
    env.reset(seed=0)
    assert f"\n> {shown}\n" in env.step(action)[0].encode().decode()


def test_what_a_player_does_to_an_info_stays_with_the_player(numbered):
    _, info = numbered.reset(seed=0)
    info["action_mask"][:] = 0
    assert numbered.action_masks().any()
    chat = ChatPrompt(numbered)
    info = chat.reset(seed=0)[1]
    recorder = EpisodeRecorder("", info)
    info["messages"][0]["content"] = "changed"
    info["messages"].append({"role": "user", "content": "more"})
    messages = chat.step(0)[-1]["messages"]
    assert messages[0]["content"] != "changed"
    assert messages[-2] == {"role": "assistant", "content": "0"}, "a chat takes numbered commands"
    assert len(recorder.episode().messages) == len(info["messages"]) - 1


def open_ended(commands):
    return DiscreteCommands(faulty(_commands=lambda env: ["open it", "say <word>"])(), commands)


SEE_RESETS = (SkillInjection, ChatPrompt, TextHistory, TypeStatistics, PlanShaping, ProceduralCurriculum)


@pytest.mark.parametrize(
    ("wrap", "said"),
    [
        (lambda: DiscreteCommands(ToyEnv()), r"commands=\["),
        (lambda: TextHistory(pick_env(), length=0), "length is a whole number from 1 up"),
        (lambda: SkillInjection(TypeStatistics(pick_env())), "count all episodes as skill-free"),
        (lambda: PlanShaping(gymnasium.make("CartPole-v1")), "names a planner"),
        (lambda: DiscreteCommands(pick_env(), commands=["look", "look"]), "different commands"),
        (lambda: DiscreteCommands(pick_env(), commands=["fly"]).reset(seed=0), "None of the 1 commands"),
        (lambda: open_ended(["open it", "say <word>"]).reset(seed=0), "'say <word>' leaves words to the agent"),
        (lambda: TextHistory(SkillInjection(pick_env())), "every exchange would repeat"),
        *((partial(wrap, Autoreset(pick_env())), "stands around an Autoreset") for wrap in SEE_RESETS),
        (lambda: ActionFormat(ChatPrompt(pick_env())), "would hold commands, and no replies"),
    ],
)
def test_what_cannot_work_is_refused(wrap, said):
    with pytest.raises(ConfigError, match=said):
        wrap()


def test_the_sum_of_shaping_is_the_first_potential():
    env = PlanShaping(ALFWorldEnv(**PICK), scale=0.1)  # its planner is that of its description, without an id too
    env.reset(seed=4)
    plan = shortest_plan(env)
    added = []
    for command in ("look", "inventory", *plan):
        _, reward, terminated, _, info = env.step(command)
        assert reward - info["shaping"] == pytest.approx(float(terminated))
        added.append(info["shaping"])
    assert info["won"] == 1.0
    assert sum(added) == pytest.approx(0.1 * len(plan))
    assert added[:2] == [0.0, 0.0]


def test_a_dead_end_is_a_hundred_steps_away_and_a_held_member_repeats_no_shaping(monkeypatch):
    env = PlanShaping(pick_env())
    env.reset(seed=4)
    steps = len(shortest_plan(env))

    def nothing_wins(self, state=None):
        raise DeadEndError("Nothing wins")

    with monkeypatch.context() as patch:
        patch.setattr("skillc_gym.envs.alfworld.experts.planner.Planner.plan", nothing_wins)
        assert env.step("look")[4]["shaping"] == pytest.approx(0.05 * (steps - 100))
    assert env.step("look")[4]["shaping"] == pytest.approx(0.05 * (100 - steps))
    groups = PairedVectorEnv("skillc/ALFWorld-v0", 1, 2, library=None, wrappers=(PlanShaping,), **PICK)
    groups.reset(seed=4)
    kept = [groups.step([first, "look"]) for first in (*shortest_plan(groups.envs[0]), None, None)]
    raw = sum(rewards - infos["shaping"] for _, rewards, _, _, infos in kept)  # read when all is over
    infos = kept[-1][4]
    assert raw == pytest.approx([1.0, 0.0])
    assert infos["won"].tolist() == [1.0, 0.0]
    assert groups.member_info(0)["shaping"] == 0.0


def test_type_statistics_count_finished_episodes_by_type_and_condition():
    env = TypeStatistics(SkillInjection(pick_env(max_episode_steps=12)), window=2)
    for seed, skill, win in [(0, True, True), (1, False, False), (2, False, True), (3, False, True)]:
        env.reset(seed=seed, options={"skill": skill})
        for command in shortest_plan(env) if win else ["look"] * 12:
            env.step(command)
    env.reset(seed=9)
    env.step("look")
    found = {kind: (told["episodes"], told["success"]) for kind, told in env.by_type().items()}
    assert found == {("pick_and_place_simple", 0): (2, 1.0), ("pick_and_place_simple", 1): (1, 1.0)}


@pytest.mark.parametrize(
    "wrap",
    [lambda env: TextHistory(env, length=3), lambda env: PlanShaping(env, gamma=0.9), TypeStatistics, DiscreteCommands],
)
def test_a_stack_can_be_made_again_from_its_spec(wrap):
    env = wrap(pick_env())
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert env.reset(seed=0)[0] == again.reset(seed=0)[0]


def test_words_are_found_in_either_case_and_their_text_stays():
    plain = pick_env()
    text, _ = plain.reset(seed=0)
    env = WordPresence(pick_env(), words=[words_of([text])[0].capitalize(), "nowhere"])
    vector, info = env.reset(seed=0)
    assert (vector.tolist(), info["observation"]) == ([1.0, 0.0], text)
    assert env.step("look")[-1]["observation"] == plain.step("look")[0]


@pytest.mark.parametrize("word", ["café", "mug 1 2", ""])
def test_words_that_could_never_be_found_are_refused_and_those_that_nobody_lists_asked_for(word):
    with pytest.raises(ConfigError, match="words of a to z"):
        WordPresence(ToyEnv(), words=["key", word])
    with pytest.raises(ConfigError, match=r"words=\[\.\.\.\]"):
        WordPresence(ToyEnv())


def test_words_are_those_of_all_tasks_whether_commands_are_numbered_or_not():
    plain = pick_env()
    plain.reset(seed=0)
    assert WordPresence(plain).words == WordPresence(DiscreteCommands(pick_env())).words
    for wrap in (WordPresence, DiscreteCommands):
        with pytest.raises(ConfigError, match="takes several texts, got one: 'mug'"):
            wrap(plain, "mug")
