"""What pages show of records, and the pictures that are drawn from them."""

from __future__ import annotations

import json
from pathlib import Path

import jinja2
import pytest

from benchmarks import pages
from benchmarks.measuring import RECORDS
from benchmarks.pages import filled_in
from benchmarks.pictures import DRAWN, main, parameters_of
from skillc_gym.errors import ConfigError
from skillc_lab.studies import read_record, regimes_of
from tests.skillc_lab.studies_of import written


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


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_whole(path: Path):
    assert json.loads(path.read_text(encoding="utf-8"))
