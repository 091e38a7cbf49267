"""A writer without a language model, in the words of the commands: so every agent runs with small policies too."""

from __future__ import annotations

from collections.abc import Sequence

from skillc_gym.episodes import Episode
from trainers.memory.abstraction import abstract_actions
from trainers.memory.replies import Decision, Edit
from trainers.memory.retrieval import BM25
from trainers.memory.step_writer import supported_steps

__all__ = ["RuleWriter"]

_LISTED = 12
_ALIKE = 0.85


class RuleWriter:
    """Writes by rule; deterministic, and no reply of it is bad.

    A plan lists what the failed try did and what was not possible. A rule is a step that won episodes of a type share:
    it is agreed with where it is found again, and removed where a won episode did without it. A fact is how a won
    episode went; one that is nearly known of its type replaces the known one if it is shorter.
    """

    def __init__(self) -> None:
        self.name = "steps"
        self.bad_replies = 0

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        return [_plan(episode) for episode in failed]

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        edits: list[Edit] = []
        for kind in sorted({episode.task_type for episode in episodes if episode.won}):
            own = [episode for episode in episodes if episode.task_type == kind]
            edits += _edits(kind, rules, own)
        return edits

    def facts(self, episode: Episode) -> list[str]:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        steps = list(dict.fromkeys(_steps(episode))) if episode.won else []
        return [f"{episode.task_type}: {', then '.join(steps)}."] if steps else []

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """As :class:`skillc_lab.agents.writer.AgentWriter` says."""
        kind = fact.partition(": ")[0]
        likeness = BM25()(fact, similar) if similar else ()
        for number, (known, alike) in enumerate(zip(similar, likeness, strict=True), 1):
            # Commands are worded alike in all types, so alone they make facts of two types nearly equal.
            if known.startswith(f"{kind}: ") and float(alike) >= _ALIKE:
                return Decision("UPDATE", number, fact) if len(fact) < len(known) else Decision("NOOP")
        return Decision("ADD")


def _plan(episode: Episode) -> str | None:
    done = list(dict.fromkeys(turn.action for turn in episode.turns if turn.action_valid))
    vain = list(dict.fromkeys(turn.action for turn in episode.turns if not turn.action_valid))
    lines = [f"Done in vain: {'; '.join(done[-_LISTED:])}."] if done else []
    lines += [f"Not possible: {'; '.join(vain[-_LISTED:])}."] if vain else []
    return "\n".join(["The last try failed. Do something else.", *lines]) if lines else None


def _edits(kind: str, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
    won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
    steps = supported_steps(won, lost)
    found = [f"{kind}: {step.step}." for step in steps if not lost or step.difference > 0]
    edits = [
        Edit("AGREE", rules.index(rule) + 1, rule) if rule in rules else Edit("ADD", None, rule)
        for rule in dict.fromkeys(found)
    ]
    taken = {f"{kind}: {step}." for episode in won for step in _steps(episode)}
    needless = [rule for rule in rules if rule.startswith(f"{kind}: ") and rule not in taken]
    return [*edits, *(Edit("REMOVE", rules.index(rule) + 1, rule) for rule in needless)]


def _steps(episode: Episode) -> list[str]:
    return abstract_actions([turn.action for turn in episode.turns if turn.action_valid], episode.goal)
