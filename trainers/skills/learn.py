"""From transcripts to a skill library: notes per episode, general and per-type skills, and common mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from skill_library import SkillLibrary, load_library
from skill_library.skill import EVERY_TYPE, SKILL_FILE
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from trainers.memory.entries import Draft
from trainers.memory.step_writer import supported_steps
from trainers.memory.writer import Writer

__all__ = ["LearnedSkill", "learn_skills", "write_library"]


@dataclass(frozen=True)
class LearnedSkill:
    """A skill as it will stand in its folder.

    Attributes:
        name: The folder's name.
        description: One sentence on when it helps.
        task_types: Types that it serves; ``("*",)`` for all.
        text: What an agent reads.
    """

    name: str
    description: str
    task_types: tuple[str, ...]
    text: str


def learn_skills(
    episodes: Sequence[Episode], writer: Writer, *, short_names: Mapping[str, str] | None = None
) -> list[LearnedSkill]:
    """Writes a skill per task type that has a won episode, and a general one of what all types share.

    What a type's lost episodes leave out although nearly all won ones do it is added as the mistake to avoid.

    Args:
        episodes: Of training tasks.
        writer: Writes the skills of each type.
        short_names: Names for the skills' folders, by task type.

    Returns:
        The general skill first if there is one, then by task type.

    Raises:
        ConfigError: No episode was won, so there is nothing to learn from.
    """
    drafts: dict[str, list[Draft]] = {}
    for draft in writer.write(episodes):
        drafts.setdefault(draft.task_type, []).append(draft)
    if not drafts:
        raise ConfigError(
            f"No skill could be written from {len(episodes)} episodes, of which {_won(episodes)} were won; "
            "play more episodes, or take those of an expert"
        )
    skills = [_skill(kind, own, episodes, short_names or {}) for kind, own in sorted(drafts.items())]
    general = _general(episodes)
    return [*([general] if general else []), *skills]


def write_library(skills: Iterable[LearnedSkill], folder: Path) -> SkillLibrary:
    """Writes a folder with a SKILL.md per skill, and reads it back.

    Raises:
        ConfigError: The folder holds something already.
        SkillFileError: What was written is no library.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; name a new folder for the skills")
    for skill in skills:
        place = folder / skill.name
        place.mkdir(parents=True)
        front = {"name": skill.name, "description": skill.description, "task_types": list(skill.task_types)}
        text = f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n{skill.text}\n"
        (place / SKILL_FILE).write_text(text, encoding="utf-8")
    return load_library(folder)


def _skill(
    kind: str, drafts: Sequence[Draft], episodes: Sequence[Episode], short_names: Mapping[str, str]
) -> LearnedSkill:
    own = [episode for episode in episodes if episode.task_type == kind]
    mistake = _mistake(own)
    text = "\n\n".join([draft.text for draft in drafts] + ([mistake] if mistake else []))
    name = re.sub(r"[^a-z0-9]+", "-", short_names.get(kind, kind).lower()).strip("-")
    return LearnedSkill(name, f"Learned from {len(own)} episodes, {_won(own)} of them won.", (kind,), text)


def _mistake(episodes: Sequence[Episode]) -> str:
    """What lost episodes leave out most, in a sentence; "" where they leave out nothing."""
    won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
    missed = [step for step in supported_steps(won, lost, 0.9) if step.difference > 0.5] if won and lost else []
    return f"Mistake to avoid: to leave out: {'; '.join(step.step for step in missed)}." if missed else ""


def _general(episodes: Sequence[Episode]) -> LearnedSkill | None:
    """Steps that won episodes of every type share; None with one type alone, or nothing in common."""
    kinds = sorted({episode.task_type for episode in episodes if episode.won})
    shared: list[str] | None = None
    for kind in kinds:
        steps = [s.step for s in supported_steps([e for e in episodes if e.won and e.task_type == kind], [])]
        shared = steps if shared is None else [step for step in shared if step in steps]
    if len(kinds) < 2 or not shared:
        return None
    lines = [f"{i}. {step}." for i, step in enumerate(shared, 1)]
    text = "\n".join(["General skill: every task needs these steps.", *lines])
    return LearnedSkill("general", "What won episodes of all task types share.", (EVERY_TYPE,), text)


def _won(episodes: Sequence[Episode]) -> int:
    return sum(bool(episode.won) for episode in episodes)
