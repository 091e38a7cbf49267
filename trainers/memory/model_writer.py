"""A writer that asks a language model, behind any engine; replies are read strictly, and a bad one is only counted."""

from __future__ import annotations

from collections.abc import Sequence

from skillc_gym.episodes import Episode
from trainers.memory.asking import AskingWriter, Speak
from trainers.memory.entries import Draft
from trainers.memory.replies import read_texts

__all__ = ["ModelWriter", "by_type", "transcript"]

_ROLE = (
    "You write short skills for an agent that acts in a text environment by commands. A skill says in general words, "
    "without the names and numbers of one task, what to do and in which order."
)
_SKILLS = (
    "Below are episodes of tasks of the type {kind}. Compare those that succeeded with those that failed.\n\n"
    "{episodes}\n\nWrite at most {at_most} skills for this type of task, each of at most {longest} characters. "
    'Reply with JSON alone, in this form: {{"skills": ["..."]}}'
)
_LESSON = (
    "Below is one episode.\n\n{episodes}\n\n"
    "Write at most one lesson of at most {longest} characters that will help with "
    'other tasks of this type. Reply with JSON alone: {{"skills": ["..."]}}, or {{"skills": []}} if there is none.'
)


class ModelWriter(AskingWriter):
    """Asks for skills by task type.

    Args:
        speak: The language model.
        name: Recorded with every text.
        at_most: Most skills per task type and call.
        longest: Most characters of a skill.
        shown: Most won and most lost episodes that a prompt shows, each.
        last_steps: Steps of each episode that a prompt shows, from its end.
    """

    def __init__(
        self,
        speak: Speak,
        *,
        name: str = "language model",
        at_most: int = 3,
        longest: int = 600,
        shown: int = 3,
        last_steps: int = 12,
    ) -> None:
        super().__init__(speak, _ROLE)
        self.name = name
        self._at_most, self._longest, self._shown, self._last_steps = at_most, longest, shown, last_steps

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """One question per task type, in one batch; won and lost episodes side by side."""
        chosen = [self._choice(group) for group in by_type(episodes)]
        return self._drafts(_SKILLS, chosen)

    def write_lesson(self, episode: Episode) -> Draft | None:
        """Asks what one episode taught."""
        drafts = self._drafts(_LESSON, [[episode]], at_most=1)
        return drafts[0] if drafts else None

    def _choice(self, group: Sequence[Episode]) -> list[Episode]:
        won, lost = [e for e in group if e.won], [e for e in group if not e.won]
        return won[: self._shown] + lost[: self._shown]

    def _drafts(self, template: str, groups: Sequence[Sequence[Episode]], at_most: int | None = None) -> list[Draft]:
        most, longest = self._at_most if at_most is None else at_most, self._longest
        questions = [self._question(template, group, most) for group in groups]
        found = self._ask(questions, lambda reply: read_texts(reply, "skills", at_most=most, longest=longest))
        return [self._draft(text, group) for group, texts in zip(groups, found, strict=True) for text in texts or ()]

    def _question(self, template: str, group: Sequence[Episode], at_most: int) -> str:
        shown = "\n\n".join(transcript(episode, self._last_steps) for episode in group)
        return template.format(kind=group[0].task_type, episodes=shown, at_most=at_most, longest=self._longest)

    def _draft(self, text: str, group: Sequence[Episode]) -> Draft:
        return Draft(
            text=text,
            key=group[0].goal,
            task_type=group[0].task_type,
            writer=self.name,
            sources=tuple(sorted({episode.task_id for episode in group})),
        )


def transcript(episode: Episode, last_steps: int) -> str:
    """An episode in words: goal, outcome, and its last steps."""
    turns = episode.turns[-last_steps:] if last_steps else ()
    left_out = len(episode.turns) - len(turns)
    lines = [f"Goal: {episode.goal}", f"Outcome: {'success' if episode.won else 'failure'}"]
    lines += [f"({left_out} steps left out)"] if left_out else []
    for turn in turns:
        lines += [f"Observation: {turn.observation}", f"Command: {turn.action}"]
    return "\n".join([*lines, f"Observation: {episode.final_observation}"])


def by_type(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Episodes by task type, the types in order."""
    return [[e for e in episodes if e.task_type == kind] for kind in sorted({e.task_type for e in episodes})]
