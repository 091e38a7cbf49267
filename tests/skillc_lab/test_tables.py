"""Tables as data, and the records that they are made from."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.commands.evaluate import trial_table, usage_table
from skillc_lab.tables import Cell, Table, points, rate, read_json, record_names, write_record

TABLE = Table(["name", "tasks"], [["a|b", 1200], [Cell("<7>", "[6, 8]"), None]], numbers=(1,), strong=(1,))


def test_a_table_is_markdown_html_or_plain_text():
    assert TABLE.markdown() == "| name | tasks |\n|---|---:|\n| a\\|b | 1,200 |\n| <7> [6, 8] |  |"
    assert TABLE.text().splitlines() == ["name        tasks", "a|b         1,200", "<7> [6, 8]"]
    page = TABLE.html()
    assert "<table><tr><th>name</th><th>tasks</th></tr>" in page
    assert '<tr class="all"><td>&lt;7&gt;<br><small>[6, 8]</small></td><td></td></tr>' in page
    assert '<table class="words">' in Table(["a"], words=True).html()


def test_an_evaluation_tells_trials_and_what_was_used():
    rates = {True: [0.5, 1.0], False: [0.0, 0.25]}
    assert trial_table(SimpleNamespace(success=rates.get)).splitlines() == [
        "solved within    with skills    without",
        "1 try                   50.0        0.0",
        "2 tries                100.0       25.0",
    ]
    used = {"episodes": 0, "requests": 7, "prompt_tokens": 1_234_567, "completion_tokens": 89, "cost": None}
    assert usage_table({"without": {**used, "episodes": 48}, "preparing": {**used, "cost": 1.5}}).splitlines() == [
        "skill      episodes  replies   tokens read     written        cost",
        "without          48        7     1,234,567          89           -",
        "preparing         0        7     1,234,567          89      1.5000",
    ]


def test_figures_are_shown_with_their_intervals():
    assert [rate(0.569, (0.5, 0.64)), rate(0.02, (-0.1, 1.2)), rate(1.0)] == ["56.9 [50, 64]", "2.0 [0, 100]", "100.0"]
    assert [points(-0.007, (-0.061, 0.047), 1), points(0.05, None)] == ["-0.7 [-6.1, +4.7]", "+5.0"]


def test_records_keep_their_revision_and_come_back(tmp_path: Path):
    write_record(tmp_path / "new/a.json", {"found": [1]})
    found = read_json(tmp_path / "new/a.json")
    assert found["found"] == [1]
    assert "git" in found
    write_record(tmp_path / "new/a.json", {}, {"revision": "that of the beginning", "changed": False})
    assert read_json(tmp_path / "new/a.json")["git"]["revision"] == "that of the beginning"
    assert record_names([tmp_path / "a.json", Path("here/b.json")]) == ["a.json", "here/b.json"]


def test_what_is_no_record_is_named(tmp_path: Path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"a\.json is no record"):
        read_json(tmp_path / "a.json")
