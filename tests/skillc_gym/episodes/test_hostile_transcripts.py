"""Transcripts that strangers wrote: read in bounds or refused in words, and shown as text alone."""

import dataclasses
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.episodes import iter_jsonl, read_jsonl, to_html, write_jsonl
from skillc_gym.episodes.jsonl import MAX_LINE_BYTES
from skillc_gym.errors import MissingDataError, TranscriptError
from tests.conftest import EPISODE, TURN

SCRIPT = "<script>alert(1)</script>"


def line(**changes: Any) -> str:
    return json.dumps({**EPISODE.to_dict(), **changes})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"seed": SCRIPT}, "Episode.seed must be an integer"),
        ({"goal": ["x"] * 100_000}, "Episode.goal must be a text"),
        ({"won": "yes"}, "Episode.won must be true or false"),
        ({"task_score": 10**400}, "Episode.task_score must be a number"),
        ({"turns": {"a": 1}}, "Episode.turns must be a list of turns"),
        ({"turns": [3]}, "fields of Turn, got 3"),
        ({"turns": [{**dataclasses.asdict(TURN), "reward": SCRIPT}]}, "Turn.reward must be a number"),
        ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "list of messages"),
        ({"x" * 10_000: 1}, "has unknown"),
        ("[" * 1_000_000, "nested too deep"),
        ("9" * 10_000, "not an episode"),
        ("null", "fields of Episode, got None"),
        (b"\xff\xfe{", "not an episode"),
        (b" " * (MAX_LINE_BYTES + 1), "longer than"),
    ],
)
def test_what_is_no_episode_is_refused_in_words(tmp_path: Path, content: dict | str | bytes, complaint: str) -> None:
    written = line(**content) if isinstance(content, dict) else content
    path = tmp_path / "e.jsonl"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(TranscriptError, match=complaint) as caught:
        read_jsonl(path)
    assert "line 1" in str(caught.value)
    assert len(str(caught.value)) < 2000 + len(str(path))


@pytest.mark.parametrize("written", [True, 1, 0.0])
def test_success_is_true_or_false_however_it_was_written(tmp_path: Path, written: float) -> None:
    (tmp_path / "e.jsonl").write_text(line(won=written, task_score=0))
    (episode,) = read_jsonl(tmp_path / "e.jsonl")
    assert isinstance(episode.task_score, float)
    assert episode.won is bool(written)
    assert json.dumps(episode.to_dict()["won"]) == f"{float(written)}"


def test_pipes_and_devices_are_no_transcripts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", ".", "missing"):
        with pytest.raises(MissingDataError):
            read_jsonl(tmp_path / name)


def test_a_large_file_is_read_and_written_one_episode_at_a_time(tmp_path: Path) -> None:
    long = dataclasses.replace(EPISODE, final_observation="x" * 200_000)
    tracemalloc.start()
    path = write_jsonl(tmp_path / "e.jsonl", (long for _ in range(100)))
    assert sum(len(episode) for episode in iter_jsonl(path)) == 100
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 4_000_000


def test_a_bad_line_at_the_end_does_not_hide_those_before(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(line() + "\n" + "{\n")
    found = iter_jsonl(tmp_path / "e.jsonl")
    assert next(found) == EPISODE
    with pytest.raises(TranscriptError, match="line 2"):
        next(found)


def page_of(reply: str) -> str:
    return to_html([dataclasses.replace(EPISODE, turns=(dataclasses.replace(TURN, reply=reply),))])


def test_the_thought_is_that_of_the_first_pair_and_found_at_once() -> None:
    for reply in ("<think>" * 200_000, "<think>" * 100_000 + "</think>", "</think>" * 200_000):
        assert len(page_of(reply)) < 2_000_000
    replies = ["a<think> b </think>c</think>", "<think>b<think></think>", "<think>b", "b</think><think>"]
    shown = [page_of(reply).partition('class="tr-think">')[2].partition("</div>")[0] for reply in replies]
    assert shown == ["b", "b&lt;think&gt;", "", ""]
