"""How large a generated house is."""

from __future__ import annotations

from dataclasses import dataclass

from skillc_gym.errors import unknown_name

__all__ = ["SIZES", "Size", "size_named"]


@dataclass(frozen=True)
class Size:
    """Bounds, both ends included.

    Attributes:
        receptacles: Number of receptacles.
        objects: Number of objects that can be carried, the wanted ones included.
    """

    receptacles: tuple[int, int]
    objects: tuple[int, int]


# "real" draws each kind of receptacle and object as the real scenes have it; its bounds are never reached.
SIZES: dict[str, Size] = {
    "small": Size(receptacles=(6, 9), objects=(4, 8)),
    "medium": Size(receptacles=(12, 16), objects=(12, 18)),
    "large": Size(receptacles=(20, 28), objects=(24, 36)),
    "real": Size(receptacles=(7, 80), objects=(8, 75)),
}


def size_named(name: str) -> Size:
    """Returns a size by its name.

    Raises:
        UnknownNameError: If there is no such size.
    """
    if name not in SIZES:
        raise unknown_name("size of a house", name, SIZES)
    return SIZES[name]
