"""What pages show of records, and the pictures that are drawn from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest

from benchmarks import pages
from benchmarks.measuring import RECORDS
from benchmarks.pages import filled_in, study_tables
from benchmarks.pictures import DRAWN, main, parameters_of
from skillc_gym.errors import ConfigError
from skillc_lab.studies import read_record, regimes_of
from tests.benchmarks.study_records import written


def rows(table: str) -> dict[str, list[str]]:
    """Cells of a Markdown table by their row's name."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    return {line[0].strip("`"): line[1:] for line in lines}


def asking(*templates: str) -> str:
    """A page whose tables are not those of the records."""
    return "".join(f"# T\n\n<!--\n{template}\n-->\nold\n<!--/-->\n" for template in templates)


def test_a_page_is_filled_in_and_what_no_record_has_is_an_error():
    page = asking('{% set found = record("parity_alfworld") %}\n| {{ found.answers|f(",") }} |', "{{ found.games }}")
    made = filled_in(page)
    games = json.loads((RECORDS / "parity_alfworld.json").read_text(encoding="utf-8"))["games"]
    assert made.count("# T\n") == 2
    assert "-->\n\n| 383,378 |\n\n<!--/-->" in made
    assert f"-->\n\n{games}\n\n<!--/-->" in made
    assert filled_in(made) == made
    with pytest.raises(jinja2.UndefinedError):
        filled_in(asking('{{ record("fuzz").nothing }}'))
    with pytest.raises(ConfigError, match="nowhere"):
        filled_in(asking('{{ record("nowhere") }}'))


def test_stale_pages_are_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "page.md"
    page.write_text(asking('{{ record("parity_alfworld").answers }}'), encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path)]) == 1
    assert "stale" in capsys.readouterr().out
    assert "old" in page.read_text(encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path), "--write"]) == 0
    assert "383378" in page.read_text(encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path)]) == 0


def test_a_study_shows_its_table_and_success_by_seed():
    text = study_tables("shop_hard")
    by_seed = rows(text.partition("| without / with, by seed")[2])
    assert by_seed["grpo"] == ["62.5 / 62.5", "54.9 / 53.5", "0.7 / 85.4"]


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Records of a test, by name, in the place of the project's."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(pages, "record", found.__getitem__)
    return found


def test_agents_stand_by_world_with_their_last_try(own: dict[str, Any]):
    again = {"trials": 3, "with": [{"solved": 3}, {"solved": 4}], "without": [{"solved": 1}, {"solved": 2}]}

    def evaluation(agent: str, env: str, trials: Any = None) -> dict[str, Any]:
        report = {"agent": agent, "overall": {"n": 4, "sr_with": 0.75, "sr_without": 0.25}}
        return {"env": env, "trials": trials, "report": report}

    own["x"] = {
        "evaluations": [
            evaluation("react", "alfworld"),
            evaluation("reflexion", "alfworld", again),
            evaluation("react", "webshop"),
        ]
    }
    found = rows(pages.agents_table("x"))
    assert found["solved with the skill / without"] == ["react", "reflexion, 3 tries"]
    assert found["4 tasks (`alfworld`)"] == ["3 / 1", "4 / 2"]
    assert found["4 tasks (`webshop`)"] == ["3 / 1", "not run"]


def test_costs_say_where_rollouts_differ(own: dict[str, Any]):
    row = {"method": "skillc", "seconds": 2.0, "prompt_tokens": 1234, "generated_tokens": 567, "to_grpo": 1.1}
    row |= {"to_grpo_on_its_rollouts": 1.02, "same_rollouts": True}
    own["x"] = {"methods": [row]}
    assert rows(pages.cost_table("x"))["skillc"] == ["1,234", "567", "2.00", "1.10", "1.02"]
    own["x"] = {"methods": [{**row, "ratios": [1.02, 0.9, 1.1]}]}
    assert rows(pages.cost_table("x"))["skillc"][-1] == "1.02 [0.90, 1.10]"
    own["x"] = {"methods": [{**row, "same_rollouts": False}]}
    assert rows(pages.cost_table("x"))["skillc"][-1] == "(rollouts differ)"


def test_methods_with_one_changed_option_stand_in_the_order_of_its_values(tmp_path: Path):
    methods = ("skillc", "skillc:omega=0.8", "skillc:omega=0.2", "skillc:omega=0.1,correction_mask=success", "grpo")
    (regime,) = regimes_of([read_record(written(tmp_path, methods=methods))])
    ((option, points),) = parameters_of(regime).items()
    assert (option, [value for value, _ in points]) == ("omega", [0.2, 0.4, 0.8])
    assert [row.method for _, row in points] == ["skillc:omega=0.2", "skillc", "skillc:omega=0.8"]


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_pictures_are_drawn_from_their_records(tmp_path: Path, name: str):
    pytest.importorskip("matplotlib", reason="needs the train extra")
    assert main([name, "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_a_regime_map_of_any_records_is_drawn(tmp_path: Path, capsys):
    pytest.importorskip("matplotlib", reason="needs the train extra")
    assert main(["--records", str(written(tmp_path)), "--out", str(tmp_path / "map.png")]) == 0
    assert {path.name for path in tmp_path.glob("*.png")} == {"map.png", "map_curves.png"}
    assert main(["--records", str(tmp_path / "none.json"), "--out", str(tmp_path / "map.png")]) == 2
    assert "none.json" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_whole(path: Path):
    assert json.loads(path.read_text(encoding="utf-8"))
