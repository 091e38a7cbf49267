"""Commands of the shop: catalogues are made, and its site is served until Ctrl-C, with recorded episodes too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.episodes import EpisodeRecorder, write_jsonl
from skillc_lab.cli.main import main as skillc

ROOT = Path(__file__).resolve().parents[3]
SHOP = {"data": "generated", "generator": {"size": 40}}
MAKE = ["tools", "make-catalog", "--out"]


def served(*words):
    """Starts a command; returns what its address leads to, and its exit status after Ctrl-C."""
    command = [sys.executable, "-m", "skillc_lab", *map(str, words), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
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
    env = WebShopEnv(**SHOP)
    recorder = EpisodeRecorder(*env.reset(seed=0))
    recorder.add("search[rug]", env.step("search[rug]"))
    write_jsonl(tmp_path / "transcripts.jsonl", [recorder.episode()])
    config = {"data": "generated", "env_options": {"generator": {"size": 40}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    page, status = served("replay", tmp_path, "--site")
    assert env.goal in page
    assert status == 130


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve-webshop", "--data", "nothing"], "no folder"),
        (["serve-webshop", "--data", "generated", "--host", "no.such.host.example"], "cannot listen"),
        (["serve-webshop", "--data", "generated", "--split", "dev"], "'dev'"),
        (["replay", "nothing", "--site"], "nothing"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(words, said, capsys):
    assert skillc(words) == 2
    heard = capsys.readouterr().err
    assert said in heard
    assert heard.count("\n") == 1


# Catalogues -----------------------------------------------------------------------------------------------------------


def test_json_and_folder_are_the_same_catalogue(tmp_path, capsys):
    assert skillc([*MAKE, str(tmp_path / "files"), "--generate", "60", "--json"]) == 0
    for file in (tmp_path / "files").iterdir():
        json.loads(file.read_text())
    assert skillc([*MAKE, str(tmp_path / "a"), "--source", str(tmp_path / "files"), "--quiet"]) == 0
    assert skillc([*MAKE, str(tmp_path / "b"), "--generate", "60", "--quiet"]) == 0
    first, second = open_catalog(tmp_path / "a"), open_catalog(tmp_path / "b")
    assert first.sha256 == second.sha256
    assert first.human_instructions() == second.human_instructions()
    assert "60 products" in capsys.readouterr().out
    words = ["--source", str(tmp_path / "files"), "--num-products", "10", "--quiet"]
    assert skillc([*MAKE, str(tmp_path / "cut"), *words]) == 0
    assert len(open_catalog(tmp_path / "cut")) == 10


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Name one of --source"),
        (["--source", "a", "--generate", "5"], "Name one of --source"),
        (["--products", "none.json"], "none.json"),
        (["--generate", "5", "--out", "."], "not an empty folder"),
        (["--source", ".", "--human-goals", "mine"], "go with --products only"),
        (["--generate", "5", "--attributes", "mine"], "go with --products only"),
        (["--generate", "5", "--num-products", "3"], "go with --source or --products only"),
        (["--generate", "5", "--accept-truncated"], "go with --source or --products only"),
    ],
)
def test_what_makes_no_catalogue_is_refused(tmp_path, capsys, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch()
    assert skillc([*MAKE, "out", *words]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
