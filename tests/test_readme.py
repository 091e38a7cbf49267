"""A newcomer copies and pastes: every shell line of the README is run (`test_python_blocks` has the Python).

Shell lines that train or evaluate are run with a few more words at their end (a later word wins), so that one update is
made instead of forty. ``make newcomer`` runs them as they stand.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from scripts.newcomer import lines_of
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import MethodRow, Regime, read_record, regimes_of
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import expert_reply
from trainers.recipes import RECOMMENDED

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHORT = {
    "train": "steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=4",
    "evaluate": "per_type=1 max_episode_steps=4",
}
_TABLE = re.compile(r"^\| \[(.*?)\]\(.*?#(\w+)\), (\d+) .*?seeds \|(.*)\|$", re.MULTILINE)
CONTROLS = {
    ("real_games_confirmation", "real-hard"): "real_games_controls",
    ("confirmation", "hard"): "controls",
    ("confirmation", "easy"): "controls_easy",
    ("shop_more_seeds", "hard"): "shop_controls",
}
"""Records of imitation alone, by record and start."""
_NUMBER = re.compile(r"[-+]?\d+")


def test_every_block_is_of_a_language_that_is_run():
    assert set(re.findall(r"^```(\w+)$", README, re.MULTILINE)) == {"bash", "python"}


@pytest.mark.slow
def test_shell_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("trl", reason="needs the train extra")
    monkeypatch.chdir(tmp_path)
    typed = [line.text for line in lines_of(README) if not line.python]
    lines = [line for line in typed if not line.startswith(("make ", ". .venv"))]
    assert lines
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with openai_server(expert_reply) as server:
        for line in lines:
            program, name, *words = shlex.split(line.replace("http://127.0.0.1:8000/v1", server.base_url))
            assert program == "skillc"
            assert skillc([name, *words, *SHORT.get(name, "").split()]) == 0, line
    assert (tmp_path / "runs/mine/after/report.json").exists()
    assert (tmp_path / "runs/mine/report/index.html").exists()


def _regime(record: str, start: str) -> Regime:
    found = regimes_of([read_record(ROOT / "benchmarks/records" / f"{record}.json")])
    return next(regime for regime in found if ("easi" in start) == (regime.start == "easy"))


def _percent(row: MethodRow | None) -> int:
    assert row is not None
    return round(100 * row.without.mean)


def test_the_table_of_results_is_the_records():
    rows = _TABLE.findall(README)
    assert len(rows) == 5
    for start, record, seeds, cells in rows:
        regime = _regime(record, start)
        own = regime.row(RECOMMENDED)
        assert own is not None
        assert own.against is not None
        assert regime.before is not None
        difference = own.against.difference
        low, high = (round(100 * end) for end in difference.interval or ())
        wanted = [round(100 * regime.before.without), _percent(regime.rows[0]), _percent(own)]
        wanted += [round(100 * difference.mean), low, high]
        if controls := CONTROLS.get((record, regime.start)):
            wanted += [_percent(_regime(controls, start).row(name)) for name in ("context_distillation", RECOMMENDED)]
        if imitation := regime.row("context_distillation"):
            wanted.append(_percent(imitation))
        assert list(map(int, _NUMBER.findall(cells))) == wanted, record
        assert int(seeds) == len(own.seeds)
        assert ("not significant" in cells) == (own.against.verdict != "better"), record


def test_the_findings_are_the_records():
    tuned = _regime("main_houses", "")
    untuned, easy = (_regime("confirmation", start) for start in ("", "easier"))
    shop = _regime("shop_controls", "")
    pairs = [(_percent(regime.row(RECOMMENDED)), _percent(regime.rows[0])) for regime in (tuned, easy)]
    pairs.append((_percent(shop.row("context_distillation")), _percent(shop.row(RECOMMENDED))))
    found = re.findall(r"(\d+) %(?: in the houses, GRPO at| and|, relabelling at) (\d+) %", README)
    assert [tuple(map(int, pair)) for pair in found] == pairs
    before = re.search(r"untuned.*GRPO\nended at (\d+) % and relabelling at (\d+)", README)
    assert before is not None
    assert [*map(int, before.groups())] == [_percent(untuned.rows[0]), _percent(untuned.row(RECOMMENDED))]
