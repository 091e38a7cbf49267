"""``skillc demo``: evaluate a small policy, train it, evaluate it again, draw the report."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError
from skillc_lab.cli.command import Command, complain, say
from skillc_lab.commands.demonstration import DemoConfig, check_same, run_demo, run_demo_versus
from skillc_lab.commands.quick_demo import describe_quick_demo, run_quick_demo
from trainers.base import SHIPPED, hardest_start
from trainers.recipes import RECOMMENDED
from trainers.tracking import make_progress

__all__ = ["COMMAND", "DemoConfig", "DemoOptions", "check_same", "describe", "open_page", "run_demo"]

_STEPS_OF_TWO = 25
"""Updates of two methods: by then they have parted."""


@dataclass(frozen=True)
class DemoOptions:
    """Train a small policy by two methods, evaluate it before and after, and draw the report.

    Both start from the same policy, one that hardly ever succeeds without its skills, on the same tasks; each has a
    process of its own where there are two cores. --versus none trains one method alone, from a start that succeeds now
    and then. An interrupted demonstration goes on where it stopped with the same command. With --quick nothing is
    trained: shipped policies play a few held-out tasks with the skill and without, which takes a minute.
    """

    quick: bool = False
    """Train nothing: play shipped policies on generated tasks, and show both conditions side by side."""
    open_page: bool = True
    """With --quick, open the page in the browser where there is a screen."""
    out: Path | None = None
    """Run folder; runs/demo if none, runs/quick with --quick."""
    env: str = "alfworld"
    """The environment."""
    data: str | None = None
    """"generated", or the environment's folder or archive; none takes ALFWORLD_DATA where that is set and the
    environment is alfworld, else generated tasks."""
    policy: Path | None = None
    """Warm-started policy; none takes a shipped one, and makes one first where none knows the tasks. With
    --quick, a trained policy to show beside the shipped start."""
    method: str = RECOMMENDED
    """The method."""
    versus: str = "grpo"
    """Another method to compare it with; none for none."""
    seed: int = 0
    """Seed of training and of the evaluations."""
    steps: int | None = None
    """Updates; 25 if none, 45 of one method alone."""
    held_out: int | None = None
    """Held-out tasks per task type, 0 for all; none for the environment's number, with --quick for a tenth of it."""
    held_out_splits: tuple[str, ...] = ()
    """Splits of the held-out tasks, the headline first; the environment's if none is named."""

    @property
    def other(self) -> str | None:
        """The other method, where there is one."""
        return None if self.versus in ("none", self.method) else self.versus

    def config(self) -> DemoConfig:
        """What the demonstration is asked to do."""
        variable = warm_started(self.env)[1].demo.data_variable
        found = os.environ.get(variable) if variable else None
        return DemoConfig(
            out=self.out or Path("runs/demo"),
            env=self.env,
            data=self.data or found or "generated",
            policy=self.policy,
            shipped=self._start(),
            preset=self.method,
            seed=self.seed,
            steps=self._updates() if self.steps is None else self.steps,
            held_out_per_type=self.held_out,
            held_out_splits=self.held_out_splits,
        )

    def _updates(self) -> int:
        return DemoConfig.steps if self.other is None else _STEPS_OF_TWO

    def _start(self) -> str:
        """The shipped policy on which methods part: the hard one, where the environment has it."""
        return SHIPPED if self.other is None else hardest_start(self.env)

    def quick_config(self) -> DemoConfig:
        """What the demonstration without training is asked to do.

        Raises:
            ConfigError: Tasks are named that the shipped policies do not know.
        """
        if self.data not in (None, "generated"):
            raise ConfigError(
                f"--quick plays shipped policies, which know generated tasks only, got --data {self.data}; leave "
                "--data out, or leave --quick out to train on these tasks."
            )
        out = self.out or Path("runs/quick")
        return DemoConfig(out, self.env, policy=self.policy, seed=self.seed, held_out_per_type=self.held_out)


def demo(options: DemoOptions) -> int:
    """Runs the command; 130 if it was interrupted."""
    if options.quick:
        return _quick(options)
    if options.other is None:
        summary = run_demo(options.config(), progress=make_progress())
    else:
        summary = run_demo_versus(options.config(), options.other, say=complain)
    if not summary["finished"]:
        complain(f"Interrupted after {summary['steps']} updates; the same command goes on from there.")
        return 130
    say(describe(summary))
    return 0


def _quick(options: DemoOptions) -> int:
    result = run_quick_demo(options.quick_config(), progress=make_progress())
    say(describe_quick_demo(result))
    if options.open_page:
        open_page(result.page)
    return 0


def open_page(path: Path) -> bool:
    """Opens a page in the user's browser, where there is a screen; tells whether one took it."""
    return _has_screen() and webbrowser.open(path.resolve().as_uri())


def _has_screen() -> bool:
    """Whether output goes to a terminal in a graphical session; elsewhere a browser might be a text one."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def describe(summary: Mapping[str, Any]) -> str:
    """Puts the summary into a few lines."""
    lines = [
        f"\nSuccess on {summary['games']} held-out tasks (95 % intervals), before and after "
        f"{summary['steps']} updates of {summary['preset']}:",
        *_rates(summary),
        f"  Without skills: {_points(summary['change_without'])}.",
    ]
    if other := summary.get("beside"):
        found = summary["differences"]
        lines += [
            f"The same of {other['preset']}, from the same start on the same tasks:",
            *_rates(other),
            f"{summary['preset']} minus {other['preset']}, without skills: {_points(found['without'])};",
            f"  with skills: {_points(found['with'])}. One run each: other seeds may differ by more.",
        ]
    lines.append(f"  {summary['seconds']:.0f} seconds in all. Page with pictures and transcripts: {summary['page']}")
    return "\n".join(lines)


def _rates(summary: Mapping[str, Any]) -> Iterator[str]:
    for arm in ("with", "without"):
        shown = []
        for when in ("before", "after"):
            low, high = summary[f"sr_{arm}_{when}_interval"]
            rate = f"{100 * summary[f'sr_{arm}_{when}']:5.1f} % [{100 * low:.0f}, {100 * high:.0f}]"
            shown.append(rate.rjust(18))
        yield f"  {arm + ' skills':<15} {'  ->  '.join(shown)}"


def _points(change: Mapping[str, Any]) -> str:
    low, high = change["interval"]
    return f"{change['points']:+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}]"


COMMAND = Command(
    DemoOptions, demo, "interrupted; the same command goes on from what is finished (--quick plays again)."
)
