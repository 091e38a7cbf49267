"""The native engine against upstream itself, and engine="textworld": upstream behind the environment."""

import gc
import os
import re
import signal
from contextlib import ExitStack, closing
from importlib import resources
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest
from odd_houses import odd_house, write_game

from benchmarks.parity_alfworld import compare, older_wording, random_walk, scripts_for, sum_up
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine import textworld
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.grammar import Part, split_sentence
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS, World
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.tasks import task_type_of
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv
from skillc_gym.errors import ConfigError, EngineError, InvalidGameError, MissingExtraError
from skillc_gym.testing import TextEnvContract

pytestmark = pytest.mark.upstream

# Small houses that upstream agrees to load (it refuses some whose goal is decided from the start).
HOUSES = (0, 1, 5, 8, 11, 14, 26, 27, 30, 33)
TASK_ID = "valid_seen/pick_and_place_simple-Mug-None-Desk-1/trial_1"
FEW_HOUSES = (0, 1, 5)
WAVE = "(:action wave :parameters (?a - agent ?l - location) :precondition (atLocation ?a ?l) :effect (checked ?l)))"
SAY_WAVE = 'action wave { template :: "wave"; feedback :: "You wave at nobody."; }'


def played(world, commands):
    start = (world.reset(), world.admissible, world.won)
    return [start, *((world.step(command)[0], world.admissible, world.won) for command in commands)]


@pytest.mark.parametrize("seed", HOUSES)
def test_odd_houses_are_played_alike(house, upstream, seed):
    raw, game = house(seed)
    for naming, numbered in ((None, game), (12345 + seed, game.renamed(12345 + seed))):
        world = UpstreamWorld(upstream, raw, naming)
        commands = random_walk(numbered, np.random.default_rng(seed), 40)
        assert played(World(numbered), commands) == played(world, commands)


@pytest.mark.parametrize("seed", HOUSES)
def test_the_domain_of_upstreams_package_cleans_at_basins_alone(house, upstream, seed):
    domain = resources.files("alfworld").joinpath("data", "alfred.pddl").read_text(encoding="utf-8")
    raw = {**house(seed)[0], "pddl_domain": domain}
    world, native = UpstreamWorld(upstream, raw), World(Game.parse(TASK_ID, raw))
    commands = random_walk(native.game, np.random.default_rng(seed), 40)
    assert played(native, commands) == played(world, commands)


@pytest.mark.parametrize("rewrite", [dict, older_wording], ids=["as it is", "older wording"])
def test_a_game_is_played_alike_in_both_wordings(template, upstream, rewrite):
    found = compare(TASK_ID, rewrite(template), upstream, oracle="cached")
    assert found.differences == []
    assert found.wins > 0


@pytest.mark.slow
def test_real_games_are_played_alike(alfworld_data, upstream):
    games = open_games(alfworld_data, split="valid_unseen")
    chosen = {task_type_of(name): name for name in reversed(games.task_ids)}.values()
    found = [compare(task_id, games.raw(task_id), upstream, oracle="cached") for task_id in chosen]
    assert [group["differences"] for group in sum_up(found)] == [0]
    assert sum(one.answers for one in found) > 500


@pytest.mark.slow
def test_remembering_parses_changes_no_answer(house, template, upstream):
    plain, (odd, game) = UpstreamProcess(), house(5)
    walk = random_walk(game, np.random.default_rng(5), 30)
    for raw, commands in ((template, scripts_for(house(0)[1], 0)[0]), (odd, walk)):
        assert played(UpstreamWorld(plain, raw), commands) == played(UpstreamWorld(upstream, raw), commands)
    plain.close()


def test_a_difference_would_be_found(template, upstream, monkeypatch):
    monkeypatch.setattr(World, "reset", lambda self: "Good morning.")
    found = compare(TASK_ID, template, upstream, oracle="cached")
    assert {key for one in found.differences for key in one} == {"step", "commands", "native", "upstream"}
    assert all(one["native"][0] == "Good morning." != one["upstream"][0] for one in found.differences)
    assert sum_up([found])[0]["games_that_differ"] == 1


def test_what_upstream_cannot_load_is_an_error_and_the_process_lives_on(template, upstream):
    with pytest.raises(InvalidGameError, match="Upstream cannot load the game"):
        upstream.load({**template, "pddl_problem": "(nonsense"})
    upstream.load(template)
    assert upstream.ask(op="reset")["admissible"]


@pytest.mark.parametrize(
    "task", ["look: it's done!", 'put \\"the\\" mug away', "wait; now", "a // b", "x  ", "grüße", "a\\tb"]
)
def test_unusual_tasks_are_told_alike(template, upstream, task):
    grammar = re.sub(r"Your task is to: [^\"]*", lambda _: f"Your task is to: {task}", template["grammar"])
    raw = {**template, "grammar": grammar}
    assert World(Game.parse(TASK_ID, raw)).reset() == UpstreamWorld(upstream, raw).reset()


TWICE = '"task": [{{"rhs": "Your task is to: {}"}}]'.format


@pytest.mark.parametrize(
    "rules",
    [
        f"{TWICE('old')},{TWICE('new')}",
        '"task": [{"rhs": "Your task is to: mug.\\n\\nSecond paragraph."}]',
        '"task": [{"rhs": "Your task is to: a", "condition": "holdsany(a:agent)"}, {"rhs": "Your task is to: b"}]',
    ],
    ids=["twice", "two paragraphs", "on conditions"],
)
def test_a_task_that_stands_otherwise_is_told_as_upstream_does_or_refused(template, upstream, rules):
    grammar = re.sub(r'"task":\s*\[[^]]*\]', lambda _: rules, template["grammar"])
    raw = {**template, "grammar": grammar}
    world = UpstreamWorld(upstream, raw)
    said = world.reset()
    if "condition" in rules:
        with pytest.raises(InvalidGameError):
            Game.parse(TASK_ID, raw)
        assert world.goal == "b", "upstream alone reads it: the last paragraph"
    else:
        native = World(Game.parse(TASK_ID, raw))
        assert (native.reset(), native.game.goal) == (said, world.goal)


def test_what_is_in_hand_at_first_can_be_put_and_treated(template, upstream):
    thing = re.search(r"\(pickupable (\S+?)\)", template["pddl_problem"])[1]
    held = f"(holds agent1 {thing}) (holdsAny agent1)"
    problem = template["pddl_problem"].replace(f"(pickupable {thing})", held)
    problem = re.sub(rf"\(inReceptacle {re.escape(thing)} \S+?\)", "", problem)
    raw = {**template, "pddl_problem": problem}
    game = Game.parse(TASK_ID, raw)
    native, theirs = World(game), UpstreamWorld(upstream, raw)
    walk = [command for command in game.commands if command.startswith("go to")]
    assert played(native, walk) == played(theirs, walk)
    native.reset()
    for command in walk:
        native.step(command)
        assert set(native.admissible) <= set(game.commands)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(textworld.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"skillc-gym\[alfworld\]"):
        UpstreamProcess()


def part_of(symbol) -> Part:
    """A piece of a sentence of upstream's, as ours."""
    kind = type(symbol).__name__
    if kind in ("TerminalSymbol", "NonterminalSymbol"):
        return Part("text" if kind == "TerminalSymbol" else "rule", str(symbol))
    value = symbol.symbol if kind == "ListSymbol" else symbol
    return Part("list" if kind == "ListSymbol" else "value", value.symbol.strip(), value.given or "")


@pytest.mark.parametrize(
    "text",
    ["[{o.name | in(o:object)}].", "{r.name | open(r:x)} y",
     "\nAvailable\n  x", "Your\ttask.", "  lead", "a; b", 'put "x" in y', "x # y", "a{r.name}\n b", "a<b", "5 > 3",
     "a//b", "it's 5 > 3", "{ r.name }\n b", "{r.name} (in {r.name})}", "\nAvailable\n  x\n",
     "#task#  x", "a b] c", "{r.indefinite} {r.name} (in {r.name})}", "é ü", "\t a \t", "a\n// c", "{ r.name }x"],
)  # fmt: skip
def test_sentences_are_split_alike(text):
    textgen = pytest.importorskip("textworld.envs.pddl.textgen")
    symbols = textgen._parse_and_convert(text, rule_name="symbols")
    assert list(map(part_of, symbols)) == split_sentence(text)


@pytest.fixture(scope="module")
def houses(template, tmp_path_factory) -> Path:
    """Small houses that upstream loads, and one of another domain."""
    root, name = tmp_path_factory.mktemp("houses"), "pick_and_place_simple-Mug-None-Cabinet"
    raw, *_ = games = [odd_house(seed, template) for seed in FEW_HOUSES]
    for seed, game in zip(FEW_HOUSES, games, strict=True):
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
    expected = [started(env, task) for task in range(len(FEW_HOUSES))]
    monkeypatch.setattr(textworld, "GAMES_PER_PROCESS", 1)
    worn, pids = make(), []
    for task, answer in enumerate(expected):
        assert started(worn, task) == answer
        pids.append(pid_of(worn))
    assert len(set(pids)) == len(FEW_HOUSES)
    assert [alive(pid) for pid in pids] == [False] * (len(FEW_HOUSES) - 1) + [True]
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
