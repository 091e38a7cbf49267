"""Tasks played by hand; games, demonstrations and catalogues that are made; the shop's site, served until Ctrl-C."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

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
from skillc_lab.commands.play import Game, PlayOptions, play
from trainers.tracking import write_json


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


def type_in(game: Game, *lines: str) -> list[str]:
    """What a player is told who types these lines."""
    game.said.clear()
    play(game, Mock(side_effect=[*lines, EOFError]))
    return list(game.said)


def test_held_out_tasks_come_first_in_an_environment_without_demonstrations_too():
    spec = replace(env_spec("coins"), warm_start=None)
    env = PlayOptions(env="coins", data="generated").make(spec)
    assert {task.partition("/")[0] for task in env.unwrapped.task_ids} == {spec.held_out_split} == {"test"}


def test_a_task_can_be_won_and_the_win_taken_back(game):
    plan = shortest_plan(game.env)
    assert f"Won in {len(plan)} commands" in type_in(game, *plan)[-1]
    assert type_in(game, ":undo ²")[-1].startswith("Took back 1.")
    assert game.info["won"] == 0.0
    assert "Won" in type_in(game, plan[-1])[-1]


def test_undo_knows_what_was_seen_before_and_goes_no_further_than_the_start(game):
    first = game.possible
    going = next(name for name in first if name.startswith("go to "))
    *_, before, _, after = type_in(game, going, "look", ":view", ":undo", ":view")
    assert before == after
    assert f"@ {going.removeprefix('go to ')}" in after
    type_in(game, ":undo " + "9" * 5000)
    assert game.possible == first
    assert type_in(game, ":undo") == ["Nothing to take back."]


def test_going_back_leads_into_the_same_house():
    game = started("alfworld", split="valid_unseen", domain_randomization=True)
    plan = shortest_plan(game.env)
    type_in(game, "look", ":undo")
    assert shortest_plan(game.env) == plan


def test_the_players_words_show_what_they_say(game):
    words = (":commands", ":view", ":plan", ":nonsense", ":skill", ":new", ":skill", ":new", ":quit", "look")
    commands, house, plan, help_text, skill, again, task, hidden, other = type_in(game, *words)
    assert "inventory" in commands
    assert "hand: empty" in house
    assert plan.splitlines()[0].removeprefix(" 1. ") in commands
    assert ":undo" in help_text
    assert [text.startswith("General skill") for text in (skill, again)] == [True, True]
    assert hidden == "The skill is hidden now."
    assert [text.startswith("[valid_unseen/") for text in (task, other)] == [True, True]
    game.skills = load_library("webshop")
    assert "shopping" in type_in(game, ":skill", "look")[0], "a library that does not serve the task ends no game"


def test_a_shop_is_played_alike():
    shop = started("webshop", split="test", generator={"size": 200})
    assert "search[<query>]" in shop.possible
    skill, commands, plan = type_in(shop, ":skill", ":commands", ":plan")
    assert skill == load_library("webshop").for_task(shop.info["task_type"]).text
    assert commands == "search[<query>]"
    steps = [line.split(". ", 1)[1] for line in plan.splitlines()[1:]]
    assert steps[-1].lower() == "click[buy now]"
    ending = type_in(shop, *steps)[-1]
    assert any(word in ending for word in ("Won in", "with a score of", "lost"))
    over, back = type_in(shop, "click[buy now]", ":undo")
    assert "The task is over." in over
    assert "Took back 1." in back


@pytest.mark.parametrize(
    ("words", "shown"), [("", "Your task is to:"), ("--env coins --env.max_episode_steps 20", "coin")]
)
def test_it_runs_as_a_command(words, shown, monkeypatch, says):
    monkeypatch.setattr("builtins.input", Mock(side_effect=["look", ":quit"]))
    assert shown in says(f"play --seed 0 {words}")


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


def test_recorded_episodes_are_shown_in_their_shop_alone(tmp_path, says):
    env = WebShopEnv(data="generated", generator={"size": 40})
    recorder = EpisodeRecorder(*env.reset(seed=0))
    recorder.add("search[rug]", env.step("search[rug]"))
    write_jsonl(tmp_path / "transcripts.jsonl", [recorder.episode()])
    config = {"data": "generated", "env_options": {"generator": {"size": 40}}}
    write_json(tmp_path / "config.json", config)
    page, status = served("replay", tmp_path, "--site")
    assert env.goal in page
    assert status == 130
    write_json(tmp_path / "config.json", {**config, "env": "alfworld"})
    assert "was played in alfworld, not in the shop" in says("replay --site", tmp_path, status=2)


def test_json_and_folder_are_the_same_catalogue(tmp_path, says):
    files = tmp_path / "files"

    def made(name: str, *words: object):
        said = says("tools make-catalog --quiet --out", tmp_path / name, *words)
        catalog = open_catalog(tmp_path / name)
        assert f"{len(catalog)} products" in said
        return catalog

    says("tools make-catalog --generate 60 --json --out", files)
    first, second = made("a", "--source", files), made("b", "--generate", 60)
    assert first.sha256 == second.sha256
    assert len(first) == 60
    assert first.human_instructions() == second.human_instructions() != {}
    assert len(made("cut", "--source", files, "--num-products", 10)) == 10
    built = says("tools make-catalog --out", tmp_path / "again", "--source", tmp_path / "b", status=2)
    assert "is a built catalogue already" in built


# Games ----------------------------------------------------------------------------------------------------------------


@pytest.mark.upstream
def test_upstream_finds_them(games):
    environment = pytest.importorskip("alfworld.agents.environment")
    types = {"task_types": [1, 2, 3, 4, 5, 6], "goal_desc_human_anns_prob": 0, "domain_randomization": False}
    dataset = {"eval_id_data_path": str(games / "json_2.1.1" / "valid_seen"), "num_eval_games": 0}
    config = {"env": types, "dataset": dataset}
    found = environment.get_environment("AlfredTWEnv")(config, train_eval="eval_in_distribution")
    assert found.num_games == 18
    expert = pytest.importorskip("alfworld.agents.expert").HandCodedTWAgent(max_steps=200)
    for path in found.game_files:
        expert.reset(path)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("inner", ["", "json_2.1.1"])
def test_the_same_games_are_read_again(games, split, inner):
    read, made = open_games(games / inner, split=split), GeneratedGames(split, games_per_type=3)
    assert read.task_ids == made.task_ids
    assert [read.raw(name) for name in read.task_ids] == [made.raw(name) for name in made.task_ids]


KNOBS = {"difficulty": [0, 1], "receptacles": [6, 8], "objects": 9, "mix": {"heat": 1, "pick2": 1}}
CHOICES = {
    "--task-types heat pick2 --size medium --seed 3": {"task_types": ["heat", "pick2"], "size": "medium", "seed": 3},
    "--prove --difficulty 0 1 --receptacles 6 8 --objects 9 --mix heat=1 pick2=1": KNOBS,
}


@pytest.mark.parametrize("words", CHOICES)
def test_choices_are_kept_and_progress_goes_to_stderr(words, tmp_path, capsys):
    made = GeneratedGames("train", games_per_type=2, **CHOICES[words])
    count, plain = len(made.task_ids), f"tools make-games --splits train --games-per-type 2 --out {tmp_path}"
    assert skillc([*plain.split(), *words.split()]) == 0
    said = capsys.readouterr()
    proved = {"won_by_planner": count} if "--prove" in words else {}
    assert json.loads(said.out) == {"train": {"games": count, **proved}}
    assert said.err.split() == ["train", f"{count}/{count}"]
    assert open_games(tmp_path, split="train").task_ids == made.task_ids


@pytest.mark.parametrize(("error", "status"), [(OSError(28, "No space left on device"), 1), (KeyboardInterrupt(), 130)])
def test_games_that_cannot_be_written_leave_nothing(error, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_games, "count_line", Mock(side_effect=[None, error]))
    words = ["tools", "make-games", "--games-per-type", "1", "--splits", "train", "--out", str(tmp_path / "games")]
    assert skillc(words) == status
    assert (status == 130) or (f"{words[-1]} cannot be written: there is no space left" in capsys.readouterr().err)
    monkeypatch.undo()
    assert skillc(words) == 0


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
