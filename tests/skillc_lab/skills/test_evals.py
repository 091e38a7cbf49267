"""The test cases that a skill brings: those of the page on evaluation, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import SkillFileError
from skillc_lab.skills.evals import SkillEval, read_evals

ONE = {"id": 1, "prompt": "Heat an egg.", "expected_output": "A hot egg.", "task_type": "heat", "assertions": ["Hot"]}


def written(folder: Path, content: str) -> Path:
    (folder / "evals").mkdir(parents=True)
    (folder / "evals" / "evals.json").write_text(content)
    return folder


def test_the_evals_of_a_skill_and_of_a_library_are_read(tmp_path: Path) -> None:
    values = {"skill_name": "heat", "evals": [ONE, {"id": "b", "task_id": "test/1", "files": []}]}
    skill = written(tmp_path / "heat", json.dumps(values))
    expected = [SkillEval("heat-1", "", "heat", "A hot egg.", ("Hot",)), SkillEval("heat-b", "test/1")]
    assert read_evals(skill) == read_evals(tmp_path) == expected
    assert read_evals(tmp_path / "nowhere") == []


def evals(**changes: Any) -> str:
    return json.dumps({"evals": [{**ONE, **changes}]})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "JSON|Expecting"),
        ("[]", "JSON object"),
        ("[" * 100_000, "nested too deep"),
        ("{}", 'list under "evals", got NoneType'),
        ('{"evals": ["x"]}', "eval 1 is no object but str"),
        (json.dumps({"evals": [ONE, ONE]}), "eval 2 has the id of another"),
        (json.dumps({"evals": [ONE] * 1_001}), "at most 1,000"),
        (evals(id="../../etc"), "letters, digits"),
        (evals(id="a" * 99), "longer than 64"),
        (evals(task_type=["heat"]), "task_type is a text; got list"),
        (evals(assertions="Hot"), "list of texts"),
        (evals(task_type=""), "--per-type 8"),
        (evals(task_id="test/1"), "either a task"),
        (" " * 300_000, "longer than"),
    ],
)
def test_evals_that_are_none_are_refused_by_file(tmp_path: Path, content: str, fault: str) -> None:
    folder = written(tmp_path / "heat", content)
    with pytest.raises(SkillFileError, match=fault) as caught:
        read_evals(folder)
    assert str(folder / "evals" / "evals.json") in str(caught.value)


def test_links_are_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    secret = written(tmp_path / "secret", evals())
    for target in (secret / "evals" / "evals.json", tmp_path / "nowhere"):
        folder = tmp_path / f"to-{target.name}" / "heat"
        (folder / "evals").mkdir(parents=True)
        (folder / "evals" / "evals.json").symlink_to(target)
        with pytest.raises(SkillFileError, match="leads out of"):
            read_evals(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*ONE, "evals", "task_id"]) | st.text(), inner),
)


@given(values=st.fixed_dictionaries({"evals": JSON}))
def test_whatever_a_file_holds_is_read_or_refused(values: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = written(tmp_path_factory.mktemp("evals") / "heat", json.dumps(values))
    try:
        found = read_evals(folder)
    except SkillFileError:
        return
    assert all(bool(each.task_id) != bool(each.task_type) for each in found)
