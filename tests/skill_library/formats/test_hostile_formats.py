"""Skills of other forms, written by strangers: what would take quadratic time is refused or read at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_library import Skill, SkillFileError
from skill_library.formats.agent_skills import read_agent_skills
from skill_library.formats.bank import read_bank, to_bank
from skill_library.formats.sections import read_sections, to_sections
from skill_library.skill import MAX_CHARACTERS


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


def in_a_folder(folder: Path, text: str = "Do it.") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\n{text}\n", encoding="utf-8")
    return folder


def test_a_linked_skill_may_not_lie_outside_what_is_read(tmp_path: Path) -> None:
    secret, root = in_a_folder(tmp_path / "secret"), in_a_folder(tmp_path / "skills" / "own").parent
    (root / "within").symlink_to(root / "own")
    assert len(read_agent_skills(root)) == 2
    (root / "linked").symlink_to(secret)
    with pytest.raises(SkillFileError, match="link that leads out"):
        read_agent_skills(root)


def test_linked_references_may_not_lie_outside_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("secret")
    skill = in_a_folder(tmp_path / "skills" / "own")
    (skill / "references").symlink_to(tmp_path / "secrets")
    for root in (skill, skill.parent):
        with pytest.raises(SkillFileError, match=r"key\.txt is a link that leads out"):
            read_agent_skills(root, references=True)


def test_more_text_than_a_library_has_is_refused(tmp_path: Path) -> None:
    quarter = MAX_CHARACTERS // 4 + 1
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_bank({"general_skills": [{"skill_id": f"a{n}", "principle": "p" * quarter} for n in range(4)]})
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_sections(f"### a ###\n{'x' * MAX_CHARACTERS}x\n")
    references = in_a_folder(tmp_path / "a") / "references"
    references.mkdir()
    for number in range(17):
        (references / f"{number}.md").write_text("r" * 250_000)
    with pytest.raises(SkillFileError, match="4,194,304 characters"):
        read_agent_skills(tmp_path, references=True)
