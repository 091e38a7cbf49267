"""A bank of skills in JSON, as SkillRL's releases have it: general skills, skills per category, common mistakes.

Each entry becomes a skill of its own, so that a bank can be written back entry by entry.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skill_library.errors import SkillFileError, brief
from skill_library.formats.form import SkillFormat, check_count, check_size, plain_name, require_text, unique
from skill_library.skill import EVERY_TYPE, Skill

_SKILL = re.compile(r"(?P<title>[^\n]*)\n(?P<principle>.*?)(?:\nApply when: (?P<when_to_apply>[^\n]*))?", re.DOTALL)
_MISTAKE = re.compile(
    r"Mistake: (?P<description>.*?)(?:\nWhy: (?P<why_it_happens>.*?))?\nInstead: (?P<how_to_avoid>.*)", re.DOTALL
)

_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9 _.-]{0,59}")
"""An id that can name a skill, and has room for a number behind it."""
_FIELDS = {"skill_id", "title", "principle", "when_to_apply"}
_FIELDS_OF_MISTAKES = {"mistake_id", "description", "why_it_happens", "how_to_avoid"}


def read_bank(data: Any) -> list[Skill]:
    """Reads what ``json.load`` gave; SkillFileError, which says where, if it is no such bank or an empty one.

    A skill is named by its id and described by when it applies; its text is title, principle and when to apply it. The
    task type of a category's skills is called as the category; general skills and mistakes are general. A UserWarning
    names fields that have no place in a skill.
    """
    if not isinstance(data, Mapping):
        raise SkillFileError(f"A bank is an object with general_skills and task_specific_skills, got {brief(data)}")
    general, mistakes = (_entries(data, name) for name in ("general_skills", "common_mistakes"))
    groups = [("general", EVERY_TYPE, general), *((kind, kind, own) for kind, own in _categories(data).items())]
    check_count(sum(len(entries) for *_, entries in groups) + len(mistakes), "The bank")
    said = {name for *_, entries in groups for entry in entries for name in entry} - _FIELDS
    if unread := sorted(said | {name for entry in mistakes for name in entry} - _FIELDS_OF_MISTAKES):
        warnings.warn(f"Fields of the bank's entries that are not read: {', '.join(map(brief, unread))}", stacklevel=2)
    skills: list[Skill] = []
    for label, kind, entries in groups:
        for number, entry in enumerate(entries, start=1):
            skills.append(_skill(entry, f"{label}-{number}", kind, skills))
    for number, entry in enumerate(mistakes, start=1):
        skills.append(_mistake(entry, f"mistake-{number}", skills))
    if not skills:
        raise SkillFileError("The bank has no entries: none in general_skills, task_specific_skills, common_mistakes")
    check_size(skills, "The bank")
    return skills


def to_bank(skills: Iterable[Skill]) -> dict[str, Any]:
    """Writes skills as a bank; entries that were read from one come out as they were.

    But for a title that is missing, which is the name then, and for ids that repeat or are no names for a skill.

    Any other skill has its name as title and its text as principle, and stands in the category of each of its types.
    SkillFileError for one without a text.
    """
    bank: dict[str, Any] = {"general_skills": [], "task_specific_skills": {}, "common_mistakes": []}
    for skill in skills:
        require_text(skill)
        # Without its last part the pattern would try every beginning of the second.
        mistake = _MISTAKE.fullmatch(skill.text) if skill.is_general and "\nInstead: " in skill.text else None
        if said := _said(skill, "mistake_id", mistake, lambda entry: _mistake(entry, "", ())):
            bank["common_mistakes"].append(said)
        elif skill.is_general:
            bank["general_skills"].append(_entry(skill))
        else:
            for kind in skill.task_types:
                bank["task_specific_skills"].setdefault(kind, []).append(_entry(skill))
    return bank


def _skill(entry: Mapping[str, Any], fallback: str, kind: str, others: Sequence[Skill]) -> Skill:
    principle = _text(entry, "principle")
    title, when = (" ".join(_text(entry, name).split()) for name in ("title", "when_to_apply"))
    if not principle:
        raise SkillFileError(f"The entry {fallback} of the bank has no principle: {brief(dict(entry))}")
    name = _name(entry, "skill_id", fallback, others)
    text = f"{title or name}\n{principle}" + (f"\nApply when: {when}" if when else "")
    return Skill(name, when or title or name, (kind,), text)


def _mistake(entry: Mapping[str, Any], fallback: str, others: Sequence[Skill]) -> Skill:
    what, why, instead = (_text(entry, name) for name in ("description", "why_it_happens", "how_to_avoid"))
    if not what or not instead:
        raise SkillFileError(f"The entry {fallback} needs description and how_to_avoid: {brief(dict(entry))}")
    text = f"Mistake: {what}" + (f"\nWhy: {why}" if why else "") + f"\nInstead: {instead}"
    return Skill(_name(entry, "mistake_id", fallback, others), what[:1024].strip(), (EVERY_TYPE,), text)


def _entry(skill: Skill) -> dict[str, str]:
    said = _said(skill, "skill_id", _SKILL.fullmatch(skill.text), lambda entry: _skill(entry, "", EVERY_TYPE, ()))
    plain = {"skill_id": skill.name, "title": skill.name, "principle": skill.text, "when_to_apply": skill.description}
    return said or plain


def _said(
    skill: Skill, name_field: str, found: re.Match[str] | None, read: Callable[[dict[str, str]], Skill]
) -> dict[str, str]:
    """The entry that a skill's text was read from; an empty one if it would not be read back as the skill."""
    if found is None:
        return {}
    entry = {name_field: skill.name} | {name: text for name, text in found.groupdict().items() if text is not None}
    try:
        again = read(entry)
    except SkillFileError:
        return {}
    return entry if (again.text, again.description) == (skill.text, skill.description) else {}


def _name(entry: Mapping[str, Any], field: str, fallback: str, others: Sequence[Skill]) -> str:
    given = _text(entry, field)
    plain = given if _ID.fullmatch(given) else plain_name(given or fallback)
    return unique(plain, [skill.name for skill in others])


def _entries(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    entries = data.get(name) or []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise SkillFileError(f"{name} of the bank must be a list of objects, got {brief(entries)}")
    return entries


def _categories(data: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    found = data.get("task_specific_skills") or {}
    if not isinstance(found, Mapping):
        raise SkillFileError(f"task_specific_skills must be an object of lists, got {brief(found)}")
    return {str(category): _entries(found, category) for category in found}


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name) or ""
    if not isinstance(value, str):
        raise SkillFileError(f"{name} of an entry of the bank must be text, got {brief(value)}")
    return value.strip()


FORMAT = SkillFormat(
    "bank",
    read=lambda text: read_bank(json.loads(text)),
    write=lambda skills: json.dumps(to_bank(skills), indent=2, ensure_ascii=False) + "\n",
    suffixes=(".json",),
)
