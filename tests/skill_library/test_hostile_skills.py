"""Skills that strangers wrote: whatever they hold costs little and is refused in words."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, SkillFileError, SkillLibrary, load_library, loader, read_bounded
from skill_library.errors import UnreadableFileError, brief
from skill_library.loader import MAX_FILE_BYTES, MAX_SKILLS, read_skill
from skill_library.skill import MAX_CHARACTERS, MAX_TASK_TYPES

FIELDS = "name: a\ndescription: d\ntask_types: [x]\n"
BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in itertools.pairwise("abcdefghi")
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{b}: &{b}\n  <<: [{', '.join([f'*{a}'] * 9)}]\n" for a, b in itertools.pairwise("abcdefghi")
)


def write(folder: Path, front: str, text: str = "t") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_bytes(f"---\n{front}---\n{text}\n".encode("utf-8", "surrogatepass"))
    return file


def refused(file: Path, complaint: str) -> str:
    """Reads a skill that must be refused in a short message that names the file."""
    with pytest.raises(SkillFileError, match=complaint) as caught:
        read_skill(file)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 1000 + len(str(file))
    return str(caught.value)


@pytest.mark.parametrize(
    ("front", "complaint"),
    [
        (BOMB + FIELDS, "anchors or aliases"),
        ("name: a\ndescription: d\ntask_types: &a [*a]\n", "anchors or aliases"),
        (MERGES + FIELDS, "anchors or aliases"),
        ("<<: {<<: {<<: {name: a}}}\n" + FIELDS, "merge key"),
        ("x: " + "[" * 5000 + "\n" + FIELDS, "opening brackets"),
        ("x: " + "[" * 9 + "]" * 9 + "\n" + FIELDS, "nested deeper"),
        ("".join(" " * n + "- \n" for n in range(100)) + FIELDS, "not YAML|nested deeper"),
        ("x: '" + "y" * 20_000 + "'\n" + FIELDS, "longer than 16,384"),
        ("x: !!python/object/apply:os.system [ls]\n" + FIELDS, "YAML's tags"),
        ("name: a\nname: b\ndescription: d\ntask_types: [x]\n", "field 'name' twice"),
        ("name: ../../etc\ndescription: d\ntask_types: [x]\n", "no name for a skill"),
        ("name: a..b\ndescription: d\ntask_types: [x]\n", "no name for a skill"),
        ("name: h\u0435at\ndescription: d\ntask_types: [x]\n", "no name for a skill"),  # a Cyrillic e
        ("name: " + "a" * 65 + "\ndescription: d\ntask_types: [x]\n", "no name for a skill"),
        ('name: "a\\0b"\ndescription: d\ntask_types: [x]\n', "no name for a skill"),
        ("name: a\ndescription: " + "d" * 5000 + "\ntask_types: [x]\n", "description of 'a' is longer"),
        ('name: a\ndescription: d\ntask_types: ["a\\nb"]\n', "is no task type"),
        ("name: a\ndescription: d\ntask_types: ['*', x]\n", "beside"),
        ("name: a\ndescription: d\nmetadata: {library_name: ../../etc}\n", "no name for a skill"),
        ("name: a\ndescription: d\nmetadata: {task_types: '*, heat'}\n", "beside"),
        ("name: a\ndescription: d\nmetadata: {minimal: " + "x" * 99 + "}\n", "longer than its full one"),
        ("name: a\ndescription: d\ntask_types: [[x]]\n", "must be a list of strings"),
        ("name: a\ndescription: d\ntask_types: {x: y}\n", "got a mapping of 1"),
        ("name: 2001-99-99\ndescription: d\ntask_types: [x]\n", r"timestamp; put it in quotes"),
        ("name: 1" + "0" * 5000 + "\ndescription: d\ntask_types: [x]\n", "int; put it in quotes"),
        ("name: 0x\ndescription: .inf\ntask_types: [x]\n", "description must be"),
        ("name: =\ndescription: d\ntask_types: [x]\n", "YAML value; put it in quotes"),
        ("? [a, b]\n: c\nname: ~\ndescription: d\ntask_types: [x]\n", "name must be a non-empty string"),
    ],
)
def test_hostile_front_matter_is_refused_at_once(tmp_path: Path, front: str, complaint: str) -> None:
    refused(write(tmp_path, front), complaint)


@pytest.mark.parametrize("scalar", ["2001-99-99", "0o9", "1_0:99", ".nan", "=", "0b", "99999-01-01", "~", "12e999999"])
def test_odd_scalars_in_fields_that_nobody_reads_are_no_matter(tmp_path: Path, scalar: str) -> None:
    assert read_skill(write(tmp_path, f"x: {scalar}\n{scalar}: y\n? [a]\n: b\n{FIELDS}")).name == "a"


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x07", "\x7f"])
def test_control_characters_in_the_text_are_refused(tmp_path: Path, character: str) -> None:
    assert f"U+{ord(character):04X}" in refused(write(tmp_path, FIELDS, f"a{character}b"), "remove it")


def test_a_skill_made_in_memory_is_held_to_the_same() -> None:
    with pytest.raises(SkillFileError, match=r"U\+D800"):
        Skill("a", "d", ("x",), "half a pair: \ud800")
    with pytest.raises(SkillFileError, match="no name"):
        Skill("../a", "d", ("x",), "t")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_folders_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "l" / "pipe").mkdir(parents=True)
    os.mkfifo(tmp_path / "l" / "pipe" / "SKILL.md")
    with pytest.raises(SkillFileError, match="not a regular file"):
        load_library(tmp_path / "l")
    (tmp_path / "m" / "folder" / "SKILL.md").mkdir(parents=True)
    with pytest.raises(SkillFileError, match="not a regular file"):
        load_library(tmp_path / "m")
    (tmp_path / "n" / "zero").mkdir(parents=True)
    (tmp_path / "n" / "zero" / "SKILL.md").symlink_to("/dev/zero")
    with pytest.raises(SkillFileError, match="leads out of"):
        load_library(tmp_path / "n")
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read_bounded(Path("/dev/zero"), 10)


def test_a_file_of_any_size_is_refused_without_being_read(tmp_path: Path) -> None:
    file = write(tmp_path / "big", FIELDS)
    with file.open("ab") as stream:
        stream.truncate(100 * 2**20)  # sparse: costs no disk
    refused(file, f"longer than the {MAX_FILE_BYTES:,} bytes")


def test_links_may_not_lead_out_of_the_library(tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere", FIELDS)
    library = tmp_path / "library"
    write(library / "own", FIELDS.replace("name: a", "name: own"))
    (library / "linked").symlink_to(secret.parent)
    with pytest.raises(SkillFileError, match="leads out of"):
        load_library(library)
    (library / "linked").unlink()
    (library / "linked").mkdir()
    (library / "linked" / "SKILL.md").symlink_to(secret)
    with pytest.raises(SkillFileError, match="leads out of"):
        load_library(library)


def test_links_within_a_library_and_to_a_library_are_fine(tmp_path: Path) -> None:
    write(tmp_path / "library" / "own", FIELDS)
    (tmp_path / "name").symlink_to(tmp_path / "library")
    assert load_library(tmp_path / "name").name == "library"


def test_an_installed_packages_library_may_consist_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write(tmp_path / "store", FIELDS)
    (tmp_path / "package" / "a").mkdir(parents=True)
    (tmp_path / "package" / "a" / "SKILL.md").symlink_to(store)
    found = SimpleNamespace(name="theirs", load=lambda: str(tmp_path / "package"))
    monkeypatch.setattr(loader, "entry_points", lambda group: [found])
    assert load_library("theirs").name == "package"


def test_links_that_form_a_ring_and_endless_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for name in (tmp_path / "a", "x" * 5000, "a\0b"):
        with pytest.raises(SkillFileError) as caught:
            load_library(name)
        assert len(str(caught.value)) < 1000


def test_a_library_is_bounded_as_a_whole() -> None:
    text = "t" * (MAX_CHARACTERS // 4)
    with pytest.raises(SkillFileError, match="characters of text"):
        SkillLibrary("l", tuple(Skill(f"s{n}", "d", ("x",), text) for n in range(5)))
    kinds = tuple(f"k{n}" for n in range(MAX_TASK_TYPES + 1))
    with pytest.raises(SkillFileError, match="task types"):
        SkillLibrary("l", (Skill("s", "d", kinds, "t"),))


def test_a_library_of_too_many_folders_is_refused(tmp_path: Path) -> None:
    content = write(tmp_path / "s0", FIELDS)
    for number in range(1, MAX_SKILLS + 1):
        (tmp_path / f"s{number}").mkdir()
        os.link(content, tmp_path / f"s{number}" / "SKILL.md")
    with pytest.raises(SkillFileError, match="at most 1,000"):
        load_library(tmp_path)


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_messages_quote_is_short(value: object) -> None:
    assert len(brief(value)) < 5000
    assert len(brief("x" * 10**6)) <= 200
