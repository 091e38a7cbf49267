"""The native engine against upstream itself, and upstream behind the environment."""

import re
from importlib import resources

import numpy as np
import pytest

from benchmarks.parity_alfworld import compare, older_wording, random_walk, scripts_for, sum_up
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine import textworld
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.grammar import Part, split_sentence
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.tasks import task_type_of
from skillc_gym.errors import InvalidGameError, MissingExtraError

pytestmark = pytest.mark.upstream

# Small houses that upstream agrees to load (it refuses some whose goal is decided from the start).
HOUSES = (0, 1, 5, 8, 11, 14, 26, 27, 30, 33)
TASK_ID = "valid_seen/pick_and_place_simple-Mug-None-Desk-1/trial_1"


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
