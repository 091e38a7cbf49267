"""engine="textworld": upstream behind the environment, whose process is replaced when it is worn out or dead."""

import gc
import os
import signal
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium
import pytest
from odd_houses import odd_house, write_game

from skillc_gym.envs.alfworld.engine import textworld
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv
from skillc_gym.errors import ConfigError, EngineError, InvalidGameError
from skillc_gym.testing import TextEnvContract

pytestmark = pytest.mark.upstream

HOUSES = (0, 1, 5)
WAVE = "(:action wave :parameters (?a - agent ?l - location) :precondition (atLocation ?a ?l) :effect (checked ?l)))"
SAY_WAVE = 'action wave { template :: "wave"; feedback :: "You wave at nobody."; }'


@pytest.fixture(scope="module")
def houses(template, tmp_path_factory) -> Path:
    """Small houses that upstream loads, and one of another domain."""
    root, name = tmp_path_factory.mktemp("houses"), "pick_and_place_simple-Mug-None-Cabinet"
    raw, *_ = games = [odd_house(seed, template) for seed in HOUSES]
    for seed, game in zip(HOUSES, games, strict=True):
        write_game(root, f"valid_seen/{name}-{seed}/trial_T0", game)
    write_game(root, f"valid_train/{name}-0/trial_T0", template)
    other = {"pddl_domain": raw["pddl_domain"].rstrip()[:-1] + WAVE, "grammar": raw["grammar"] + SAY_WAVE}
    write_game(root, f"valid_unseen/{name}-0/trial_T0", {**raw, **other})
    return root


@pytest.fixture
def make(houses, quick):
    """Makes environments, and closes them after the test."""
    with ExitStack() as stack:

        def made(split: str = "valid_seen", **options: Any) -> ALFWorldEnv:
            env = ALFWorldEnv(data=houses, split=split, **{"engine": "textworld", **options})
            return stack.enter_context(closing(env))

        yield made


@pytest.fixture
def env(make):
    return make()


def pid_of(env: ALFWorldEnv) -> int:
    return env._process.pid


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def started(env: ALFWorldEnv, task: int = 0) -> tuple[str, dict[str, Any]]:
    return env.reset(options={"task_id": env.task_ids[task]})


@pytest.mark.slow
class TestContract(TextEnvContract):
    seeds = (0,)
    walk_length = 4
    # Skills and tasks are above the engine, and checked with ours.
    test_skills_off_change_nothing = test_skills_on_stand_in_front = test_task_ids_are_fixed = None

    @pytest.fixture(autouse=True)
    def _data(self, houses, quick):
        self.data = str(houses)

    def make_env(self):
        return gymnasium.make("skillc/ALFWorld-v0", data=self.data, split="valid_train", engine="textworld")


def test_a_dead_process_is_an_error_in_words_and_the_next_reset_starts_another(env):
    first, moment, dead = started(env), env.snapshot(), pid_of(env)
    os.kill(dead, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"ended with code -9 during 'step'.*reset\(\) starts another"):
        env.step("look")
    with pytest.raises(EngineError, match=r"reset\(\)"):
        env.step("look")
    assert env.restore(moment) == first
    assert env.step("look")[4]["action_valid"]
    os.kill(pid_of(env), signal.SIGKILL)
    with pytest.raises(EngineError):
        env.step("look")
    assert started(env) == first
    assert pid_of(env) != dead


def test_it_is_replaced_after_some_games_and_answers_the_same(make, env, monkeypatch):
    expected = [started(env, task) for task in range(len(HOUSES))]
    monkeypatch.setattr(textworld, "GAMES_PER_PROCESS", 1)
    worn, pids = make(), []
    for task, answer in enumerate(expected):
        assert started(worn, task) == answer
        pids.append(pid_of(worn))
    assert len(set(pids)) == len(HOUSES)
    assert [alive(pid) for pid in pids] == [False] * (len(HOUSES) - 1) + [True]
    folder = worn._process._worker.folder
    assert folder.exists()
    worn.close()
    worn.close()
    assert not alive(pids[-1])
    assert not folder.exists()


@pytest.mark.parametrize(("limit", "replaced"), [(1, True), (textworld.MEGABYTES_PER_PROCESS, False)])
def test_it_is_replaced_when_it_has_grown(env, limit, replaced, monkeypatch):
    monkeypatch.setattr(textworld, "MEGABYTES_PER_PROCESS", limit)
    first, pid = started(env), pid_of(env)
    assert env.step("look")[4]["action_valid"], "not in the middle of an episode"
    assert pid_of(env) == pid
    assert started(env) == first
    assert (pid_of(env) != pid) is replaced
    assert 20 < env._process._megabytes < 500


def test_a_process_that_does_not_answer_is_ended(template, upstream, monkeypatch):
    monkeypatch.setattr(textworld, "SECONDS_PER_ANSWER", 0.01)
    process = UpstreamProcess(cached=True)
    with pytest.raises(EngineError, match=r"no answer in 0\.01 seconds"):
        process.load(template)
    assert process.pid is None


def test_an_interrupted_answer_is_not_taken_for_the_next_one(env, monkeypatch):
    first = started(env)
    with monkeypatch.context() as patch:
        patch.setattr(textworld.select, "poll", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            env.step("inventory")
    assert started(env) == first


def test_worlds_that_share_a_process_do_not_answer_for_each_other(template, upstream):
    first = UpstreamWorld(upstream, odd_house(0, template))
    before = first.reset()
    second = UpstreamWorld(upstream, odd_house(1, template))
    assert second.reset() != before
    with pytest.raises(EngineError, match="does not hold this game any more"):
        first.step("look")
    assert first.reset() == before


def test_an_environment_that_is_forgotten_ends_its_process(houses, quick):
    env = ALFWorldEnv(data=houses, split="valid_seen", engine="textworld")
    env.reset(seed=0)
    pid = pid_of(env)
    del env
    gc.collect()
    assert not alive(pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_starts_a_process_of_its_own(env):
    first = started(env)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if started(env) == first else 2
            env.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert env.step("look")[4]["action_valid"]


def test_snapshots_go_to_another_environment_but_not_to_another_engine(make, env):
    possible = started(env)[1]["admissible_commands"]
    env.step(next(command for command in possible if command.startswith("go to")))
    moment, expected = env.snapshot(), env.step("look")
    other, native = make(), make(engine="native")
    other.restore(moment)
    assert other.step("look") == expected
    started(native)
    for one, foreign in ((native, moment), (env, native.snapshot())):
        with pytest.raises(ConfigError, match="another engine"):
            one.restore(foreign)


def test_commands_of_any_form_are_answered_as_the_native_engine_answers(make, env):
    native = make(engine="native")
    for command in ("", "\n", "look\n", "\ud800", "\0", "x" * 100_000, "{r.name}", '"', "look; look"):
        assert started(env) == started(native)
        assert env.step(command) == native.step(command)
        assert env.step("look") == native.step("look")


def test_drawings_tell_the_last_exchange(make):
    shown = {"ansi": f"> <look>\n{NOTHING_HAPPENS}", "html": f"<pre>&gt; &lt;look&gt;\n{NOTHING_HAPPENS}</pre>"}
    for env in (make(render_mode=mode) for mode in shown):
        env.reset(seed=0)
        env.step("<look>")
        assert env.render() == shown[env.render_mode]


def test_a_game_of_another_domain_is_for_upstream_alone(make):
    with pytest.raises(InvalidGameError, match=r"unknown or changed actions \['wave'\].*engine='textworld'"):
        make("valid_unseen", engine="native").reset(seed=0)
    env = make("valid_unseen")
    assert "wave" in env.reset(seed=0)[1]["admissible_commands"]
    observation, *_, info = env.step("wave")
    assert (observation, info["action_valid"]) == ("You wave at nobody.", True)
    with pytest.raises(ConfigError, match="engine='native'"):
        _ = env.commands


def test_each_game_of_a_vector_has_a_process(houses, quick):
    options = {"data": str(houses), "split": "valid_seen"}
    upstreams, natives = ALFWorldVectorEnv(2, engine="textworld", **options), ALFWorldVectorEnv(2, **options)
    assert upstreams.reset(seed=3)[0] == natives.reset(seed=3)[0]
    assert upstreams.step(["look", "inventory"])[0] == natives.step(["look", "inventory"])[0]
    pids = [pid_of(game) for game in upstreams.envs]
    assert len(set(pids)) == 2
    upstreams.close()
    assert not any(map(alive, pids))
