"""Trains a policy: ``python scripts/train.py preset=skillc env=alfworld model=PATH data=... steps=...``.

All settings are ``key=value`` words; ``--help`` lists them with their meaning and default.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from skillc_gym.errors import SkillCError
from trainers.commands.command_line import describe_settings, parse_config
from trainers.tracking.progress import make_progress


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status (130 after Ctrl-C)."""
    words = list(sys.argv[1:] if words is None else words)
    if not words or {"-h", "--help", "help"} & set(words):
        print(__doc__)
        print(describe_settings())
        return 0
    try:
        config = parse_config(words)
        from trainers.train import run

        result = run(config, progress=make_progress())
    except SkillCError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted while starting; the same command starts again.", file=sys.stderr)
        return 130
    return 0 if result.finished else 130


if __name__ == "__main__":
    sys.exit(main())
