"""Evaluates a policy with and without skills on a split: ``python scripts/evaluate.py model=PATH split=valid_unseen``.

Settings are those of training (``python scripts/train.py --help``; eval_temperature, eval_greedy, seed and max_parallel
matter here), and these:

  out=FOLDER      where report.json and transcripts.jsonl are written (default: evaluations/<split>)
  per_type=N      a fixed panel of N tasks per type instead of the whole split
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from skillc_gym.errors import ConfigError, SkillCError
from trainers.commands.command_line import parse_config
from trainers.tracking.progress import make_progress
from trainers.tracking.run_folder import make_folder


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    words = list(sys.argv[1:] if words is None else words)
    if not words or {"-h", "--help", "help"} & set(words):
        print(__doc__)
        return 0
    own = dict(word.split("=", 1) for word in words if word.startswith(("out=", "per_type=")))
    try:
        config = parse_config([word for word in words if word.partition("=")[0] not in own])
        from trainers.evaluation.policy import evaluate_policy, table

        out = Path(own.get("out", f"evaluations/{config.split}"))
        make_folder(out)
        report = evaluate_policy(config, per_type=_per_type(own.get("per_type")), progress=make_progress())
        report.save_all(out)
    except SkillCError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; no report was written.", file=sys.stderr)
        return 130
    print(table(report.paired))
    print(f"\nReport and transcripts: {out}")
    return 0


def _per_type(text: str | None) -> int | None:
    if text is not None and not text.isdecimal():
        raise ConfigError(f"per_type={text!r} is no whole number; leave it out for the whole split.")
    return None if text is None else int(text)


if __name__ == "__main__":
    sys.exit(main())
