"""What people read: pages from templates beside the code that fills them in, every value escaped; lines of text."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["page", "printable", "resource"]

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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
