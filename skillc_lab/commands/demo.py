"""``skillc demo``: evaluate a small policy, train it, evaluate it again, draw the report.

With --quick nothing is trained: shipped policies play held-out tasks with and without the skill, in a minute.
"""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.cli.command import Command, complain, refuse_options, say
from skillc_lab.commands.demonstration import DemoOptions, check_same, run_demo, run_demo_versus
from skillc_lab.report import choose_tasks, group_by_task, make_report
from skillc_lab.tables import Table, points, rate
from trainers.base import PACKAGES, fetched_trained, hardest_start, named_folder, shipped_policy, shipped_trained_policy
from trainers.config import TrainConfig
from trainers.evaluation import evaluate_policy
from trainers.models import load_model, load_plain_tokenizer, without_bars
from trainers.tracking import Progress, complete_settings, make_folder, make_progress, write_json

_WIDTH = 78
_FIGURES = {"sr_with": rate, "sr_without": rate, "gap": points}
_NO_TRAINED = (
    "No trained policy comes with this version: `skillc demo` trains one in about five minutes, and\n"
    "`skillc demo --quick --policy runs/demo/policy` then shows it beside its start."
)
_UNTRAINED = "`skillc train --model {model}` goes on from here; --policy FOLDER shows what it made beside its start."
_NOT_FETCHED = (
    "`skillc get-model {model}-trained` fetches what it became without its skill, and shows it beside its start."
)


def _run(options: DemoOptions) -> int:
    if options.quick:
        result = run_quick_demo(options, progress=make_progress())
        say(describe_quick_demo(result, options.model))
        if options.open_page:
            open_page(Path(result["page"]))
        return 0
    alone = options.versus in ("none", options.method)
    summary = run_demo(options, progress=make_progress()) if alone else run_demo_versus(options, say=complain)
    if not summary["finished"]:
        complain(f"Interrupted after {summary['steps']} updates; the same command goes on from there.")
        return 130
    say(describe(summary))
    return 0


def open_page(path: Path) -> bool:
    """Opens a page in the user's browser from a terminal of a graphical session; tells whether one took it."""
    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(sys.stdout.isatty() and screen and webbrowser.open(path.resolve().as_uri()))


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
            shown.append(f"{100 * summary[f'sr_{arm}_{when}']:5.1f} % [{100 * low:.0f}, {100 * high:.0f}]".rjust(18))
        yield f"  {arm + ' skills':<15} {'  ->  '.join(shown)}"


def _points(change: Mapping[str, Any]) -> str:
    low, high = change["interval"]
    return f"{change['points']:+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}]"


# Without training -----------------------------------------------------------------------------------------------------


def quick_policies(options: DemoOptions) -> dict[str, Path]:
    """Folders of the policies: "start", and "trained" where there is one; a MissingDataError where none is there."""
    if options.policy is not None and not (options.policy / "config.json").is_file():
        raise MissingDataError(f"There is no checkpoint folder {options.policy}; make one with `skillc demo`.")
    if options.model is not None:
        start = named_folder(options.model, options.env) or Path(options.model)
        trained = options.policy or fetched_trained(options.model)
    else:
        try:
            start = shipped_policy(options.env, hardest_start(options.env))
        except MissingDataError:
            if options.policy is None:
                raise
            return {"start": options.policy}
        trained = options.policy or shipped_trained_policy(options.env)
    return {"start": start, **({"trained": trained} if trained else {})}


def _played(options: DemoOptions, policy: Path) -> TrainConfig:
    if options.model is None:
        own = policy if policy == options.policy else None
        training = replace(options, quick=True, data="generated", policy=own).training()
        return replace(training, split=options.split, model=str(policy))
    given = {"env": options.env, "model": str(policy), "seed": options.seed, "share_prefixes": True}
    settings, _ = complete_settings({**given, "split": options.split, **options.further_settings()}, learning=False)
    return TrainConfig(**settings)


def run_quick_demo(options: DemoOptions, *, progress: Progress) -> dict[str, Any]:
    """Evaluates the start and the trained policy on held-out tasks, with and without the skill, and writes the page.

    Each policy's evaluation goes into the folder of its name.

    Returns:
        The summary, as ``summary.json`` has it: split, seconds, the page, each policy's success by its name, and one
        task's commands side by side as ``example``.

    Raises:
        ConfigError: Tasks are named that the shipped policies do not know, or too few of them.
    """
    refuse_options(options, ("method", "versus", "steps"), "--quick")
    if options.data not in (None, "generated"):
        raise ConfigError(
            f"--quick plays shipped policies, which know generated tasks only, got --data {options.data}; leave --data "
            "out, or leave --quick out to train on these tasks."
        )
    if options.held_out is not None and options.held_out < 1:
        raise ConfigError(f"The held-out tasks per task type must be at least 1, got {options.held_out}.")
    started, folder = time.perf_counter(), options.folder
    # A language model takes its time: half as many tasks.
    per_type = options.held_out or max(1, options.tasks.held_out_per_type // (20 if options.model else 10))
    settings = {name: _played(options, policy) for name, policy in quick_policies(options).items()}
    for held_out in settings.values():
        # A checkpoint that is broken is found before minutes are spent on playing another one.
        with without_bars():
            load_plain_tokenizer(held_out)
            load_model(held_out)
    make_folder(folder)
    check_same(options)
    reports = {}
    for name, held_out in settings.items():
        report = evaluate_policy(held_out, per_type=per_type, folder=folder / name, progress=progress)
        report.save_all(folder / name)
        reports[name] = report.paired
    first, *later = (folder / name for name in settings)
    title = "A policy that needs its skill" + ", and the same one trained to do without" * bool(later)
    shown, before = (later[-1], first) if later else (first, None)
    summary = {
        "split": options.split,
        "policies": {name: report.overall.to_json() for name, report in reports.items()},
        "example": side_by_side(_example(*(report.episodes for report in reports.values()))),
        "page": str(make_report(shown, before=before, out=folder / "report", title=title).page),
        "seconds": round(time.perf_counter() - started, 1),
    }
    write_json(folder / "summary.json", summary)
    return summary


def _hint(model: str | None) -> str:
    if model is None:
        return _NO_TRAINED
    return (_NOT_FETCHED if f"{model}-trained" in PACKAGES else _UNTRAINED).format(model=model)


def describe_quick_demo(summary: Mapping[str, Any], model: str | None = None) -> str:
    """Puts the summary into lines: one task's commands side by side, both policies' rates, and what to do next."""
    found = summary["policies"]
    rows = [
        [name, *(form(each[what], each[f"{what}_interval"]) for what, form in _FIGURES.items())]
        for name, each in found.items()
    ]
    parts = [
        f"\nA task that the skill decides, chosen for that; the same seed each time:\n\n{summary['example']}\n",
        f"Success in per cent on {found['start']['n']} held-out tasks of {summary['split']} (95 % intervals):\n",
        Table(["policy", "with the skill", "without", "gap"], rows, numbers=(1, 2, 3)).text(),
        "" if "trained" in found else f"\n{_hint(model)}",
        f"\n{summary['seconds']:.0f} seconds. Page with every figure and transcripts: {summary['page']}",
    ]
    return "\n".join(part for part in parts if part)


def _example(start: Sequence[Episode], trained: Sequence[Episode] = ()) -> dict[str, Episode]:
    """Episodes of the task that shows most, by policy and condition: the skill decides it before training."""
    task, *_ = choose_tasks(start, trained or start, 2)  # of one policy alone, a failure where there is any
    with_skill, without = group_by_task(start)[task].pair
    after = {"trained, without": group_by_task(trained)[task].without_skill[0]} if trained else {}
    return {"start, with the skill": with_skill, "start, without": without, **after}


def side_by_side(episodes: Mapping[str, Episode]) -> str:
    """A task's commands in columns, one for each episode; the same command again and again is written once."""
    width = _WIDTH // len(episodes)
    columns = [[_fit(command, width) for command in _commands(episode)] for episode in episodes.values()]
    goal = next(iter(episodes.values())).goal
    return f"Task: {goal}\n\n{Table([*episodes], [*zip_longest(*columns, fillvalue='')]).text()}"


def _commands(episode: Episode) -> list[str]:
    said = [(command, len(list(times))) for command, times in groupby(turn.action for turn in episode.turns)]
    lines = [command if times == 1 else f"{command} ({times} times)" for command, times in said]
    return [*lines, f"= {'solved' if episode.won else 'not solved'} in {len(episode)} steps"]


def _fit(text: str, width: int) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) < width else f"{plain[: width - 4]}..."


COMMAND = Command(
    DemoOptions, _run, "interrupted; the same command goes on from what is finished (--quick plays again)."
)
