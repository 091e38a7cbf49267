"""Unicode: the space of strings up to a length, for observations and actions of language environments."""

from __future__ import annotations

import multiprocessing
from types import ModuleType
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Space, Text, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces, create_shared_memory
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError, InvalidActionError

__all__ = ["Unicode", "require_text", "text_space"]

_ASCII = "".join(map(chr, range(32, 127)))
_SAMPLE_LENGTH = 16


class Unicode(Text):
    """The strings of at most ``max_length`` characters, whatever the characters.

    A :class:`gymnasium.spaces.Text`, so libraries that dispatch on it accept it, with what text environments need:
    membership is a matter of length alone (``Text`` refuses spaces by default and "café" even with
    ``string.printable``), and samples are short ASCII instead of up to ``max_length`` characters. Vector environments
    batch it as a tuple of strings. Shared memory is refused: ``AsyncVectorEnv`` would hand out frozen text without a
    word, so it must be made with ``shared_memory=False``.

    Args:
        max_length: Longest string, in characters (code points).
        min_length: Shortest string, in characters.
        seed: Seed of :meth:`sample`.

    Raises:
        ValueError: The lengths are not ``0 <= min_length <= max_length``.

    Examples:
        >>> space = Unicode(100)
        >>> "A café, 3 €?" in space, "x" * 101 in space
        (True, False)
    """

    # Text builds these tables per instance; thousands of environments share one copy here.
    _char_set = frozenset(_ASCII)
    _char_list = tuple(_ASCII)
    _char_index = {char: np.int32(index) for index, char in enumerate(_ASCII)}  # noqa: RUF012 - Text's attribute
    _char_str = _ASCII

    def __init__(self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None) -> None:
        if not 0 <= min_length <= max_length:
            raise ValueError(f"Expected 0 <= min_length <= max_length, got {min_length=} and {max_length=}")
        self.min_length = int(min_length)
        self.max_length = int(max_length)
        Space.__init__(self, dtype=str, seed=seed)

    def contains(self, x: Any) -> bool:
        """Tells whether ``x`` is a string of allowed length."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def sample(
        self,
        mask: tuple[int | None, NDArray[np.int8] | None] | None = None,
        probability: tuple[int | None, NDArray[np.float64] | None] | None = None,
    ) -> str:
        """Draws a short string of printable ASCII; ``mask`` and ``probability`` are as in ``Text``."""
        if mask is not None or probability is not None:
            return super().sample(mask=mask, probability=probability)
        longest = min(self.max_length, max(self.min_length, _SAMPLE_LENGTH))
        length = int(self.np_random.integers(self.min_length, longest + 1))
        return "".join(_ASCII[index] for index in self.np_random.integers(len(_ASCII), size=length))

    def __repr__(self) -> str:
        return f"Unicode({self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, Unicode) and self.min_length == other.min_length and self.max_length == other.max_length
        )

    # Spaces are mutable (they hold a generator), so like every Gymnasium space this one is not hashable.
    __hash__ = None  # type: ignore[assignment]


def require_text(action: object) -> str:
    """Returns an action that is text; InvalidActionError, which says what was expected, for anything else."""
    if isinstance(action, str):
        return action
    hint = "; decode it first" if isinstance(action, bytes) else ""
    raise InvalidActionError(
        f"An action is a str such as 'look', got {type(action).__name__} ({action!r:.40}){hint}. Numbered actions need "
        "skillc_gym.wrappers.DiscreteCommands."
    )


def text_space(env: gymnasium.Env[Any, Any], which: str, wrapper: str) -> Text:
    """An environment's ``observation_space`` or ``action_space``; ConfigError if it is no ``Text``."""
    space = getattr(env, which)
    if not isinstance(space, Text):
        raise ConfigError(
            f"{wrapper} needs a text environment; the {which} of {env} is {space}, expected Unicode or Text"
        )
    return space


@create_shared_memory.register(Unicode)
def _refuse_shared_memory(space: Unicode, n: int = 1, ctx: ModuleType = multiprocessing) -> NoReturn:
    raise CustomSpaceError(
        f"{space} cannot live in shared memory (text would arrive frozen at its first value); "
        "make the vector environment with AsyncVectorEnv(..., shared_memory=False), a SyncVectorEnv, "
        "or skillc_gym.vector.PairedVectorEnv"
    )


# The three register functions of different shapes; a function that never returns serves all.
@flatdim.register(Unicode)
@flatten_space.register(Unicode)
@flatten.register(Unicode)
def _refuse_flattening(space: Space[Any], x: Any = "") -> NoReturn:  # type: ignore[misc]
    raise CustomSpaceError(
        f"{space} cannot be flattened: its text may hold any characters. Leave FlattenObservation out, "
        "and turn text into numbers with your model's tokenizer, in gymnasium.wrappers.TransformObservation"
    )


# Gymnasium asks its registry for the first space's type, not for that of the argument, which is a sequence of them.
batch_differing_spaces.register(Unicode, Tuple)


@is_space_dtype_shape_equiv.register(Unicode)
def _holds_alike(space_1: Unicode, space_2: Space[Any]) -> bool:
    return isinstance(space_2, Text)
