"""Episode and Turn: the record of one episode, the recorder that fills it in, and the check of what is read back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from skill_library.errors import brief
from skillc_gym.errors import TranscriptError


@dataclass(frozen=True)
class Turn:
    """One exchange.

    Attributes:
        observation: What the environment had said when the agent replied, without the wording of a prompt.
        reply: The agent's reply, verbatim; ``action`` is the command that was executed.
        format_valid: Whether the reply had the asked form.
        action_valid: Whether the command was possible.
    """

    observation: str
    reply: str
    action: str
    format_valid: bool
    action_valid: bool
    reward: float


@dataclass(frozen=True)
class Episode:
    """One episode with everything needed to trace a number back to it.

    Attributes:
        condition: 1 with the skill, 0 without.
        skill: Name of what was shown: the skill, and what an agent adds to it or shows instead; "" for nothing.
        skill_sha256: Hash of ``skill_text``, the text shown; "" for none.
        group_id: The group it was played in; members of a group share task and seed.
        won: Whether the task was fulfilled; files have it as 1.0 or 0.0.
        task_score: The environment's own score in [0, 1].
        terminated: The environment ended it.
        truncated: A limit ended it.
        messages: The prompt of the first turn as chat messages, the injected skill text included.
        final_observation: What the environment said last.
        cut: What the limit was that truncated it: "steps", "context" (the next prompt would not have fitted), or "".
        skill_grade: How much of the skill was shown: "none", "minimal" or "full"; "" if unknown.
    """

    task_id: str
    task_type: str
    goal: str
    condition: int
    skill: str
    skill_sha256: str
    skill_text: str
    seed: int
    group_id: int
    turns: tuple[Turn, ...]
    won: bool
    task_score: float
    terminated: bool
    truncated: bool
    messages: list[dict[str, str]] = field(default_factory=list)
    final_observation: str = ""
    cut: str = ""
    skill_grade: str = ""

    @property
    def episode_return(self) -> float:
        """Sum of the rewards."""
        return float(sum(turn.reward for turn in self.turns))

    def __len__(self) -> int:
        """Number of turns."""
        return len(self.turns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values; :meth:`from_dict` gives an equal episode."""
        found = asdict(self)
        return {**found, "won": float(self.won), "turns": list(found["turns"])}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Episode:
        """Rebuilds an episode; TranscriptError if a field is missing, unknown or of another type."""
        if isinstance(values, Mapping) and isinstance(won := values.get("won"), int | float):
            values = {**values, "won": won >= 1}
        found = checked(cls, values, optional=("messages", "final_observation", "cut", "skill_grade"))
        return cls(**{**found, "turns": tuple(Turn(**checked(Turn, turn)) for turn in found["turns"])})


_TOLD = ("task_id", "task_type", "goal", "skill", "skill_sha256", "skill_text", "skill_grade")
"""What the info of a reset says under the name of an episode's field."""


class EpisodeRecorder:
    """Collects an episode while it is played, from what reset and step give.

    Works over any stack of the suite's wrappers: with a ``ChatPrompt`` the first prompt is kept, with an
    ``ActionFormat`` replies and executed commands are told apart.
    """

    def __init__(self, observation: str, info: Mapping[str, Any], *, seed: int = 0, group_id: int = 0) -> None:
        # The messages belong to whoever plays, who may go on with the same list.
        self._messages = [dict(message) for message in info.get("messages", ())]
        self._first = info
        self._last = info
        self._seed, self._group_id = int(seed), int(group_id)
        self._observation: str = info.get("observation", observation)
        self._turns: list[Turn] = []
        self._ends = (False, False)

    def add(self, reply: Any, outcome: tuple[str, Any, bool, bool, Mapping[str, Any]]) -> None:
        """Adds one exchange: the agent's reply, and what ``env.step(reply)`` returned."""
        observation, reward, terminated, truncated, info = outcome
        self._turns.append(
            Turn(
                observation=self._observation,
                reply=str(reply),  # of a numbered action, its number
                action=str(info.get("executed_action", reply)),
                format_valid=bool(info.get("format_valid", True)),
                action_valid=bool(info.get("action_valid", True)),
                reward=float(reward),
            )
        )
        self._observation = info.get("observation", observation)
        self._ends = (bool(terminated), bool(truncated))
        self._last = info

    def episode(self) -> Episode:
        """The episode as played so far."""
        return Episode(
            **{name: self._first.get(name, "") for name in _TOLD},
            condition=int(self._first.get("condition", 0)),
            seed=self._seed,
            group_id=self._group_id,
            turns=tuple(self._turns),
            won=float(self._last.get("won", 0.0)) >= 1.0,
            task_score=float(self._last.get("task_score", 0.0)),
            terminated=self._ends[0],
            # TimeLimit says both of an episode that ends in its last step; no limit ended that.
            truncated=self._ends == (False, True),
            messages=[dict(message) for message in self._messages],
            final_observation=self._observation,
            cut="steps" if self._ends == (False, True) else "",
        )


def checked(kind: type[Any], values: Any, optional: Collection[str] = ()) -> dict[str, Any]:
    """A recorded object's fields, each of its declared type, optional ones aside; else TranscriptError."""
    if not isinstance(values, Mapping):
        raise TranscriptError(f"Expected an object with the fields of {kind.__name__}, got {brief(values)}")
    types = {entry.name: str(entry.type) for entry in fields(kind)}
    missing, unknown = sorted(types.keys() - values.keys() - set(optional)), sorted(values.keys() - types.keys())
    if missing or unknown:
        lacks = [f"lacks {', '.join(missing)}"] if missing else []
        more = [f"has unknown {', '.join(map(_name, unknown[:5]))}"] if unknown else []
        raise TranscriptError(
            f"A recorded {kind.__name__} {' and '.join(lacks + more)}; was it written by another version?"
        )
    return {name: _value(f"{kind.__name__}.{name}", types[name], value) for name, value in values.items()}


def _name(field: str) -> str:
    return field if field.isidentifier() and len(field) < 100 else brief(field)


def _value(name: str, declared: str, value: Any) -> Any:
    convert, expected = _KINDS[declared]
    try:
        return convert(value)
    except (TypeError, OverflowError) as error:
        raise TranscriptError(f"{name} must be {expected}, got {brief(value)}") from error


def _exactly(*kinds: type[Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        # A boolean is an integer to Python.
        if type(value) not in kinds:
            raise TypeError
        return value

    return convert


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _messages(value: Any) -> list[dict[str, str]]:
    texts = {"role": str, "content": str}
    for message in _exactly(list)(value):
        if not isinstance(message, dict) or {name: type(said) for name, said in message.items()} != texts:
            raise TypeError
    return list(value)


_KINDS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "str": (_exactly(str), "a text"),
    "bool": (_exactly(bool), "true or false"),
    "int": (_exactly(int), "an integer"),
    "float": (_number, "a number"),
    "tuple[Turn, ...]": (_exactly(list, tuple), "a list of turns"),
    "list[dict[str, str]]": (_messages, "a list of messages with role and content"),
}
