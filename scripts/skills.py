"""The command ``skillc skills``, from a checkout: ``python scripts/skills.py --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout instead of this folder
    from skillc_lab.cli.main import main

    sys.exit(main(["skills", *sys.argv[1:]]))
