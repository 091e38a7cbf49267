"""A language model that writes skills in three rounds: notes on single episodes, skills and mistakes, what is general.

So the skill libraries of the literature were made (SkillRL, arXiv 2602.08234, among them); the prompts are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc_gym.episodes import Episode
from trainers.memory.asking import Speak
from trainers.memory.entries import Draft
from trainers.memory.model_writer import ModelWriter, by_type, transcript
from trainers.memory.replies import read_lists, read_text, read_texts

__all__ = ["Note", "NotedWriter"]

_NOTE = (
    "Below is one episode of a task of the type {kind}.\n\n{episode}\n\n"
    "Write one note of at most {longest} characters: which steps decided the outcome, what was missing or needless. "
    'Reply with JSON alone, in this form: {{"note": "..."}}'
)
_SKILLS = (
    "Below are notes on episodes of tasks of the type {kind}, each behind its outcome.\n\n{notes}\n\n"
    "Write at most {at_most} skills for this type of task and at most {at_most} mistakes to avoid, each of at most "
    '{longest} characters. Reply with JSON alone, in this form: {{"skills": ["..."], "mistakes": ["..."]}}'
)
_GENERAL = (
    "Below are skills for several types of tasks.\n\n{skills}\n\n"
    "Write at most {at_most} skills that hold for all of these types, each of at most {longest} characters. "
    'Reply with JSON alone, in this form: {{"skills": ["..."]}}'
)


@dataclass(frozen=True)
class Note:
    """What an episode taught.

    Attributes:
        task_id: Its task.
        task_type: Of that type.
        won: Whether it succeeded.
        text: The note.
    """

    task_id: str
    task_type: str
    won: bool
    text: str


class NotedWriter(ModelWriter):
    """Asks for notes, then for skills and mistakes by type from the notes, then for what is general.

    Args:
        speak: The language model.
        name: Recorded with every text.
        at_most: Most skills, and most mistakes, per task type; most general skills.
        longest: Most characters of each text.
        shown: Most won and most lost episodes of a type that a note is asked on, each.
        last_steps: Steps of each episode that a question shows, from its end.

    Attributes:
        notes: All notes so far.
    """

    def __init__(
        self,
        speak: Speak,
        *,
        name: str = "language model",
        at_most: int = 3,
        longest: int = 600,
        shown: int = 8,
        last_steps: int = 12,
    ) -> None:
        super().__init__(speak, name=name, at_most=at_most, longest=longest, shown=shown, last_steps=last_steps)
        self.notes: list[Note] = []

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Skills and mistakes of every type with a note that could be read, then general ones with the type ""."""
        groups = self._take_notes(episodes)
        most, longest = self._at_most, self._longest
        questions = [
            _SKILLS.format(kind=notes[0].task_type, notes=_listed(notes), at_most=most, longest=longest)
            for notes in groups
        ]
        lists = ("skills", "mistakes")
        found = self._ask(questions, lambda reply: read_lists(reply, lists, at_most=most, longest=longest))
        drafts = [
            self._noted(text, notes) for notes, read in zip(groups, found, strict=True) for text in _texts(read or {})
        ]
        return drafts + self._general(drafts)

    def write_lesson(self, episode: Episode) -> Draft | None:
        """The note on one episode."""
        groups = self._take_notes([episode])
        return self._noted(groups[0][0].text, groups[0]) if groups else None

    def _take_notes(self, episodes: Sequence[Episode]) -> list[list[Note]]:
        """The notes that could be read, by task type."""
        chosen, longest = [e for group in by_type(episodes) for e in self._choice(group)], self._longest
        questions = [
            _NOTE.format(kind=e.task_type, episode=transcript(e, self._last_steps), longest=longest) for e in chosen
        ]
        texts = self._ask(questions, lambda reply: read_text(reply, "note", longest=longest))
        notes = [Note(e.task_id, e.task_type, bool(e.won), text) for e, text in zip(chosen, texts, strict=True) if text]
        self.notes += notes
        return [
            [note for note in notes if note.task_type == kind] for kind in dict.fromkeys(n.task_type for n in notes)
        ]

    def _general(self, drafts: Sequence[Draft]) -> list[Draft]:
        """What all types share; nothing with one type alone."""
        if len({draft.task_type for draft in drafts}) < 2:
            return []
        most, longest = self._at_most, self._longest
        skills = "\n".join(f"- ({draft.task_type}) {draft.text}" for draft in drafts)
        question = _GENERAL.format(skills=skills, at_most=most, longest=longest)
        texts = self._ask([question], lambda reply: read_texts(reply, "skills", at_most=most, longest=longest))[0]
        sources = tuple(sorted({task for draft in drafts for task in draft.sources}))
        return [Draft(text, kind="general", writer=self.name, sources=sources) for text in texts or ()]

    def _noted(self, text: str, notes: Sequence[Note]) -> Draft:
        sources = tuple(sorted({note.task_id for note in notes}))
        return Draft(text, task_type=notes[0].task_type, writer=self.name, sources=sources)


def _listed(notes: Sequence[Note]) -> str:
    return "\n".join(f"- ({'success' if note.won else 'failure'}) {note.text}" for note in notes)


def _texts(lists: Mapping[str, list[str]]) -> list[str]:
    return [*lists.get("skills", ()), *(f"Mistake to avoid: {text}" for text in lists.get("mistakes", ()))]
