"""What warm-starting a small policy in an environment needs to know of it, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from skillc_gym.lazy import load_reference

__all__ = ["PLAIN_WORDS", "DemoTasks", "Demonstrator", "MistakenDemonstrator", "Spelling", "WarmStart"]


class Demonstrator(Protocol):
    """An expert that plays and says why."""

    thought: str

    def act(self, observation: str, commands: Sequence[str], /) -> str:
        """Returns the next command."""


@runtime_checkable
class MistakenDemonstrator(Demonstrator, Protocol):
    """An expert that knows a mistake which its imitators make, so that demonstrations can show how to recover."""

    def mistake(self, commands: Sequence[str], rng: np.random.Generator, /) -> tuple[str, str] | None:
        """A mistaken thought and an impossible command, or None where the mistake would not be one; moves nothing."""


@dataclass(frozen=True)
class Spelling:
    """What a language's words are: patterns are regular expressions over lower-case text."""

    kept: tuple[str, ...] = ()
    """Character strings that are one token each, wherever they stand."""
    blanked: tuple[str, ...] = ()
    """What is dropped before the text is split at blanks."""
    split: tuple[tuple[str, Literal["removed", "isolated"]], ...] = ()
    """How a word between blanks is split further: what is removed, and what becomes a token of its own."""
    glued: tuple[tuple[str, str], ...] = ()
    """Replacements in decoded replies, which are words joined by single blanks."""


# Articles and punctuation carry nothing in household language and cost a third of the context.
PLAIN_WORDS = Spelling(blanked=(r"[^a-z0-9<>|/]", r"\b(?:a|an|the|and)\b"), split=((r"[<>|/]", "removed"),))
"""Words of letters and digits; a reply decodes to them alone."""


@dataclass(frozen=True)
class DemoTasks:
    """Which tasks the demonstration trains and tests on, in sizes that take minutes on two cores."""

    held_out_split: str
    held_out_per_type: int
    panel_per_type: int
    """Tasks per type of the curriculum's panel."""
    max_reply_tokens: int
    max_episode_steps: int
    """Step limit of generated tasks."""
    max_episode_steps_of_data: int
    """Step limit of the tasks of a data set."""
    preset_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of all methods on generated tasks: the same ones, so that ablations differ from SkillC in one thing."""
    data_variable: str | None = None
    """Environment variable with the place of a data set to take where none is named."""


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """How a small policy is cloned from demonstrations in an environment.

    The environment's constructor takes ``data`` ("generated", or where a data set lies) and ``generator``.
    """

    expert: str
    """``module:function`` that makes a `Demonstrator` from the first info and a bool: True for one that errs."""
    error_rates: Mapping[str, float]
    """Per task type, how probably a demonstration without skill leaves out the essential step."""
    demo: DemoTasks
    skill: str = ""
    """``module:function`` that chooses an episode's skill by the info of its reset; "" for the library's."""
    generator: Mapping[str, Any] = field(default_factory=dict)
    """The family of generated tasks of the shipped policy and of the demonstration."""
    policy: str = ""
    """Folder of the shipped policy ("shipped"): absolute, or inside the trainers' warm start; "" for none."""
    spelling: Spelling = PLAIN_WORDS
    min_count: int = 1
    """Words that demonstrations hold more seldom are unknown to the policy."""
    policies: Mapping[str, str] = field(default_factory=dict)
    """Folders of further shipped policies: that of "shipped-hard" under "hard"."""
    essential: Mapping[str, str] = field(default_factory=dict)
    """Per task type, a regular expression that is found in an episode's possible commands, one a line, if the essential
    step was taken; types that are left out have none that could be told."""
    mixture: Mapping[str, Any] = field(default_factory=dict)
    """The family of generated tasks, as large as a data set's, that may be mixed into demonstrations of its tasks."""
    slips: bool = False
    """Whether the environment lists its ``commands``, so that demonstrations can show recovery from impossible ones."""

    def skill_options(self) -> dict[str, Any]:
        """The reset option by which an episode is shown another skill than the library's; none without `skill`."""
        return {"skill_text": load_reference(self.skill)} if self.skill else {}

    def demonstrator(self, info: Mapping[str, Any], errs: bool) -> Demonstrator:
        """Makes the expert of an episode from its first info; one that ``errs`` leaves out the essential step."""
        made: Demonstrator = load_reference(self.expert)(info, errs)
        return made
