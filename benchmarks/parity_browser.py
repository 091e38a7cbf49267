"""Plays episodes in the text environment and in a browser, over both transports, and compares every moment.

python -m benchmarks.parity_browser --data FOLDER --episodes 200 --out benchmarks/records/parity_browser.json
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.browser_episodes import Comparison, Trio, draw
from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.webshop.browser import TRANSPORTS
from skillc_gym.version import __version__

_SHOPS: tuple[dict[str, Any], ...] = (
    {},
    {"goals": "human"},
    {"compat": "upstream", "show_attributes": True},
)
"""The shops among which the episodes are shared out."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Plays the episodes of every shop."""
    found, played, started = Comparison(), Counter[str](), time.perf_counter()
    shares = [options.episodes - options.episodes // 5 * 2, options.episodes // 5, options.episodes // 5]
    for shop, share in zip(_SHOPS, shares, strict=True):
        trio = Trio(*TRANSPORTS, data=options.data, **shop)
        try:
            for number, (task_id, style, seed) in enumerate(draw(trio, share, options.seed)):
                steps = trio.play(task_id, style, seed, found)
                played.update({"episodes": 1, "actions": steps, f"{style.__name__} episodes": 1})
                if options.verbose and number % 10 == 9:
                    print(f"{played['episodes']} episodes, {len(found.differences)} differences", file=sys.stderr)
        finally:
            trio.close()
    return {
        "command": "python -m benchmarks.parity_browser " + " ".join(sys.argv[1:]),
        "versions": {"skillc-gym": __version__, "python": platform.python_version(), **_browser_versions()},
        "seconds": round(time.perf_counter() - started, 1),
        "played": dict(played),
        "compared": dict(found.counts),
        "differences": found.differences[: options.show],
        "number_of_differences": len(found.differences),
    }


def _browser_versions() -> dict[str, str]:
    import subprocess

    from skillc_gym.envs.webshop.browser import BrowserSettings

    browser, _ = BrowserSettings().programs()
    said = subprocess.run([browser, "--version"], capture_output=True, text=True, check=False).stdout.split()
    return {"Chromium": said[1] if len(said) > 1 else "unknown"}


def main(words: Sequence[str] | None = None) -> int:
    """Compares; returns 1 if anything differs."""
    parser = options_parser(__doc__)
    parser.add_argument("--data", default=None, help="WebShop products (default: WEBSHOP_DATA)")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=20, help="how many differences to keep")
    parser.add_argument("--verbose", action="store_true", help="say how far it is")
    return measurement(parser, measure, words, failed=lambda record: bool(record["differences"]))


if __name__ == "__main__":
    sys.exit(main())
