"""The command ``skillc replay``, from a checkout: ``python scripts/replay.py --help``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout instead of this folder
    from skillc_lab.cli.main import main

    sys.exit(main(["replay", *sys.argv[1:]]))
