"""The command that makes catalogues: files and folder are the same catalogue, clear refusals."""

from __future__ import annotations

import json

import pytest

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.errors import MissingDataError
from skillc_lab.cli.main import main as skillc


def test_json_and_folder_are_the_same_catalogue(tmp_path, capsys):
    assert skillc(["tools", "make-catalog", "--out", str(tmp_path / "files"), "--generate", "60", "--json"]) == 0
    for file in (tmp_path / "files").iterdir():
        json.loads(file.read_text())
    assert (
        skillc(["tools", "make-catalog", "--out", str(tmp_path / "a"), "--source", str(tmp_path / "files"), "--quiet"])
        == 0
    )
    assert skillc(["tools", "make-catalog", "--out", str(tmp_path / "b"), "--generate", "60", "--quiet"]) == 0
    first, second = open_catalog(tmp_path / "a"), open_catalog(tmp_path / "b")
    assert first.sha256 == second.sha256
    assert first.human_instructions() == second.human_instructions()
    assert "60 products" in capsys.readouterr().out


def test_the_number_of_rows_can_be_cut(tmp_path):
    assert skillc(["tools", "make-catalog", "--out", str(tmp_path / "files"), "--generate", "30", "--json"]) == 0
    words = f"tools make-catalog --out {tmp_path / 'a'} --source {tmp_path / 'files'} --num-products 10 --quiet"
    assert skillc(words.split()) == 0
    assert len(open_catalog(tmp_path / "a")) == 10
    with pytest.raises(MissingDataError):
        open_catalog(tmp_path / "b")


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
    assert skillc(["tools", "make-catalog", "--out", "out", *words]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
