"""Writers that ask a language model, behind any engine; replies are read strictly, and a bad one is only counted."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from skill_library.errors import brief
from skillc_gym.episodes import Episode
from trainers.writers.base import (
    AnswerChats,
    BadReplyError,
    Decision,
    Draft,
    Edit,
    Writer,
    read_decision,
    read_edits,
    read_lists,
    read_text,
)
from trainers.writers.by_rule import by_type

T = TypeVar("T")


@cache
def _prompts(kind: str) -> dict[str, str]:
    prompts: dict[str, str] = tomllib.loads(files(__package__).joinpath("prompts.toml").read_text("utf-8"))[kind]
    return prompts


class LLMWriter:
    """Base of these writers.

    ``answer`` is the language model. ``bad_replies`` counts replies that could not be read; ``last_fault`` says what is
    wrong with the last of them, and how it begins.
    """

    prompts: str
    """Which part of ``prompts.toml`` has the system message of every question."""
    at_most: int = 3
    """Most texts that a question asks for."""
    longest: int = 600
    """Most characters of a text."""
    last_steps: int = 12
    """How many steps of each episode are shown."""

    def __init__(self, answer: AnswerChats, *, name: str = "language model") -> None:
        self.name, self.bad_replies, self.last_fault = name, 0, ""
        self._answer, self._role = answer, _prompts(self.prompts)["role"]

    def _ask(self, questions: Sequence[str], read: Callable[[str], T]) -> list[T | None]:
        """Asks all questions in one batch; None for each reply that ``read`` refuses."""
        chats = [[{"role": "system", "content": self._role}, {"role": "user", "content": text}] for text in questions]
        return [self._read(reply, read) for reply in self._answer(chats)] if chats else []

    def _read(self, reply: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(reply.rpartition("</think>")[2].strip())
        except BadReplyError as error:
            self.bad_replies += 1
            self.last_fault = f"{error}; it begins {brief(reply)}"
            return None

    def _texts(self, questions: Sequence[str], field: str, at_most: int | None = None) -> list[list[str]]:
        """Asks for one list of texts per question; an empty one where the reply is bad."""
        most = self.at_most if at_most is None else at_most
        found = self._ask(questions, lambda reply: read_lists(reply, field, at_most=most, longest=self.longest))
        return [lists[0] if lists else [] for lists in found]

    def _question(self, prompt: str, **filled: Any) -> str:
        """A prompt, named ``<part of prompts.toml>.<name>``, with this writer's limits in it."""
        part, _, name = prompt.partition(".")
        return _prompts(part)[name].format(**{"at_most": self.at_most, "longest": self.longest, **filled})

    def _shown(self, *episodes: Episode) -> str:
        return "\n\n".join(transcript(episode, self.last_steps) for episode in episodes)


class ModelWriter(LLMWriter, Writer):
    """Asks for skills by task type; a prompt shows at most ``shown`` won and ``shown`` lost episodes of each."""

    prompts = "skills"
    shown: int = 3

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """One question per task type, in one batch; won and lost episodes side by side."""
        return self._drafts("skills.skills", [self._choice(group) for group in by_type(episodes)], self.at_most)

    def write_lessons(self, episodes: Sequence[Episode]) -> list[Draft]:
        """One question per episode, in one batch."""
        return self._drafts("skills.lesson", [[episode] for episode in episodes], 1)

    def _choice(self, group: Sequence[Episode]) -> list[Episode]:
        won, lost = [e for e in group if e.won], [e for e in group if not e.won]
        return won[: self.shown] + lost[: self.shown]

    def _drafts(self, prompt: str, groups: Sequence[Sequence[Episode]], at_most: int) -> list[Draft]:
        questions = [
            self._question(prompt, kind=own[0].task_type, episodes=self._shown(*own), at_most=at_most) for own in groups
        ]
        found = self._texts(questions, "skills", at_most)
        return [self._draft(text, own, own[0].goal) for own, texts in zip(groups, found, strict=True) for text in texts]

    def _draft(self, text: str, group: Sequence[Episode | Note], key: str = "") -> Draft:
        sources = tuple(sorted({each.task_id for each in group}))
        return Draft(text, key, group[0].task_type, writer=self.name, sources=sources)


@dataclass(frozen=True)
class Note:
    """What an episode taught."""

    task_id: str
    task_type: str
    won: bool
    text: str


class NotedWriter(ModelWriter):
    """Asks in three rounds: for notes on single episodes, for skills and mistakes by type, for what is general.

    So the skill libraries of the literature were made (SkillRL, arXiv 2602.08234, among them); the prompts are ours.

    ``at_most`` bounds mistakes and general skills as well, and ``notes`` are all notes so far.
    """

    shown = 8

    def __init__(self, answer: AnswerChats, *, name: str = "language model") -> None:
        super().__init__(answer, name=name)
        self.notes: list[Note] = []

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """Skills and mistakes of every type with a note that could be read, then general ones with the type ""."""
        groups, limits = self._take_notes(episodes), {"at_most": self.at_most, "longest": self.longest}
        questions = [self._question("notes.skills", kind=own[0].task_type, notes=_listed(own)) for own in groups]
        found = self._ask(questions, lambda reply: read_lists(reply, "skills", "mistakes", **limits))
        drafts = [
            self._draft(text, notes)
            for notes, (skills, mistakes) in zip(groups, (each or ([], []) for each in found), strict=True)
            for text in (*skills, *(f"Mistake to avoid: {text}" for text in mistakes))
        ]
        return drafts + self._general(drafts)

    def _take_notes(self, episodes: Sequence[Episode]) -> list[list[Note]]:
        chosen = [e for group in by_type(episodes) for e in self._choice(group)]
        questions = [self._question("notes.note", kind=e.task_type, episode=self._shown(e)) for e in chosen]
        texts = self._ask(questions, lambda reply: read_text(reply, "note", longest=self.longest))
        notes = [Note(e.task_id, e.task_type, e.won, text) for e, text in zip(chosen, texts, strict=True) if text]
        self.notes += notes
        kinds = dict.fromkeys(note.task_type for note in notes)
        return [[note for note in notes if note.task_type == kind] for kind in kinds]

    def _general(self, drafts: Sequence[Draft]) -> list[Draft]:
        """What all types share; nothing with one type alone."""
        if len({draft.task_type for draft in drafts}) < 2:
            return []
        skills = "\n".join(f"- ({draft.task_type}) {draft.text}" for draft in drafts)
        sources = tuple(sorted({task for draft in drafts for task in draft.sources}))
        texts = self._texts([self._question("notes.general", skills=skills)], "skills")[0]
        return [Draft(text, kind="general", writer=self.name, sources=sources) for text in texts]


class PolicyWriter(LLMWriter):
    """Asks for plans, edits and facts; methods as :class:`trainers.writers.AgentWriter` says."""

    prompts = "agent"
    at_most = 4
    last_steps = 30

    def __init__(self, answer: AnswerChats) -> None:
        super().__init__(answer, name="policy")

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """All episodes in one batch of questions."""
        known = [self._question("agent.earlier", plans=_numbered(plans)) if plans else "" for plans in earlier]
        questions = [
            self._question("agent.reflect", episode=self._shown(episode), earlier=plans)
            for episode, plans in zip(failed, known, strict=True)
        ]
        return self._ask(questions, lambda reply: read_text(reply, "plan", longest=self.longest))

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """Asks what a failure and a success differ in, or what successes have in common."""
        asked = self._question("agent.set" if all(episode.won for episode in episodes) else "agent.pair")
        question = self._question("agent.edit", rules=_numbered(rules), episodes=self._shown(*episodes), question=asked)
        bounds = {"at_most": self.at_most, "longest": self.longest}
        return self._ask([question], lambda reply: read_edits(reply, len(rules), **bounds))[0] or []

    def facts(self, episode: Episode) -> list[str]:
        """Asks what will help with other tasks."""
        return self._texts([self._question("agent.facts", episode=self._shown(episode))], "facts")[0]

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """A fact with nothing similar is added unasked."""
        if not similar:
            return Decision("ADD")
        question = self._question("agent.decide", similar=_numbered(similar), fact=fact)
        found = self._ask([question], lambda reply: read_decision(reply, len(similar), longest=self.longest))[0]
        return found or Decision("NOOP")


def transcript(episode: Episode, last_steps: int) -> str:
    """An episode in words: goal, outcome, and its last steps."""
    turns = episode.turns[-last_steps:] if last_steps else ()
    left_out = len(episode.turns) - len(turns)
    lines = [f"Goal: {episode.goal}", f"Outcome: {'success' if episode.won else 'failure'}"]
    lines += [f"({left_out} steps left out)"] if left_out else []
    for turn in turns:
        lines += [f"Observation: {turn.observation}", f"Command: {turn.action}"]
    return "\n".join([*lines, f"Observation: {episode.final_observation}"])


def _listed(notes: Sequence[Note]) -> str:
    return "\n".join(f"- ({'success' if note.won else 'failure'}) {note.text}" for note in notes)


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1)) or "(none yet)"
