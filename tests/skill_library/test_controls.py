"""Control libraries: texts of the same shape that should not help."""

from collections import Counter
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, SkillFileError, SkillLibrary, load_library
from skill_library.controls import CONTROLS, FILLER, control_library

ALFWORLD = load_library("alfworld")
TEXTS = st.text(st.characters(categories=("L", "N", "P", "Zs"), include_characters="\n"), min_size=1, max_size=80)


def line_lengths(text):
    return [len(line.split()) for line in text.split("\n")]


def test_each_type_is_shown_anothers_skill_under_its_own_name():
    wrong = control_library(ALFWORLD, "wrong")
    shown = {kind: wrong.for_task(kind).name for kind in ALFWORLD.task_types}
    right = {kind: ALFWORLD.for_task(kind).name for kind in ALFWORLD.task_types}
    assert all(shown[kind] != right[kind] for kind in right)
    assert sorted(shown.values()) == sorted(right.values())
    assert shown["pick_heat_then_place_in_recep"] == "general+pick2"
    assert {wrong.for_task(kind).text for kind in right} == {ALFWORLD.for_task(kind).text for kind in right}


@given(TEXTS)
def test_words_are_shuffled_or_blanked_and_lines_stay_as_long(text):
    library = SkillLibrary("mine", (Skill("one", "", ("a",), text),))
    same = {"shuffled": len(set(text.split())) < 2, "blank": set(text.split()) <= {FILLER}}
    for control in ("shuffled", "blank"):
        with pytest.raises(SkillFileError, match="would show a the very skill") if same[control] else nullcontext():
            control_library(library, control)
    if any(same.values()):
        return
    for control in ("shuffled", "blank"):
        changed = control_library(library, control).for_task("a")
        assert line_lengths(changed.text) == line_lengths(text)
        assert changed.name == f"one.{control}"
    shuffled, blank = (control_library(library, name).for_task("a").text for name in ("shuffled", "blank"))
    assert Counter(shuffled.split()) == Counter(text.split())
    assert set(blank.split()) <= {FILLER}
    assert control_library(library, "shuffled") == control_library(library, "shuffled")


@pytest.mark.parametrize("control", ["shuffled", "blank"])
def test_a_control_is_as_long_as_the_skill_at_every_grade(control):
    own, changed = ALFWORLD.graded("minimal"), control_library(ALFWORLD, control).graded("minimal")
    for kind in ALFWORLD.task_types:
        assert len(changed.for_task(kind).text.split()) == len(own.for_task(kind).text.split())


@pytest.mark.parametrize("other", ["wrong", "general"])
def test_two_controls_hold_at_every_grade(other):
    both, alone = load_library(f"alfworld:blank:{other}"), load_library(f"alfworld:{other}")
    for kind in ALFWORLD.task_types:
        for grade in ("full", "minimal"):
            shown, meant = (library.graded(grade).for_task(kind) for library in (both, alone))
            assert len(shown.text.split()) == len(meant.text.split())
            assert shown.name.replace(".blank", "") == meant.name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("webshop:wrong", "no wrong skill to show shopping"),
        ("webshop:general", "no general skill"),
        ("alfworld:wrng", "No skill library 'alfworld:wrng'"),
    ],
)
def test_what_cannot_be_is_refused(name, fault):
    with pytest.raises(SkillFileError, match=fault):
        load_library(name)
    with pytest.raises(SkillFileError, match="it is one of wrong, shuffled, blank, general"):
        control_library(ALFWORLD, "empty")


def test_a_control_that_shows_the_skill_is_refused_also_at_its_grade():
    alike = SkillLibrary("mine", tuple(Skill(kind, "", (kind,), f"Do this:\n1. {kind}") for kind in "ab"))
    wrong = control_library(alike, "wrong")
    assert wrong.for_task("a").text != alike.for_task("a").text
    with pytest.raises(SkillFileError, match="no wrong skill to show a"):
        wrong.graded("minimal")
    with pytest.raises(SkillFileError, match="general skills alone"):
        control_library(SkillLibrary("mine", (Skill("hints", "", ("*",), "Look first."),)), "general")


@pytest.mark.parametrize("types", [(("a", "b", "c"),), (("a", "b"), ("c",)), (("a",), ("b",)), (("*",),)])
def test_a_type_is_never_shown_its_own_skill_as_the_wrong_one(types):
    skills = tuple(Skill(f"s{number}", "", own, "Do it.") for number, own in enumerate(types))
    with pytest.raises(SkillFileError, match=r"no wrong skill to show (a|any task type)"):
        control_library(SkillLibrary("mine", skills), "wrong")


@pytest.mark.parametrize("control", CONTROLS)
def test_they_are_loaded_by_a_name_behind_the_librarys(control):
    library = load_library(f"alfworld:{control}")
    assert library == control_library(ALFWORLD, control)
    assert library.name == f"alfworld.{control}"
    assert load_library(f"alfworld:{control}") is library
    general = {library.for_task(kind).text for kind in ALFWORLD.task_types} == {ALFWORLD.skills[0].text}
    assert general == (control == "general")
