"""Any text as an action of ALFWorld."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fuzz.actions import actions_target
from benchmarks.fuzz.games import GENERATOR
from benchmarks.fuzz.target import FuzzTarget
from skillc_gym.envs.alfworld import ALFWorldEnv
from skillc_gym.envs.base import TextTaskEnv

__all__ = ["TARGET"]

_PIECES = ("go to desk 1", "take ", " from ", "look", "\n", "\0", "  ", "1", "desk", "%s", "{0}", "\u2028", "é", "😀")


def _houses() -> Sequence[TextTaskEnv]:
    return [
        ALFWorldEnv(data="generated", generator=GENERATOR, domain_randomization=shuffled, render_mode=mode)
        for shuffled, mode in ((False, None), (True, None), (False, "ansi"))
    ]


TARGET = FuzzTarget(
    "The environment of houses takes any text in any order, with resets and returns between; it may never raise, and "
    "what is not admissible changes nothing.",
    actions_target(_houses, _PIECES),
)
