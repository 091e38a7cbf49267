"""What people see: pages from templates, every value escaped; lines of text; text drawn as a picture.

Pictures are for ``render_mode="rgb_array"`` and what films it.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skillc_gym.errors import needs_extra

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["page", "printable", "resource", "text_picture"]

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WIDTH, HEIGHT, MARGIN = 960, 720, 12
LETTER = (6, 11)
"""Pixels that a letter of the fixed-width font takes."""
_INK, _PAPER = (29, 35, 48), (250, 250, 247)


def printable(text: str) -> str:
    """The text without what would steer a terminal, turn its letters around, or cannot be written as UTF-8."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def page(package: str, template: str, **values: Any) -> str:
    """Fills in a template of a package's folder; half a surrogate pair becomes a question mark, as files need it."""
    return _templates(package).get_template(template).render(**values).encode("utf-8", "replace").decode("utf-8")


@functools.cache
def resource(package: str, name: str) -> str:
    """The text of a file in a package's folder."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


@functools.cache
def _templates(package: str) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(functools.partial(resource, package))
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def text_picture(text: str) -> NDArray[np.uint8]:
    """Draws a text in a fixed-width font, wrapped, twice as large where it fits; what does not fit at all is cut off.

    Characters outside Latin-1 are drawn as question marks. MissingExtraError if Pillow is not installed.

    Returns:
        uint8 of shape (720, 960, 3): every picture has the same shape, as films need it.
    """
    with needs_extra("Pillow", "render"):
        from PIL import Image, ImageDraw, ImageFont
    scale = 2 if len(_wrapped(text, 2)) <= _rows(2) else 1
    lines = _wrapped(text, scale)[: _rows(scale)]
    image = Image.new("RGB", (WIDTH // scale, HEIGHT // scale), _PAPER)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()
    for row, line in enumerate(lines):
        place = (MARGIN // scale, MARGIN // scale + row * LETTER[1])
        draw.text(place, line.encode("latin-1", "replace").decode("latin-1"), fill=_INK, font=font)
    # Whole pixels only: letters of a bitmap font stay sharp.
    return np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.NEAREST), dtype=np.uint8)


def _rows(scale: int) -> int:
    return (HEIGHT - 2 * MARGIN) // (LETTER[1] * scale)


def _wrapped(text: str, scale: int) -> Sequence[str]:
    columns = (WIDTH - 2 * MARGIN) // (LETTER[0] * scale)
    # The pages of a shop can be long; nothing beyond what fits is looked at.
    shown = text[: 4 * columns * _rows(1)].expandtabs(4)
    return [part for line in shown.splitlines() for part in textwrap.wrap(line, columns, drop_whitespace=False) or [""]]
