"""``skillc tools card``: write the card of an environment or a policy for a model hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skillc_gym.errors import unknown_name
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, say
from skillc_lab.commands.cards import environment_card, policy_card

__all__ = ["COMMAND", "CardOptions"]


@dataclass(frozen=True)
class CardOptions:
    """Write the card of an environment or of a policy, in the form that model hubs read.

    Example: skillc tools card policy runs/mine/policy --evaluation runs/mine/after --out runs/mine/policy/README.md
    """

    what: Annotated[str, tyro.conf.Positional]
    """env or policy."""
    of: Annotated[str, tyro.conf.Positional]
    """Name of the environment, or checkpoint folder of the policy."""
    evaluation: Path | None = None
    """Folder of an evaluation of the policy, for the card's figures."""
    out: Path | None = None
    """File to write; printed if none."""


def card(options: CardOptions) -> int:
    """Runs the command."""
    if options.what not in ("env", "policy"):
        raise unknown_name("kind of card", options.what, ("env", "policy"))
    text = (
        environment_card(options.of)
        if options.what == "env"
        else policy_card(Path(options.of), evaluation=options.evaluation)
    )
    if options.out is None:
        say(text.rstrip("\n"))
    else:
        replace_file(options.out, [text.encode("utf-8")])
        say(str(options.out))
    return 0


COMMAND = Command(CardOptions, card)
