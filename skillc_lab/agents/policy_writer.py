"""A writer that asks the policy itself; replies are read strictly, and a bad one is only counted."""

from __future__ import annotations

from collections.abc import Sequence

from skillc_gym.episodes import Episode
from trainers.memory.asking import AskingWriter, Speak
from trainers.memory.model_writer import transcript
from trainers.memory.replies import Decision, Edit, read_decision, read_edits, read_text, read_texts

__all__ = ["PolicyWriter"]

_ROLE = "You help an agent that acts in a text environment by commands to do better next time."
_REFLECT = (
    "The agent failed at this task:\n\n{episode}\n\n{earlier}It will try the same task again. Write a new plan of at "
    "most {longest} characters: what went wrong, and what to do instead. Reply with JSON alone, in this form: "
    '{{"plan": "..."}}'
)
_EARLIER = "Plans that did not help so far:\n{plans}\n\n"
_EDIT = (
    "These rules are to help with all tasks of the environment:\n{rules}\n\nBelow are episodes.\n\n{episodes}\n\n"
    "{question} Rules speak in general words, without the names and numbers of one task. Reply with at most {at_most} "
    "lines, each of one of these forms, and with nothing else:\n"
    "ADD: a new rule\nAGREE number: the rule\nEDIT number: the rule in better words\nREMOVE number: the rule"
)
_PAIR = "Compare the failure with the success at the same task, and edit the rules."
_SET = "Say what these successes have in common, and edit the rules."
_FACTS = (
    "Below is an episode.\n\n{episode}\n\nWrite at most {at_most} facts, each of at most {longest} characters, that "
    'will help with other tasks of this environment. Reply with JSON alone: {{"facts": ["..."]}}, or {{"facts": []}}.'
)
_DECIDE = (
    "A memory holds these facts:\n{similar}\n\nA new fact: {fact}\n\nChoose one operation: ADD the new fact; UPDATE a "
    "fact of the memory, with a text that says both; DELETE a fact that the new one contradicts; or NOOP, because the "
    'memory knows it. Reply with JSON alone: {{"operation": "ADD", "number": 0, "text": ""}}, where number is that of '
    "the fact to UPDATE or DELETE and text is what UPDATE writes."
)


class PolicyWriter(AskingWriter):
    """Asks for plans, edits and facts.

    Args:
        speak: The language model.
        longest: Most characters of a plan or a fact.
        at_most: Most edits or facts per question.
        last_steps: Steps of each episode that a question shows, from its end.
    """

    def __init__(self, speak: Speak, *, longest: int = 600, at_most: int = 4, last_steps: int = 30) -> None:
        super().__init__(speak, _ROLE)
        self.name = "policy"
        self._longest, self._at_most, self._last_steps = longest, at_most, last_steps

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says; all episodes in one batch of questions."""
        questions = [
            _REFLECT.format(episode=self._shown([episode]), earlier=_earlier(plans), longest=self._longest)
            for episode, plans in zip(failed, earlier, strict=True)
        ]
        return self._ask(questions, lambda reply: read_text(reply, "plan", longest=self._longest))

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        question = _EDIT.format(
            rules=_numbered(rules),
            episodes=self._shown(episodes),
            question=_SET if all(episode.won for episode in episodes) else _PAIR,
            at_most=self._at_most,
        )
        return self._ask([question], lambda reply: read_edits(reply, len(rules), at_most=self._at_most))[0] or []

    def facts(self, episode: Episode) -> list[str]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        most, longest = self._at_most, self._longest
        question = _FACTS.format(episode=self._shown([episode]), at_most=most, longest=longest)
        return self._ask([question], lambda reply: read_texts(reply, "facts", at_most=most, longest=longest))[0] or []

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says; a fact with nothing similar is added unasked."""
        if not similar:
            return Decision("ADD")
        question = _DECIDE.format(similar=_numbered(similar), fact=fact)
        found = self._ask([question], lambda reply: read_decision(reply, len(similar), longest=self._longest))[0]
        return found or Decision("NOOP")

    def _shown(self, episodes: Sequence[Episode]) -> str:
        return "\n\n".join(transcript(episode, self._last_steps) for episode in episodes)


def _earlier(plans: Sequence[str]) -> str:
    return _EARLIER.format(plans=_numbered(plans)) if plans else ""


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1)) or "(none yet)"
