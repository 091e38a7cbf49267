"""What recorded episodes were shown, and how it stands to a library."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from skill_library import Skill, SkillLibrary
from skillc_gym.episodes import Episode, write_jsonl
from skillc_lab.skills.shown import (
    ShownText,
    check_shown,
    episode_files,
    read_episodes,
    shown_table,
    shown_text,
    shown_texts,
    standing,
)
from tests.trainers.rollouts_of import episode

LIBRARY = SkillLibrary(
    "mine",
    (Skill("general", "d", ("*",), "Look."), Skill("heat", "d", ("heat",), "Heat it.\nStay.\nKey step: heat.")),
)
FULL = LIBRARY.for_task("heat")
MINIMAL = LIBRARY.graded("minimal").for_task("heat")


def with_skill(text: str = FULL.text, skill: str = "general+heat", grade: str = "full", kind: str = "heat") -> Episode:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    played = episode(condition=1, kind=kind, skill=skill, text=text)
    return replace(played, skill_sha256=digest, skill_grade=grade)


def without(kind: str = "heat") -> Episode:
    return replace(episode(kind=kind), skill_grade="none")


def shown(*episodes: Episode) -> ShownText:
    (one,) = shown_texts(episodes)
    return one


def test_episodes_are_counted_by_type_condition_and_text():
    played = [without(), *[with_skill()] * 3, with_skill(MINIMAL.text, grade="minimal"), without("cool"), without()]
    found = shown_texts(iter(played))
    assert [(each.task_type, each.condition, each.grade, each.episodes) for each in found] == [
        ("cool", 0, "none", 1),
        ("heat", 1, "full", 3),
        ("heat", 1, "minimal", 1),
        ("heat", 0, "none", 2),
    ]
    assert (found[1].text, found[1].sha256) == (FULL.text, FULL.sha256)
    assert (found[3].text, found[3].sha256) == ("", "")
    assert shown_texts([]) == []


@pytest.mark.parametrize(
    ("played", "expected"),
    [
        (with_skill(), "same"),
        (with_skill(MINIMAL.text, grade="minimal"), "same"),
        (with_skill(MINIMAL.text, grade=""), "same"),
        (with_skill(skill="before it was renamed"), "same"),
        (with_skill(f"{FULL.text}\n\nA note.", skill="general+heat+expel"), "same and more"),
        (with_skill(MINIMAL.text), "changed"),
        (with_skill("Look!"), "changed"),
        (with_skill("Look!\n\nA note.", skill="general+heat+expel"), "changed"),
        (with_skill(f"{FULL.text} More in the same line."), "changed"),
        (with_skill("Look!", skill="general+heater"), "not in it"),
        (with_skill(kind="cool"), "not in it"),
        (with_skill("A note.", skill="expel", grade="none"), "not in it"),
        (without(), None),
    ],
)
def test_a_text_is_held_against_a_library(played, expected):
    assert standing(shown(played), LIBRARY) == expected


def test_departures_from_the_library_are_found_where_the_skill_was_on():
    note = replace(with_skill("A note.", skill="expel"), condition=0)
    played = shown_texts([with_skill(), with_skill("Look!"), with_skill(kind="cool"), note, without()])
    found = check_shown(played, LIBRARY)
    assert [(finding.skill, finding.serious) for finding in found] == [
        ("general+heat, shown for cool", True),
        ("general+heat, shown for heat", True),
    ]
    assert "no such skill" in found[0].message
    assert "another text" in found[1].message
    assert check_shown(played) == []


def test_a_record_whose_hash_is_not_its_texts_is_found():
    altered = replace(with_skill(), skill_text="Look.\n\nHeat it twice.")
    (found,) = check_shown([shown(altered)])
    assert f"the recorded hash {FULL.sha256[:12]} is not that of the recorded text" in found.message
    assert found.serious
    assert check_shown([shown(replace(with_skill(), skill_sha256=""))]) == []


def test_a_prompt_that_does_not_hold_the_text_is_found():
    held = [{"role": "system", "content": f"You are an agent.\n\n{FULL.text}"}, {"role": "user", "content": "Go."}]
    played = [replace(with_skill(), messages=messages) for messages in (held, held[1:], [])]
    (found,) = check_shown([shown(*played)])
    assert found.message == "1 of 3 episodes kept a first prompt that does not hold the text"
    assert check_shown([shown(played[0], played[2])]) == []


def test_a_table_has_a_line_per_text():
    table = shown_table(shown_texts([with_skill(), without()]), LIBRARY, count=len).split("\n")
    assert " ".join(table[0].split()) == "type condition skill grade episodes words tokens sha256 mine today"
    assert table[1].split() == f"heat with general+heat full 1 7 {len(FULL.text)} {FULL.sha256[:12]} same".split()
    assert table[2].split() == ["heat", "without", "-", "none", "1", "-", "-", "-", "-"]


def test_what_a_model_wrote_steers_no_terminal():
    noted = with_skill("\x1b[2J\udc80\u202eNote.\n", skill="a\x1b", kind="heat\x1b")
    (found,) = check_shown([shown(noted)], LIBRARY)
    texts = (shown_text(shown(noted)), shown_table([shown(noted)]), found.skill)
    for text in texts:
        assert "\x1b" not in text
        assert b"\xef\xbf\xbd" in text.encode("utf-8")
    assert "Note.\n" in texts[0]


def test_a_folder_gives_all_that_runs_and_evaluations_recorded_in_it(tmp_path, monkeypatch):
    kept = ("after/transcripts.jsonl", "after/transcripts-trial-2.jsonl", "transcripts/train-000010.jsonl")
    for name in kept:
        write_jsonl(tmp_path / name, [without()])
    for name in ("metrics.jsonl", "after/journal.jsonl", "notes.jsonl"):
        (tmp_path / name).write_text('{"not": "an episode"}\n')
    files = episode_files(tmp_path)
    assert sorted(str(file.relative_to(tmp_path)) for file in files) == sorted(kept)
    assert len(list(read_episodes(files))) == 3
    monkeypatch.chdir(tmp_path / "transcripts")
    assert [file.name for file in episode_files(Path())] == ["train-000010.jsonl"]
    assert episode_files(tmp_path / "metrics.jsonl") == [tmp_path / "metrics.jsonl"]
    assert episode_files(tmp_path / "nowhere") == []


def test_the_episodes_of_a_skills_test_count_once(tmp_path):
    case = "eval-heat/with_skill/outputs/transcripts.jsonl"
    for name in ("transcripts.jsonl", case):
        write_jsonl(tmp_path / name, [without()])
    assert episode_files(tmp_path) == [tmp_path / "transcripts.jsonl"]
    assert episode_files(tmp_path / "eval-heat") == [tmp_path / case]
