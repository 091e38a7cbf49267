"""Learning a library from transcripts, looking at libraries, and holding what episodes were shown against them."""

import difflib
import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, SkillLibrary, load_library
from skill_library.errors import SkillFileError
from skill_library.formats import write_library
from skillc_gym.episodes import Episode, write_jsonl
from skillc_gym.errors import ConfigError
from skillc_lab.skills import shown as of_episodes
from skillc_lab.skills.libraries import check_library, diff_libraries, learn_skills, lint_library
from skillc_lab.skills.shown import ShownText, check_shown, episode_files, shown_table, shown_texts
from tests.trainers.toys import episode
from trainers.writers import ModelWriter, NotedWriter, StepWriter

HEAT = ["go to fridge 1", "take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
LOOK = ["go to desk 1", "take book 1 from desk 1", "use desklamp 1"]
PLAYED = [
    *[episode(won=True, actions=HEAT)] * 3,
    *[episode(won=False, actions=[*HEAT[:2], HEAT[3]])] * 3,
    *[episode(won=True, kind="look", actions=LOOK)] * 2,
]


def test_transcripts_become_a_library_that_loads(tmp_path):
    skills = learn_skills(PLAYED, StepWriter(), short_names={"heat": "Heat it"})
    library = load_library(write_library(skills, tmp_path / "own"))
    assert [skill.name for skill in library.skills] == ["general", "heat-it", "look"]
    text = library.for_task("heat").text
    assert "take O from R" in library.skills[0].text
    assert "Key step: heat O with microwave 1" in text
    assert "Mistake to avoid: to leave out: heat O with microwave 1." in text
    assert "3 of them won" in library.skills[1].description
    with pytest.raises(SkillFileError, match="not empty"):
        write_library([], tmp_path / "own")
    assert [skill.name for skill in learn_skills(PLAYED[:6], StepWriter())] == ["heat"]  # one type: nothing general


def test_types_of_any_script_and_of_equal_names_get_folders_of_their_own(tmp_path):
    kinds = ("加热", "冷却", "heat!", "heat?", "general")
    played = [episode(won=True, kind=kind, actions=HEAT) for kind in kinds]
    library = load_library(write_library(learn_skills(played, StepWriter()), tmp_path / "own"))
    assert [skill.name for skill in library.skills] == ["general", "general-2", "heat", "heat-2", "skill", "skill-2"]
    assert all("take O from R" in library.for_task(kind).text for kind in kinds)


def test_a_model_takes_notes_then_writes_skills_mistakes_and_what_is_general():
    rounds = []
    heat = '{"skills": ["Heat, then put."], "mistakes": ["To forget the microwave."]}'
    replies = [[*['{"note": "Heat it before."}'] * 5, "no note"], [heat, '{"skills": ["Use it."]}']]

    def speak(chats):
        rounds.append([chat[1]["content"] for chat in chats])
        return replies[len(rounds) - 1]

    writer = NotedWriter(speak, name="tiny")
    writer.shown = 2
    drafts = writer.write(PLAYED)
    assert [len(questions) for questions in rounds] == [6, 2]
    assert (len(writer.notes), writer.bad_replies) == (5, 2)
    assert "- (success) Heat it before.\n- (success) Heat it before.\n- (failure) Heat it before." in rounds[1][0]
    assert [draft.task_type for draft in drafts] == ["heat", "heat"]
    assert [draft.text for draft in drafts] == ["Heat, then put.", "Mistake to avoid: To forget the microwave."]
    assert "mistakes" in writer.last_fault


def speaking(general):
    """Answers by what is asked: a note, the skills and mistakes of a type, or what is general."""
    replies = {"one note": '{"note": "n"}', "mistakes": '{"skills": ["Do it."], "mistakes": []}', "": general}
    return lambda chats: [next(reply for key, reply in replies.items() if key in chat[1]["content"]) for chat in chats]


def test_rules_add_to_a_writer_unless_it_takes_notes():
    noted = learn_skills(PLAYED, NotedWriter(speaking('{"skills": ["Look around."]}')))
    assert {skill.name: skill.text for skill in noted} == {
        "general": "Look around.",
        "heat": "Do it.",
        "look": "Do it.",
    }
    writer = ModelWriter(lambda chats: ['{"skills": ["Do it."]}' for _ in chats])
    at_once = {skill.name: skill.text for skill in learn_skills(PLAYED, writer)}
    assert "take O from R" in at_once["general"]
    assert at_once["heat"] == "Do it.\n\nMistake to avoid: to leave out: heat O with microwave 1."


UNREAD = r"replies of the writer could not be read \(the last one: .* begins 'Sure!'"


@pytest.mark.parametrize(
    ("writer", "played", "fault"),
    [
        (StepWriter(), PLAYED[3:6], "of which 0 were won"),
        (ModelWriter(lambda chats: ["Sure!" for _ in chats]), PLAYED, UNREAD),
        (NotedWriter(lambda chats: ["Sure!" for _ in chats]), PLAYED, UNREAD),
    ],
    ids=["failures", "model", "noted"],
)
def test_failures_and_unreadable_replies_teach_nothing(writer, played, fault):
    with pytest.raises(ConfigError, match=fault):
        learn_skills(played, writer)


def test_gaps_strangers_and_duplicates_are_found():
    skill = Skill("a", "d", ("heat",), "go there and take it now please")
    library = SkillLibrary("l", (skill, replace(skill, name="b", task_types=("odd",))))
    found = [(finding.skill, finding.serious) for finding in check_library(library, ("heat", "cool"))]
    assert found == [("", True), ("b", True), ("a", False)]
    kinds = ("pick_heat_then_place_in_recep", "pick_and_place_simple")
    said = [finding.message for finding in check_library(library, kinds)]
    assert any("did you mean pick_heat_then_place_in_recep?" in message for message in said)


@given(st.text("ab ", max_size=60), st.text("ab ", max_size=60), st.booleans())
def test_only_what_is_nearly_the_same_is_a_duplicate(one, other, alike):
    texts = [f"say {one} .", f"say {one if alike else other} ."]
    share = difflib.SequenceMatcher(None, *(text.split() for text in texts), autojunk=False).ratio()
    library = SkillLibrary("l", tuple(Skill(name, "d", ("*",), text) for name, text in zip("ab", texts, strict=True)))
    told = [f"says nearly the same as b ({100 * share:.0f} %)"] if share >= 0.9 else []
    assert [flaw.message for flaw in check_library(library)] == told


def test_texts_of_few_words_are_compared_by_how_often_each_is_said():
    texts = {"a": "go " * 1990, "b": "go " * 1991, "c": "go in " * 995}
    library = SkillLibrary("l", tuple(Skill(name, "d", ("*",), text) for name, text in texts.items()))
    assert [flaw.message for flaw in check_library(library)] == ["says nearly the same as b (100 %)"]


def test_what_names_a_single_task_is_found():
    named = Skill("a", "d", ("heat",), "take mug 3 from shelf 12, not b0griuas5h")
    found = lint_library(SkillLibrary("l", (named, Skill("b", "d", ("cool",), "word " * 500))))
    assert "mug 3" in found[0].message
    assert "b0griuas5h" in found[0].message
    assert "500 words" in found[1].message
    text = "Go back to step 3, look at most 5 times, at least 2, in 4 or 5 rooms, not more than 7."
    assert lint_library(SkillLibrary("l", (Skill("a", "d", ("heat",), text),))) == [], "numbers that count"


def test_a_difference_is_shown_line_by_line_in_the_short_text_too():
    old, new = (SkillLibrary(t, (Skill("a", "d", ("heat",), f"one\n{t}", t),)) for t in ("two", "three"))
    changed = [line for line in diff_libraries(old, new) if line[0] in "+-" and line[1] not in "+-"]
    assert changed == ["-minimal: two", "+minimal: three", "-two", "+three"]


# What recorded episodes were shown, and how it stands to a library ----------------------------------------------------


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


@pytest.mark.parametrize(
    ("played", "expected"),
    [
        (with_skill(), "same"),
        (with_skill(MINIMAL.text, grade="minimal"), "same"),
        (with_skill(skill="before it was renamed"), "same"),
        (with_skill(LIBRARY.skills[-1].text, skill="heat"), "its own alone"),
        (with_skill(f"{FULL.text}\n\nA note.", skill="general+heat+expel"), "same and more"),
        (with_skill(MINIMAL.text), "changed"),
        (with_skill("Look!"), "changed"),
        (with_skill(f"{FULL.text} More in the same line."), "changed"),
        (with_skill(kind="cool"), "not in it"),
        (with_skill("A note.", skill="expel", grade="none"), "not in it"),
        (without(), None),
    ],
)
def test_a_text_is_held_against_a_library(played, expected):
    assert of_episodes.standing(shown(played), LIBRARY) == expected


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


def test_what_a_model_wrote_steers_no_terminal():
    noted = with_skill("\x1b[2J\udc80\u202eNote.\n", skill="a\x1b", kind="heat\x1b")
    (found,) = check_shown([shown(noted)], LIBRARY)
    texts = (of_episodes.shown_text(shown(noted)), shown_table([shown(noted)]), found.skill)
    for text in texts:
        assert "\x1b" not in text
        assert b"\xef\xbf\xbd" in text.encode("utf-8")
    assert "Note.\n" in texts[0]


def test_a_folder_gives_all_that_runs_and_evaluations_recorded_in_it(tmp_path):
    kept = ("after/transcripts.jsonl", "after/transcripts-trial-2.jsonl", "transcripts/train-000010.jsonl")
    for name in kept:
        write_jsonl(tmp_path / name, [without()])
    for name in ("metrics.jsonl", "after/journal.jsonl", "notes.jsonl"):
        (tmp_path / name).write_text('{"not": "an episode"}\n')
    files = episode_files(tmp_path)
    assert sorted(str(file.relative_to(tmp_path)) for file in files) == sorted(kept)
    assert len(list(of_episodes.read_episodes(files))) == 3
    assert episode_files(tmp_path / "metrics.jsonl") == [tmp_path / "metrics.jsonl"]
    assert episode_files(tmp_path / "nowhere") == []


def test_the_episodes_of_a_skills_test_count_once(tmp_path):
    whole, case = tmp_path / "transcripts.jsonl", tmp_path / "eval-heat/with_skill/outputs/transcripts.jsonl"
    for path in (whole, case):
        write_jsonl(path, [without()])
    assert episode_files(tmp_path) == [whole]
    assert episode_files(tmp_path / "eval-heat") == [case]
