"""Pages from templates that lie next to the code which fills them in; every value is escaped."""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["page", "resource"]


def page(package: str, template: str, **values: Any) -> str:
    """Fills in a Jinja template.

    Args:
        package: The package whose folder holds it.
        template: Its file name.
        **values: What its names stand for.

    Returns:
        Text that can be written down: half of a surrogate pair, which a model may write, becomes a question mark.
    """
    return _template(package, template).render(**values).encode("utf-8", "replace").decode("utf-8")


@functools.cache
def resource(package: str, name: str) -> str:
    """The text of a file in a package's folder."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


@functools.cache
def _template(package: str, name: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    return environment.from_string(resource(package, name))
