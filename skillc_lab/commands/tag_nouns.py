"""``skillc tools tag-nouns``: find the nouns of a catalogue's names beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.goals import keep_nouns, noun_tagger
from skillc_lab.cli.command import Command, complain, say


@dataclass(frozen=True)
class TagNounsOptions:
    """Find the nouns of all names of a catalogue beforehand, so that a slow tagger need not run at purchases."""

    data: Annotated[str, tyro.conf.Positional]
    """A catalogue's folder, or one with upstream's files."""
    tagger: str = "spacy"
    """"builtin", "spacy" or the name of a spaCy model."""


def tag(options: TagNounsOptions) -> int:
    """Runs the command."""
    catalog, tagger = open_catalog(options.data), noun_tagger(options.tagger)
    folder = keep_nouns(catalog, tagger, lambda done: complain(f"{done:,} of {len(catalog):,}"))
    say(f"{len(catalog):,} products, tagger {tagger.id}: {folder}")
    return 0


COMMAND = Command(TagNounsOptions, tag)
