"""Writing without a language model, in the words of the commands: so every method and agent runs with small policies.

Commands become steps that hold for other tasks too, by their form alone. Two forms are known: entities with a number
(``take mug 1 from shelf 2``) and arguments in brackets (``click[red]``). Things become ``O`` and places ``R``, as in
the shipped skills; what is used as a tool keeps its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillc_gym.episodes import Episode
from trainers.retrieval.rules import BM25
from trainers.writers.base import Decision, Draft, Edit, Writer

# "mug 1" is an entity. It is a tool behind "with" at the end of a command or behind "use" at its start, and a place
# behind "to", "from", "in" and "on" or behind "open" and "close" at its start; any other one is a thing.
_ENTITY = r"\w+ \d+"
_NUMBERED = re.compile(rf"\b({_ENTITY})\b")
_TOOL = re.compile(rf"(?:\bwith|^use) ({_ENTITY})$")
_PLACE = re.compile(rf"(?:\b(?:to|from|in|on)|^open|^close) ({_ENTITY})")
_BRACKETS = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)
# A product's code, as B0GAVNSVXN is one: eight or more letters and digits, some of each.
_CODE = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9]{8,}")
_LISTED = 12
"""Most commands of a kind that a plan lists."""
_ALIKE = 0.85
"""Likeness from which on two facts of a type say the same."""


def abstract_actions(actions: Sequence[str], goal: str) -> list[str]:
    """One step per command, with placeholders for what changes from task to task; what the goal names is an option.

    Examples:
        >>> abstract_actions(["take mug 1 from shelf 2", "go to microwave 1", "heat mug 1 with microwave 1"], "")
        ['take O from R', 'go to microwave 1', 'heat O with microwave 1']
        >>> abstract_actions(["search[red mug]", "click[B0GAVNSVXN]", "click[red]", "click[buy now]"], "a red mug")
        ['search[words]', 'click[its code]', 'click[option]', 'click[buy now]']
    """
    tools = {match[1] for action in actions if (match := _TOOL.search(action))}
    return [_abstract(action.strip(), tools, goal.lower()) for action in actions]


def _abstract(action: str, tools: set[str], goal: str) -> str:
    if bracketed := _BRACKETS.fullmatch(action):
        return f"{bracketed[1]}[{_argument(bracketed[1], bracketed[2], goal)}]"
    # The same entity may be a thing in one command and a place in another, so each command is read for itself.
    places = {match[1] for match in _PLACE.finditer(action)}
    return _NUMBERED.sub(lambda m: m[1] if m[1] in tools else "R" if m[1] in places else "O", action)


def _argument(verb: str, argument: str, goal: str) -> str:
    if verb == "search":
        return "words"
    if _CODE.fullmatch(argument.lower()):
        return "its code"
    return "option" if argument.lower() in goal else argument


@dataclass(frozen=True)
class StepSupport:
    """An abstract step of one type's episodes, the shares of ``won`` and ``lost`` ones that took it, and its ``place``.

    The place is where in a won episode it was last taken, from 0 (the start) to 1 (the end), on average.
    """

    step: str
    won: float
    lost: float
    place: float

    @property
    def difference(self) -> float:
        """How much oftener won episodes took it."""
        return self.won - self.lost


def supported_steps(won: Sequence[Episode], lost: Sequence[Episode], least: float = 0.6) -> list[StepSupport]:
    """The steps that at least a share of a type's won episodes took, in the order in which they are taken."""
    places: dict[str, list[float]] = {}
    for episode in won:
        for step, place in _last_places(episode).items():
            places.setdefault(step, []).append(place)
    missed = Counter(step for episode in lost for step in _last_places(episode))
    found = [
        StepSupport(step, len(seen) / len(won), missed[step] / len(lost) if lost else 0.0, fmean(seen))
        for step, seen in places.items()
        if len(seen) >= least * len(won)
    ]
    return sorted(found, key=lambda support: (support.place, support.step))


def share_taken(episode: Episode, steps: Sequence[str]) -> float:
    """The share of some abstract steps that an episode took; 0 of none."""
    taken = set(_steps(episode))
    return fmean(step in taken for step in steps) if steps else 0.0


class StepWriter(Writer):
    """Writes by rule, deterministic and free of any model.

    A skill is the steps that won episodes of a type share; the one in which they differ most from lost ones is called
    the key step. A plan lists what the failed try did and what was not possible. A rule is a step that won episodes of
    a type share: it is agreed with where it is found again, and removed where no won episode took it. A fact is
    how a won episode went; one that is nearly known of its type replaces the known one if it is shorter.

    ``least`` is the share of the won episodes that must have taken a step.
    """

    def __init__(self, least: float = 0.6) -> None:
        self.name, self.bad_replies, self.least = "steps", 0, least

    def write(self, episodes: Sequence[Episode]) -> list[Draft]:
        """One skill per type with at least one won episode, by type."""
        return [draft for played in by_type(episodes) if (draft := self._skill(played))]

    def write_lessons(self, episodes: Sequence[Episode]) -> list[Draft]:
        """The steps of each won episode, nothing from a lost one."""
        return [draft for episode in episodes if (draft := self._skill([episode]))]

    def reflect(self, failed: Sequence[Episode], earlier: Sequence[Sequence[str]]) -> list[str | None]:
        """As :class:`trainers.writers.AgentWriter` says."""
        return [_plan(episode) for episode in failed]

    def edit(self, rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
        """As :class:`trainers.writers.AgentWriter` says."""
        return [edit for own in by_type(episodes) for edit in _edits(rules, own)]

    def facts(self, episode: Episode) -> list[str]:
        """As :class:`trainers.writers.AgentWriter` says."""
        steps = list(dict.fromkeys(_steps(episode))) if episode.won else []
        return [f"{episode.task_type}: {', then '.join(steps)}."] if steps else []

    def decide(self, fact: str, similar: Sequence[str]) -> Decision:
        """As :class:`trainers.writers.AgentWriter` says."""
        kind = fact.partition(": ")[0]
        likeness = BM25()(fact, similar) if similar else ()
        for number, (known, alike) in enumerate(zip(similar, likeness, strict=True), 1):
            # Commands are worded alike in all types, so alone they make facts of two types nearly equal.
            if known.startswith(f"{kind}: ") and float(alike) >= _ALIKE:
                return Decision("UPDATE", number, fact) if len(fact) < len(known) else Decision("NOOP")
        return Decision("ADD")

    def _skill(self, episodes: Sequence[Episode]) -> Draft | None:
        won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
        steps = supported_steps(won, lost, self.least)
        if not steps:
            return None
        telling = [step for step in steps if step.difference > 0] if lost else []
        key = max(telling, key=lambda support: (support.difference, support.place), default=None)
        lines = [f"{i}. {'Key step: ' if step is key else ''}{step.step}." for i, step in enumerate(steps, 1)]
        text = "\n".join(["Skill: do this in order.", *lines])
        sources = tuple(sorted({episode.task_id for episode in episodes}))
        return Draft(text, won[0].goal, episodes[0].task_type, writer=self.name, sources=sources)


def by_type(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Episodes by task type, the types in order."""
    return [[e for e in episodes if e.task_type == kind] for kind in sorted({e.task_type for e in episodes})]


def _last_places(episode: Episode) -> Mapping[str, float]:
    steps = _steps(episode)
    return {step: place / max(len(steps) - 1, 1) for place, step in enumerate(steps)}


def _steps(episode: Episode) -> list[str]:
    return abstract_actions([turn.action for turn in episode.turns if turn.action_valid], episode.goal)


def _plan(episode: Episode) -> str | None:
    done = list(dict.fromkeys(turn.action for turn in episode.turns if turn.action_valid))
    vain = list(dict.fromkeys(turn.action for turn in episode.turns if not turn.action_valid))
    lines = [f"Done in vain: {'; '.join(done[-_LISTED:])}."] if done else []
    lines += [f"Not possible: {'; '.join(vain[-_LISTED:])}."] if vain else []
    return "\n".join(["The last try failed. Do something else.", *lines]) if lines else None


def _edits(rules: Sequence[str], episodes: Sequence[Episode]) -> list[Edit]:
    """Edits in the light of one type's episodes; none if all were lost."""
    kind, won = episodes[0].task_type, [e for e in episodes if e.won]
    if not won:
        return []
    lost = [e for e in episodes if not e.won]
    found = [f"{kind}: {step.step}." for step in supported_steps(won, lost) if not lost or step.difference > 0]
    edits = [
        Edit("AGREE", rules.index(rule) + 1, rule) if rule in rules else Edit("ADD", None, rule)
        for rule in dict.fromkeys(found)
    ]
    taken = {f"{kind}: {step}." for episode in won for step in _steps(episode)}
    needless = [rule for rule in rules if rule.startswith(f"{kind}: ") and rule not in taken]
    return [*edits, *(Edit("REMOVE", rules.index(rule) + 1, rule) for rule in needless)]
