"""Tasks played by hand; games, demonstrations and catalogues that are made; the shop's site, served until Ctrl-C."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import gymnasium
import pytest

from skill_library import load_library
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.tasks import SPLITS
from skillc_gym.envs.registry import env_spec
from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.episodes import EpisodeRecorder, write_jsonl
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands import make_games
from skillc_lab.commands.play import Game, in_columns, play


def started(name: str, **options: object) -> Game:
    """A game of the first seed; what it tells is kept as ``said``."""
    said: list[str] = []
    spec = env_spec(name)
    env = gymnasium.make(spec.id, data="generated", render_mode="ansi", max_episode_steps=100, **options)
    game = Game(env, spec, said.append, skills=load_library(spec.library))
    game.said = said
    game.start(seed=0)
    return game


@pytest.fixture
def game():
    return started("alfworld", split="valid_unseen")


def type_in(game: Game, lines: Iterable[str]) -> None:
    left = iter(lines)

    def ask(_: str) -> str:
        for line in left:
            return line
        raise EOFError

    play(game, ask)


def test_what_has_no_tasks_in_text_cannot_be_played(capsys):
    assert skillc(["play", "--env", "CartPole-v1"]) == 2
    assert "CartPole-v1 is no environment of text tasks" in capsys.readouterr().err


def test_a_task_can_be_won_and_the_win_taken_back(game):
    plan = shortest_plan(game.env)
    type_in(game, plan)
    assert f"Won in {len(plan)} commands" in game.said[-1]
    type_in(game, [":undo"])
    assert game.said[-1].startswith("Took back 1.")
    assert game.info["won"] == 0.0
    type_in(game, [plan[-1]])
    assert "Won" in game.said[-1]


def test_undo_knows_what_was_seen_before_and_goes_no_further_than_the_start(game):
    place = next(name for name in game.info["admissible_commands"] if name.startswith("go to ")).removeprefix("go to ")
    first = game.info["admissible_commands"]
    type_in(game, [f"go to {place}", "look", ":view", ":undo", ":view"])
    assert game.said[-1] == game.said[-3]
    assert f"@ {place}" in game.said[-1]
    type_in(game, [":undo 9"])
    assert game.info["admissible_commands"] == first
    type_in(game, [":undo"])
    assert game.said[-1] == "Nothing to take back."


def test_going_back_leads_into_the_same_house():
    game = started("alfworld", split="valid_unseen", domain_randomization=True)
    plan = shortest_plan(game.env)
    type_in(game, ["look", ":undo"])
    assert shortest_plan(game.env) == plan


def test_the_skill_is_shown_and_hidden(game):
    type_in(game, [":skill", ":new", ":skill", ":new"])
    *shown, _, hidden, new = game.said[1:]
    assert [text.startswith("General skill") for text in shown] == [True, True]
    assert hidden == "The skill is hidden now."
    assert new.startswith("[valid_unseen/")


def test_a_library_that_does_not_serve_the_task_ends_no_game(game):
    game.skills = load_library("webshop")
    type_in(game, [":skill", "look"])
    assert "shopping" in game.said[-2]


def test_a_player_may_set_what_a_game_is_made_with(monkeypatch, says):
    monkeypatch.setattr("builtins.input", lambda _="": ":quit")
    assert "coin" in says("play --env coins --seed 0 --env.max_episode_steps 20").lower()


def test_commands_stand_in_columns_read_downwards():
    columns = in_columns(["go", "look", "open", "take", "use"], width=14).splitlines()
    assert columns == ["go     take", "look   use", "open"]
    assert in_columns(["one long name"], width=5) == "one long name"


def test_the_players_words_show_what_they_say(game):
    type_in(game, [":commands", ":view", ":skill", ":plan", ":nonsense", ":new", ":quit", "look"])
    commands, house, skill, plan, help_text, _, new = game.said[1:]
    assert "inventory" in commands
    assert "hand: empty" in house
    assert "Skill:" in skill
    assert plan.splitlines()[0].removeprefix(" 1. ") in commands
    assert ":undo" in help_text
    assert new.startswith("[valid_unseen/")


def test_a_shop_is_played_alike():
    shop = started("webshop", split="test", generator={"size": 200})
    assert "search[<query>]" in shop.possible
    type_in(shop, [":skill", ":commands", ":plan"])
    skill, commands, plan = shop.said[1:]
    assert skill == load_library("webshop").for_task(shop.info["task_type"]).text
    assert commands == "search[<query>]"
    steps = [line.split(". ", 1)[1] for line in plan.splitlines()[1:]]
    assert steps[-1].lower() == "click[buy now]"
    type_in(shop, steps)
    assert any(word in shop.said[-1] for word in ("Won in", "with a score of", "lost"))
    type_in(shop, ["click[buy now]"])
    assert "The task is over." in shop.said[-1]
    type_in(shop, [":undo"])
    assert "Took back 1." in shop.said[-1]


def test_it_runs_as_a_command(monkeypatch, says):
    lines = iter(["look", ":quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert "Your task is to:" in says("play --seed 0")


# The shop's site and catalogues ---------------------------------------------------------------------------------------


def served(*words):
    """Starts a command; returns what its address leads to, and its exit status after Ctrl-C."""
    command = [sys.executable, "-m", "skillc_lab", *map(str, words), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            url = process.stdout.readline().strip()
            page = urllib.request.urlopen(url, timeout=30).read().decode()
        finally:
            process.send_signal(signal.SIGINT)
        return page, process.wait(timeout=30)


def test_the_shop_is_served(tmp_path):
    kept = tmp_path / "kept" / "demonstrations.jsonl"
    page, status = served("serve-webshop", "--data", "generated", 'env.generator={"size": 40}', "--record", kept)
    assert "40 products" in page
    assert "recorded" in page
    assert (status, kept.exists()) == (130, True)


def test_recorded_episodes_are_shown_in_their_shop(tmp_path):
    env = WebShopEnv(data="generated", generator={"size": 40})
    recorder = EpisodeRecorder(*env.reset(seed=0))
    recorder.add("search[rug]", env.step("search[rug]"))
    write_jsonl(tmp_path / "transcripts.jsonl", [recorder.episode()])
    config = {"data": "generated", "env_options": {"generator": {"size": 40}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    page, status = served("replay", tmp_path, "--site")
    assert env.goal in page
    assert status == 130


def test_episodes_of_another_world_are_not_shown_in_the_shop(tmp_path, says):
    (tmp_path / "config.json").write_text(json.dumps({"env": "alfworld", "data": "generated"}))
    assert "was played in alfworld, not in the shop" in says("replay --site", tmp_path, status=2)


def test_json_and_folder_are_the_same_catalogue(tmp_path, says):
    files = tmp_path / "files"

    def made(name: str, *words: object):
        said = says("tools make-catalog --quiet --out", tmp_path / name, *words)
        catalog = open_catalog(tmp_path / name)
        assert f"{len(catalog)} products" in said
        return catalog

    says("tools make-catalog --generate 60 --json --out", files)
    for file in files.iterdir():
        json.loads(file.read_text())
    first, second = made("a", "--source", files), made("b", "--generate", 60)
    assert first.sha256 == second.sha256
    assert len(first) == 60
    assert first.human_instructions() == second.human_instructions()
    assert len(made("cut", "--source", files, "--num-products", 10)) == 10


# Games ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "games"
    assert skillc(["tools", "make-games", "--out", str(folder), "--games-per-type", "2", "--seed", "3"]) == 0
    return folder


def test_the_layout_is_upstreams(written):
    files = [path.relative_to(written).parts for path in written.rglob("*") if path.is_file()]
    assert len(files) == 2 * 4 * 6 * 2
    names = ("game.tw-pddl", "traj_data.json")
    assert {(len(parts), parts[0], parts[-1]) for parts in files} == {(5, "json_2.1.1", name) for name in names}
    assert {parts[1] for parts in files} == set(SPLITS)


@pytest.mark.upstream
def test_upstream_finds_them(written, monkeypatch):
    environment = pytest.importorskip("alfworld.agents.environment")
    types = {"task_types": [1, 2, 3, 4, 5, 6], "goal_desc_human_anns_prob": 0, "domain_randomization": False}
    dataset = {"eval_id_data_path": str(written / "json_2.1.1" / "valid_seen"), "num_eval_games": 0}
    config = {"env": types, "dataset": dataset}
    found = environment.get_environment("AlfredTWEnv")(config, train_eval="eval_in_distribution")
    assert found.num_games == 12
    expert = pytest.importorskip("alfworld.agents.expert").HandCodedTWAgent(max_steps=200)
    for path in found.game_files:
        expert.reset(path)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("inner", ["", "json_2.1.1"])
def test_the_same_games_are_read_again(written, split, inner):
    read, made = open_games(written / inner, split=split), GeneratedGames(split, games_per_type=2, seed=3)
    assert read.task_ids == made.task_ids
    assert [read.raw(name) for name in read.task_ids] == [made.raw(name) for name in made.task_ids]


def test_choices_are_kept_and_progress_goes_to_stderr(tmp_path, capsys):
    words = ["--out", str(tmp_path), "--splits", "valid_seen", "--task-types", "heat", "pick2", "--size", "medium"]
    assert skillc(["tools", "make-games", *words, "--games-per-type", "1"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"valid_seen": {"games": 2}}
    assert said.err.split() == ["valid_seen", "2/2"]
    made = GeneratedGames("valid_seen", ["heat", "pick2"], games_per_type=1, size="medium")
    assert open_games(tmp_path, split="valid_seen").task_ids == made.task_ids


@pytest.mark.parametrize(("error", "status"), [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)])
def test_games_that_cannot_be_written_leave_nothing(error, status, tmp_path, monkeypatch, capsys):
    def full(split: str, done: int, total: int) -> None:
        if done == 2:
            raise error

    monkeypatch.setattr(make_games, "count_line", full)
    words = ["tools", "make-games", "--games-per-type", "1", "--splits", "train", "--out", str(tmp_path / "games")]
    assert skillc(words) == status
    assert (status == 130) or (f"{words[-1]} cannot be written: there is no space left" in capsys.readouterr().err)
    monkeypatch.undo()
    assert skillc(words) == 0


def test_difficulty_mix_and_knobs_are_kept(tmp_path, says):
    words = "--splits train --games-per-type 2 --prove --difficulty 0 1 --receptacles 6 8 --objects 9"
    found = says(f"tools make-games {words} --mix heat=1 pick2=1 --out", tmp_path)
    assert json.loads(found) == {"train": {"games": 24, "won_by_planner": 24}}
    knobs = {"difficulty": [0, 1], "receptacles": [6, 8], "objects": 9, "mix": {"heat": 1, "pick2": 1}}
    made = GeneratedGames("train", games_per_type=2, **knobs)
    assert open_games(tmp_path, split="train").task_ids == made.task_ids


@pytest.mark.slow
@pytest.mark.upstream
@pytest.mark.skipif(importlib.util.find_spec("fast_downward") is None, reason="upstream is not installed")
def test_a_sample_is_won_in_upstream(tmp_path, says):
    words = "--splits valid_seen --games-per-type 1 --size real --mix real --prove-upstream 2"
    found = says(f"tools make-games {words} --out", tmp_path)
    assert json.loads(found) == {"valid_seen": {"games": 6, "won_in_upstream": 2}}


# Demonstrations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expert", ["explorer", "planner"])
def test_experts_win_and_every_task_is_shown_in_both_conditions(tmp_path, says, expert):
    out = tmp_path / "demos.jsonl"
    says(f"tools make-demonstrations --count 6 --expert {expert} --out", out)
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(line["condition"], line["won"]) for line in found] == [(1, True), (0, True)] * 6
    for with_skill, without in zip(found[::2], found[1::2], strict=True):
        assert with_skill["task_id"] == without["task_id"]
        assert "skill" in with_skill["messages"][0]["content"].lower()
        assert with_skill["messages"][0]["content"] != without["messages"][0]["content"]
        roles = [message["role"] for message in without["messages"]]
        assert roles == ["system", *["user", "assistant"] * (len(roles) // 2)]


def test_datasets_loads_the_messages_column(tmp_path, says):
    datasets = pytest.importorskip("datasets", reason="needs the train extra")
    out = tmp_path / "demos.jsonl"
    says("tools make-demonstrations --count 2 --skills off --chat compact --out", out)
    loaded = datasets.load_dataset("json", data_files=str(out), cache_dir=str(tmp_path / "cache"), split="train")
    assert loaded.num_rows == 2
    assert loaded[0]["messages"][0]["role"] == "system"
