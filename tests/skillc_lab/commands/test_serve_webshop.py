"""``skillc serve-webshop`` and ``skillc replay --site``: the address is said, pages are served, Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.episodes import EpisodeRecorder, write_jsonl
from skillc_lab.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
SHOP = {"data": "generated", "generator": {"size": 40}}


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
    page, status = served(
        "serve-webshop", "--data", "generated", "env.generator={'size': 40}".replace("'", '"'), "--record", kept
    )
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
    assert main(words) == 2
    heard = capsys.readouterr().err
    assert said in heard
    assert heard.count("\n") == 1
