"""Learning a library from transcripts, and looking at libraries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skill_library import Skill, SkillLibrary, load_library
from skill_library.errors import SkillFileError
from skill_library.formats import write_library
from skillc_gym.errors import ConfigError
from skillc_lab.skills.libraries import check_library, diff_libraries, learn_skills, lint_library
from tests.trainers.rollouts_of import episode
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


def test_nothing_is_learnt_from_failures():
    with pytest.raises(ConfigError, match="of which 0 were won"):
        learn_skills(PLAYED[3:6], StepWriter())


def test_a_model_takes_notes_then_writes_skills_mistakes_and_what_is_general(tmp_path):
    rounds = []

    def speak(chats):
        rounds.append([chat[1]["content"] for chat in chats])
        if len(rounds) == 1:
            return [*['{"note": "Heat it before."}'] * (len(chats) - 1), "no note"]
        if len(rounds) == 2:
            return [
                '{"skills": ["Heat, then put."], "mistakes": ["To forget the microwave."]}',
                '{"skills": ["Use it."]}',
            ]
        return ['{"skills": ["Look around."]}']

    writer = NotedWriter(speak, name="tiny", shown=2)
    drafts = writer.write(PLAYED)
    assert [len(questions) for questions in rounds] == [6, 2]
    assert (len(writer.notes), writer.bad_replies) == (5, 2)
    assert "- (success) Heat it before.\n- (success) Heat it before.\n- (failure) Heat it before." in rounds[1][0]
    assert [(draft.task_type, draft.text) for draft in drafts] == [
        ("heat", "Heat, then put."),
        ("heat", "Mistake to avoid: To forget the microwave."),
    ]
    assert "mistakes" in writer.last_fault


def speaking(general):
    """Answers by what is asked: a note, the skills and mistakes of a type, or what is general."""
    replies = {"one note": '{"note": "n"}', "mistakes": '{"skills": ["Do it."], "mistakes": []}', "": general}
    return lambda chats: [next(reply for key, reply in replies.items() if key in chat[1]["content"]) for chat in chats]


def test_what_is_general_is_the_writers_where_it_says_so(tmp_path):
    writer = NotedWriter(speaking('{"skills": ["Look around."]}'))
    library = load_library(write_library(learn_skills(PLAYED, writer), tmp_path / "own"))
    assert library.skills[0].text == "Look around."
    assert library.for_task("look").text == "Look around.\n\nDo it."


def test_no_rule_adds_to_a_writer_that_takes_notes():
    noted = {skill.name: skill.text for skill in learn_skills(PLAYED, NotedWriter(speaking("Hm.")))}
    assert noted == {"heat": "Do it.", "look": "Do it."}
    writer = ModelWriter(lambda chats: ['{"skills": ["Do it."]}' for _ in chats])
    at_once = {skill.name: skill.text for skill in learn_skills(PLAYED, writer)}
    assert "take O from R" in at_once["general"]
    assert at_once["heat"] == "Do it.\n\nMistake to avoid: to leave out: heat O with microwave 1."


@pytest.mark.parametrize("kind", [ModelWriter, NotedWriter])
def test_unreadable_replies_are_named_as_the_cause(kind):
    with pytest.raises(ConfigError, match=r"replies of the writer could not be read \(the last one: .* begins 'Sure!'"):
        learn_skills(PLAYED, kind(lambda chats: ["Sure!" for _ in chats]))


def test_gaps_strangers_and_duplicates_are_found():
    skill = Skill("a", "d", ("heat",), "go there and take it now please")
    library = SkillLibrary("l", (skill, replace(skill, name="b", task_types=("odd",))))
    found = [(finding.skill, finding.serious) for finding in check_library(library, ("heat", "cool"))]
    assert found == [("", True), ("b", True), ("a", False)]
    kinds = ("pick_heat_then_place_in_recep", "pick_and_place_simple")
    said = [finding.message for finding in check_library(library, kinds)]
    assert any("did you mean pick_heat_then_place_in_recep?" in message for message in said)


def test_what_names_a_single_task_is_found():
    named = Skill("a", "d", ("heat",), "take mug 3 from shelf 12, not b0griuas5h")
    found = lint_library(SkillLibrary("l", (named, Skill("b", "d", ("cool",), "word " * 500))))
    assert "mug 3" in found[0].message
    assert "b0griuas5h" in found[0].message
    assert "500 words" in found[1].message
    text = "Go back to step 3, look at most 5 times, at least 2, in 4 or 5 rooms, not more than 7."
    assert lint_library(SkillLibrary("l", (Skill("a", "d", ("heat",), text),))) == [], "numbers that count"


def test_a_difference_is_shown_line_by_line():
    skill = Skill("a", "d", ("heat",), "one\ntwo")
    old = SkillLibrary("old", (skill,))
    new = SkillLibrary("new", (replace(skill, text="one\nthree"),))
    assert [line for line in diff_libraries(old, new) if line[0] in "+-" and line[1] not in "+-"] == ["-two", "+three"]
