"""Finds the nouns of all names of a catalogue beforehand, so that a slow tagger (spaCy) need not run at purchases.

python -m scripts.tag_nouns FOLDER --tagger spacy
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from skillc_gym.envs.webshop.catalog.catalog import open_catalog
from skillc_gym.envs.webshop.goals.noun_table import keep_nouns
from skillc_gym.envs.webshop.goals.nouns import noun_tagger
from skillc_gym.errors import SkillCError


def main(arguments: Sequence[str] | None = None) -> int:
    """Tags a catalogue."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a catalogue's folder, or one with upstream's files")
    parser.add_argument("--tagger", default="spacy", help="'builtin', 'spacy' or the name of a model")
    options = parser.parse_args(arguments)
    try:
        catalog, tagger = open_catalog(options.data), noun_tagger(options.tagger)
        folder = keep_nouns(catalog, tagger, lambda done: print(f"{done:,} of {len(catalog):,}", file=sys.stderr))
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(catalog):,} products, tagger {tagger.id}: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
