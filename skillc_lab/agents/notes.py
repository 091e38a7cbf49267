"""Showing an episode what an agent brings, beside the library's skill or in its absence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skill_library import SkillText

Choose = Callable[[Mapping[str, Any]], SkillText | None]
"""From the info of a reset (task, type, goal, condition) to what the episode is shown; None for nothing."""
_GAP = "\n\n"


class ShowNotes(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Puts an agent's text behind the skill text of ``info``, where the prompt is made from it.

    ``info["skill"]``, ``skill_text`` and ``skill_sha256`` say all that the episode is shown; ``condition`` stays the
    switch of the library's skill. Episodes for which ``choose``, called with the info of each reset, gives nothing are
    left as they are.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], choose: Choose) -> None:
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, choose=choose)
        gymnasium.Wrapper.__init__(self, env)
        self._choose = choose
        self._shown: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, and asks what it is shown."""
        observation, info = self.env.reset(seed=seed, options=options)
        note = self._choose(info)
        self._shown = {} if note is None else _shown(info, note)
        return observation, {**info, **self._shown}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Passes the action on."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, **self._shown}


def _shown(info: dict[str, Any], note: SkillText) -> dict[str, Any]:
    name = "+".join(filter(None, (info.get("skill", ""), note.name)))
    text = _GAP.join(filter(None, (info.get("skill_text", ""), note.text)))
    return {
        "skill": name,
        "skill_text": text,
        "skill_sha256": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
    }
