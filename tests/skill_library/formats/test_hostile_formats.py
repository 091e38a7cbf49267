"""Skills of other forms, written by strangers: what would take quadratic time is refused or read at once."""

from __future__ import annotations

import pytest

from skill_library import Skill, SkillFileError
from skill_library.formats.bank import read_bank, to_bank
from skill_library.formats.sections import read_sections, to_sections


def test_a_line_of_blanks_is_read_at_once() -> None:
    text = f"### a ###\ntext\n### b{' ' * 200_000}x\n###{' ' * 200_000}\n"
    (skill,) = read_sections(text)
    assert skill.text.startswith("text\n### b")


@pytest.mark.parametrize("head", ["### a b ###", "###  a b\t### ", "### a b   ###\t"])
def test_heads_are_read_as_they_were(head: str) -> None:
    (skill,) = read_sections(f"{head}\ntext\n")
    assert (skill.name, skill.task_types) == ("a_b", ("a b",))
    (other,) = read_sections("### a ### b ###\ntext")
    assert other.task_types == ("a ### b",)


def test_more_skills_than_a_library_has_are_refused() -> None:
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_sections("### a ###\nx\n" * 50_000)
    entries = [{"skill_id": "a", "principle": "p"}] * 50_000
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_bank({"general_skills": entries})
    with pytest.raises(SkillFileError, match="at most 1,000"):
        read_bank({"task_specific_skills": {"heat": entries}})


def test_a_text_like_half_a_mistake_is_written_at_once() -> None:
    skill = Skill("a", "d", ("*",), "Mistake: " + "\nWhy: x" * 100_000)
    assert to_bank([skill])["common_mistakes"] == []
    assert to_sections([skill])
