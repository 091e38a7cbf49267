from __future__ import annotations

from typing import Any

import pytest

from benchmarks.rollout_steps import Script, StreamedSteps, WaveSteps, main
from trainers.engines import Request, Sampling
from trainers.engines.types import Engine, stream


class OneTokenAWord:
    eos_token_id = 0

    def encode(self, text: str, **_: Any) -> list[int]:
        return [1] * len(text.split())


def steps_of(engine: Any, turns: dict[int, int], room: int) -> int:
    """Members that say three words a turn, or the last of them nine, so many turns each."""
    waiting = [Request(key, [1], 0, turn=0) for key in turns]

    def answer(replies: Any) -> list[Request]:
        going = [Request(r.key, [1], 0, turn=r.turn + 1) for r, _ in replies if r.turn + 1 < turns[r.key]]
        places = len(replies) - len(going)
        entering = [waiting.pop(0) for _ in range(min(places, len(waiting)))]
        return going + entering

    assert isinstance(engine, Engine)
    stream(engine, [waiting.pop(0) for _ in range(room)], Sampling(), answer)
    return int(engine.steps)


def test_a_step_is_a_token_of_everybody_under_way() -> None:
    said = Script(("a",), 2, {0: ["b c d"] * 4, 1: ["b c d e f g h i j"]})
    # Member 0 takes four turns of four tokens, member 1 one of ten; in waves the first turn waits for the ten.
    assert steps_of(WaveSteps(said, OneTokenAWord()), {0: 4, 1: 1}, 2) == 10 + 3 * 4
    assert steps_of(StreamedSteps(said, OneTokenAWord()), {0: 4, 1: 1}, 2) == 16


def test_the_table_counts_the_same_episodes_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--tasks", "3", "--group", "4", "--parallel", "4", "--allow-changes"]
    assert main(words) == 0
    page = capsys.readouterr().out
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [row[2].strip() for row in rows] == ["12"] * 3
    assert all(float(row[8]) > 1 for row in rows)
