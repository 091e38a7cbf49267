"""A reader copies and pastes: every Python block of README and pages runs alone, and every shell line of README.

Shell lines that train or evaluate get a few more words at their end (a later word wins), so that one update is made
instead of forty. ``make newcomer`` runs them as they stand.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pictures import tuned
from scripts.newcomer import SERVER, SHORT, lines_of
from skillc_gym.adapters import ChatEnv
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import MethodRow, Regime, read_record, regimes_of
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import expert_reply
from trainers.recipes import RECOMMENDED

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Those of the adapters run in the adapters' own tests: each needs a library that excludes the others."""
BLOCKS = {
    f"{page.stem}-{number}": block
    for page in PAGES
    for number, block in enumerate(line.text for line in lines_of(page.read_text("utf-8")) if line.python)
}
SAYS = {
    "README-0": "with [True, True] without [False, False]\n" * 2,
    "any-model-0": "gap",
    "ten-minutes-0": "with the skill [True, True]\nwithout        [False, False]\n",
    "training-0": "runs/small/policy 1 True\n",
}
"""What a block prints, where the text beside it promises that."""


SLOW = [pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW * name.startswith("training")) for name in BLOCKS])
def test_a_block_runs_alone(name: str, tmp_path: Path) -> None:
    if re.search(r"^from trainers\.(training|evaluation)", BLOCKS[name], re.MULTILINE):
        pytest.importorskip("trl", reason="needs the train extra")
    (tmp_path / "pasted.py").write_text(BLOCKS[name], encoding="utf-8")
    with openai_server(lambda messages: "<think>Anything?</think><action>look</action>") as server:
        named = {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        words, env = [sys.executable, "pasted.py"], {**os.environ, **named}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert SAYS.get(name, "") in done.stdout


def test_the_newcomers_own_skill_is_shown(tmp_path: Path, monkeypatch, capsys):
    """The light commands of the ten minutes' page, after its Python and in the same folder."""
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS["ten-minutes-1"], "ten-minutes.md", "exec"), {"__name__": "newcomer"})
    assert skillc(["skills", "check", "my_skills", "--env", "coins", "--shows", "hard"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    monkeypatch.setattr("builtins.input", lambda _="": ":quit")
    assert skillc(["play", "--env", "coins", "--library", "my_skills", "--skill"]) == 0
    assert "From a room with one exit go back." in capsys.readouterr().out
    env = ChatEnv("coins", library="my_skills")
    assert "Take the coin when you see it." in env.reset(env.task_ids[0], condition=1)[0]["content"]


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
            program, name, *words = shlex.split(line.replace(SERVER, server.base_url))
            assert program == "skillc"
            assert skillc([name, *words, *SHORT.get(f"skillc {name}", "").split()]) == 0, line
    assert (tmp_path / "runs/mine/after/report.json").exists()
    assert (tmp_path / "runs/mine/report/index.html").exists()


# Its figures are those of the records --------------------------------------------------------------------------------

TABLE = re.compile(r"^\| \[(.*?)\]\(.*?#(\w+)\), (\d+) .*?seeds \|(.*)\|$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+")


def regime_of(record: str, start: str) -> Regime:
    # The page of GRPO's later setting is the same table, and in the shop that setting ends lower.
    if record.startswith("main_") and record != "main_shop":
        return tuned(record.removesuffix("_grpo"))
    found = regimes_of([read_record(ROOT / "benchmarks/records" / f"{record}.json")])
    return next(regime for regime in found if ("easi" in start) == (regime.start == "easy"))


def won_in(regime: Regime, *, trained: bool) -> list[int]:
    """Guarded imitation's and GRPO's success without the skill in the types of training, or in the others."""
    types = {"pick_and_place_simple", "pick_clean_then_place_in_recep", "pick_heat_then_place_in_recep"}
    rows = (regime.row(RECOMMENDED), regime.rows[0])
    found = (
        [each.won_without for cell in row.cells for each in cell.outcomes if (each.task_type in types) == trained]
        for row in rows
    )
    return [round(100 * sum(won) / len(won)) for won in found]


def percent(row: MethodRow) -> int:
    return round(100 * row.without.mean)


def test_the_table_of_results_is_the_records():
    rows = TABLE.findall(README)
    assert len(rows) == 4
    for start, record, seeds, cells in rows:
        regime = regime_of(record, start)
        own, pair = (regime.row(name) for name in (RECOMMENDED, "contrastive_relabelling"))
        difference = own.against.difference
        low, high = (round(100 * end) for end in difference.interval or ())
        wanted = [round(100 * regime.before.without), percent(regime.rows[0]), percent(own)]
        wanted += [round(100 * difference.mean), low, high, percent(pair)]
        assert list(map(int, NUMBER.findall(cells))) == wanted, record
        assert int(seeds) == len(own.seeds)
        said = {"better": [], "equivalent": ["equivalent"]}.get(own.against.verdict, ["not significant"])
        assert [each for each in ("equivalent", "not significant") if each in cells] == said, record


def test_the_findings_are_the_records():
    houses, games, shop = (regime_of(name, "") for name in ("main_houses", "main_games", "main_shop"))
    easy, long = regime_of("main_houses_easy", "easier"), regime_of("long_houses", "")
    rivals = [row for row in long.rows if row.method != RECOMMENDED] + [*regime_of("long_houses_grpo", "").rows]
    assert len(rivals) == 4
    long_ends = percent(long.row(RECOMMENDED)), max(map(percent, rivals))
    house_ends, game_ends, easy_ends = (
        (percent(regime.row(RECOMMENDED)), percent(regime.rows[0])) for regime in (houses, games, easy)
    )
    hotter = tuned("main_shop")
    shop_leads = [round(100 * (each.row(RECOMMENDED).area.mean - each.rows[0].area.mean)) for each in (shop, hotter)]
    shop_ends = sorted(map(percent, (hotter.rows[0], shop.rows[0], shop.row(RECOMMENDED))))
    long_games = regime_of("long_games", "")
    long_game_ends = sorted(map(percent, long_games.rows))
    assert long_game_ends[0] == percent(long_games.row(RECOMMENDED))
    told = regime_of("told_houses", "")
    told_ends = [percent(told.row(name)) for name in (RECOMMENDED, "grpo", "grpo.lr0.0003.t1.5")]
    trained, others = (won_in(regime_of("other_types", ""), trained=trained) for trained in (True, False))
    for said, figures in {
        r"In houses it ends at (\d+) % to GRPO's (\d+)": house_ends,
        r"On the games (\d+) to (\d+), mostly in one type, is \[borderline": game_ends,
        r"In the shop both end at (\d+) to (\d+)": (shop_ends[0], shop_ends[-1]),
        r"from the \*easy\* one (\d+) % to (\d+)": easy_ends,
        r"only in the skill\]\(\S+\), (\d+) % to GRPO's (\d+) and (\d+)": told_ends,
        r"In the shop its lead over training is (\d+) points or, .*? \[borderline\]\(\S+\) (\d+)": shop_leads,
        r"\[ends at (\d+), GRPO at (\d+) to (\d+)\]": long_game_ends,
        r"half as long, untuned: (\d+) %, GRPO (\d+)": trained,
        r"of the others \[(\d+) %, GRPO (\d+)\]": others,
        r"with four times the tokens at (\d+),.* best of four settings at (\d+)": long_ends,
    }.items():
        assert [*map(int, re.search(said, README).groups())] == [*figures], said
