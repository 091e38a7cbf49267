"""WordPresence: a text observation as a vector of which words stand in it, for agents that read no text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError

__all__ = ["WordPresence", "words_of"]

_WORD = re.compile(r"[a-z]+ \d+|[a-z]+")


class WordPresence(gymnasium.ObservationWrapper[NDArray[np.float32], Any, str], RecordConstructorArgs):
    """Turns text into float32 of shape (n,): 1 where a word occurs, else 0. A name with its number is one word.

    Args:
        env: A text environment.
        words: The words; by default those of the numbered commands of a :class:`DiscreteCommands` further in.

    Raises:
        ConfigError: There are no words.
    """

    def __init__(self, env: gymnasium.Env[str, Any], words: Iterable[str] | None = None) -> None:
        given = None if words is None else tuple(words)
        RecordConstructorArgs.__init__(self, words=given)
        gymnasium.ObservationWrapper.__init__(self, env)
        self.words = words_of(env.get_wrapper_attr("commands")) if given is None else given
        if not self.words:
            raise ConfigError("WordPresence needs at least one word")
        self._index = {word: index for index, word in enumerate(self.words)}
        self.observation_space = Box(0.0, 1.0, (len(self.words),), np.float32)

    def observation(self, observation: str) -> NDArray[np.float32]:
        """The vector of a text."""
        vector = np.zeros(len(self.words), np.float32)
        vector[[self._index[word] for word in _WORD.findall(observation.lower()) if word in self._index]] = 1.0
        return vector


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The words of some texts, sorted: "take mug 1 from desk 2" has "desk 2", "from", "mug 1", "take"."""
    return tuple(sorted({word for text in texts for word in _WORD.findall(text.lower())}))
