"""The main line in one call: evaluate a warm-started policy, train it, evaluate it again, draw the report.

Two methods are two such demonstrations, from the same start on the same tasks, in a process each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import DemoTasks
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.report import RunRecords, make_report
from skillc_lab.studies import check_settings, cores, run_jobs
from trainers.base import REAL, SHIPPED, hardest_start, shipped_names, shipped_policy
from trainers.config import RECOMMENDED, TrainConfig
from trainers.evaluation import Change, PairedReport, compare_reports, evaluate_policy
from trainers.recipes import recipe_in
from trainers.rollout import tasks_of
from trainers.tracking import PlainProgress, Progress, complete_settings, make_folder, read_object, write_json
from trainers.training import run
from trainers.warmstart import CARD, data_recipe, make_policy, shipped_recipe, small_policy_settings

Say = Callable[[str], object]

_QUICK: Mapping[str, Any] = {"share_prefixes": True, "engine_options": {"draft_tokens": 3}}
"""What the engine in this process does to take half the time, at the same figures up to rounding."""
_APART = ("model", "run", *_QUICK)
_WARM_START = "warm_start"
_OWN: Mapping[str, str] = {
    **{name: f"--{name}" for name in ("env", "data", "method", "steps", "seed")},
    **{"model": "--policy", "run": "--out", "resume": "--out, another folder"},
}
"""Settings of training that a demonstration tells of, by the option that decides them."""


@dataclass(frozen=True)
class DemoOptions:
    """Train a small policy by two methods, evaluate it before and after, and draw the report.

    Both start from the same policy, one that hardly ever succeeds without its skills, on the same tasks; each has a
    process of its own where there are two cores. --versus none trains one method alone. An interrupted demonstration
    goes on where it stopped with the same command. With --quick nothing is trained: shipped policies play a few
    held-out tasks with the skill and without, which takes a minute.
    """

    quick: bool = False
    """Train nothing: play shipped policies on generated tasks, and show both conditions side by side."""
    open_page: bool = True
    """With --quick, open the page in the browser where there is a screen."""
    out: Path | None = None
    """Run folder; runs/demo if none, runs/quick with --quick, in other worlds than ALFWorld with their name behind."""
    env: str = "alfworld"
    """The environment."""
    data: str | None = None
    """"generated", or the environment's folder or archive; none takes ALFWORLD_DATA where that is set and the
    environment is alfworld, else generated tasks."""
    policy: Path | None = None
    """Warm-started policy; none takes a shipped one, and makes one first where none knows the tasks. With
    --quick, a trained policy to show beside its start."""
    model: str | None = None
    """With --quick, a fetched start in place of the shipped one: smollm2-household."""
    method: str = RECOMMENDED
    """The method."""
    versus: str = "grpo"
    """Another method to compare it with; none for none."""
    seed: int = 0
    """Seed of training and of the evaluations."""
    steps: int = 25
    """Updates; by 25 two methods have parted."""
    held_out: int | None = None
    """Held-out tasks per task type, 0 for all; none for the environment's number, with --quick for a tenth of it, or a
    twentieth with --model."""
    held_out_split: str | None = None
    """Split of the held-out tasks; none for the environment's."""
    train_options: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of training; singly as train.group_size=4."""

    @property
    def folder(self) -> Path:
        """Where all of it goes."""
        world = "" if self.env == type(self).env else f"_{self.env}"
        model = f"_{Path(self.model).name}" if self.model else ""
        return self.out or Path(f"runs/{'quick' if self.quick else 'demo'}{world}{model}")

    @property
    def tasks(self) -> DemoTasks:
        """What the environment decides."""
        return warm_started(self.env)[1].demo

    @property
    def place(self) -> str:
        """Where the tasks come from."""
        variable = self.tasks.data_variable
        return self.data or (os.environ.get(variable) if variable else None) or "generated"

    @property
    def shipped(self) -> Path | None:
        """The shipped policy that knows the tasks and from which methods part; None where none does."""
        name = hardest_start(self.env)
        name = name if self.place == "generated" else name.replace(SHIPPED, REAL, 1)
        return shipped_policy(self.env, name) if name in shipped_names(self.env) else None

    @property
    def start(self) -> Path:
        """The folder of the warm-started policy."""
        return self.policy or self.shipped or self.folder / _WARM_START

    @property
    def split(self) -> str:
        """Split of the held-out tasks."""
        return self.tasks.held_out_split if self.held_out_split is None else self.held_out_split

    @property
    def per_type(self) -> int | None:
        """Held-out tasks per task type; None for the whole split."""
        return (self.tasks.held_out_per_type if self.held_out is None else self.held_out) or None

    def settings(self) -> dict[str, Any]:
        """What decides the figures, as JSON-able values."""
        chosen = {name: getattr(self, name) for name in ("env", "method", "seed", "steps", "train_options")}
        chosen |= {"policy": None if self.policy is None else str(self.policy)}
        chosen |= {"data": "generated" if self.quick else self.place}
        chosen |= {name: value for name in ("quick", "model") if (value := getattr(self, name))}
        if self.policy is not None and (playing := self._otherwise()):
            chosen["playing"] = playing
        return {**chosen, "held_out": self.per_type, "held_out_splits": [self.split]}

    def further_settings(self) -> dict[str, Any]:
        """Those of training that were named, by their current names."""
        given = check_settings(self.train_options, "--train.SETTING")
        if taken := sorted(_OWN.keys() & given.keys()):
            raise ConfigError(f"--train.{taken[0]} is the demonstration's own: give {_OWN[taken[0]]}.")
        return given

    def training(self) -> TrainConfig:
        """The training configuration behind the demonstration."""
        # What halves the time might not go with a policy or an option of the user's own.
        theirs = self.train_options.keys() & {"engine", "attention", "lora_dropout"}
        theirs |= {"policy"} if self.policy is not None and not self.quick else set()
        own, _ = self.playing()
        quick = {} if theirs or "engine" in own else _QUICK
        chosen = {"method": self.method, "steps": self.steps, "seed": self.seed}
        chosen |= {"model": str(self.start), "run": str(self.folder)}
        small = small_policy_settings(self.env, self.place)
        return TrainConfig(**{**chosen, **small, **own, **quick, **self.further_settings()})

    def playing(self) -> tuple[dict[str, Any], list[str]]:
        """How a policy of one's own plays the demonstration's tasks, as its folder says; and lines on it."""
        if self.policy is None or self.policy.name == _WARM_START:
            return {}, []
        small = small_policy_settings(self.env, self.place)
        tasks: dict[str, Any] = {name: small[name] for name in ("env", "data", "env_options") if name in small}
        tasks |= {"task_types": None, "env_wrappers": {}}
        given = {**tasks, **self.further_settings(), "model": str(self.policy)}
        own, said = complete_settings(given, learning=False)
        return {**own, **tasks}, said

    def _otherwise(self) -> dict[str, Any]:
        """What a policy of one's own plays with, where that is not what the demonstration's does."""
        plain, own = (each.training().to_json() for each in (replace(self, policy=None), self))
        return {name: own[name] for name in own if own[name] != plain[name] and name not in _APART}


def run_demo(options: DemoOptions, *, progress: Progress) -> dict[str, Any]:
    """Runs the demonstration of one method, or goes on with one that was interrupted.

    Returns:
        The summary, as ``summary.json`` has it: seconds, steps, success of the held-out tasks with and without skills
        before and after training (with 95 % intervals), the gap per task type, and where pictures and transcripts are.
    """
    training = options.training()
    _check(options)
    for line in options.playing()[1]:
        progress.note(line)
    with _stop_watch(options.folder / "elapsed.json") as elapsed:
        _warm_start(options, progress.note)
        before = _evaluation(options, training, "before", progress)
        result = run(training, progress=progress)
        if not result.finished:
            return {"finished": False, "steps": result.step}
        after = _evaluation(options, replace(training, model=str(result.policy)), "after", progress)
        summary = {
            "finished": True,
            **{name: getattr(options, name) for name in ("env", "seed", "steps")},
            "preset": options.method,
            "data": options.place,
            "split": options.split,
            **_compared(before, after),
            **_page(options),
            "transcripts": [str(options.folder / name / "transcripts.jsonl") for name in ("before", "after")],
            "seconds": round(elapsed(), 1),
        }
    write_json(options.folder / "summary.json", summary)
    return summary


def check_same(options: DemoOptions) -> None:
    """Writes down a demonstration's settings; a ConfigError where its folder holds another one, or something else."""
    others = [name for name in ("config.json", "metrics.jsonl", "before", "start") if (options.folder / name).exists()]
    if others and not (options.folder / "demo.json").exists():
        raise ConfigError(
            f"{options.folder} holds something else than a demonstration ({', '.join(others)}); name another folder "
            "with --out."
        )
    # As JSON gives it back: a tuple would differ from the list that it becomes.
    path, wanted = options.folder / "demo.json", json.loads(json.dumps(options.settings()))
    found = read_object(path) if path.exists() else wanted
    differing = [
        f"{name} was {found.get(name)!r} and is {wanted.get(name)!r}"
        for name in sorted({*found, *wanted})
        if found.get(name) != wanted.get(name)
    ]
    if differing:
        raise ConfigError(
            f"{options.folder} holds another demonstration ({'; '.join(differing)}); name another folder."
        )
    write_json(path, wanted)


def _check(options: DemoOptions) -> None:
    """Finds mistakes before anything takes time, and writes the settings down."""
    training = options.training()
    if options.model is not None:
        raise ConfigError("--model goes with --quick; `skillc train --model` trains it.")
    recipe_in(training.env, training.method, training.method_options)
    if options.held_out is not None and options.held_out < 0:
        raise ConfigError(f"held_out must be at least 1, or 0 for all, got {options.held_out}.")
    if options.policy is not None and not options.policy.is_dir():
        raise MissingDataError(
            f"There is no checkpoint folder {options.policy}; make one with `skillc tools make-policy`."
        )
    for split in (training.split, options.split):
        tasks_of(replace(training, split=split))
    make_folder(options.folder)
    check_same(options)


@contextmanager
def _stop_watch(path: Path) -> Iterator[Callable[[], float]]:
    """Counts seconds, those of earlier, interrupted invocations included."""
    before = float(read_object(path)["seconds"]) if path.exists() else 0.0
    started = time.perf_counter()
    try:
        yield lambda: before + time.perf_counter() - started
    finally:
        write_json(path, {"seconds": before + time.perf_counter() - started})


def _warm_start(options: DemoOptions, say: Say) -> None:
    """Clones a policy from demonstrations in the training split where none knows the tasks, unless that was done."""
    if options.policy or options.shipped or (options.start / CARD).exists():
        return
    say(f"Warm-starting a policy by behaviour cloning in {options.place}; once, some half an hour on a core.")
    generated = options.place == "generated"
    make_policy(shipped_recipe(options.env) if generated else data_recipe(options.place, options.env), options.start)


def _evaluation(options: DemoOptions, training: TrainConfig, when: str, progress: Progress) -> PairedReport:
    """Evaluates a policy on held-out tasks; what lies there from an interrupted run is taken."""
    folder = options.folder / when
    if not (folder / "report.json").exists():
        progress.note(f"Playing held-out tasks of {options.split}: {when}.")
        held_out = replace(training, split=options.split)
        report = evaluate_policy(held_out, per_type=options.per_type, folder=folder, progress=progress)
        report.save_all(folder)
    return PairedReport.load(folder / "report.json")


def _page(options: DemoOptions, versus: Sequence[Path] = ()) -> dict[str, Any]:
    """Writes the report; its files, as a summary names them."""
    made = make_report(options.folder, versus=versus)
    return {"page": str(made.page), "pictures": {name: str(path) for name, path in sorted(made.figures.items())}}


def _compared(before: PairedReport, after: PairedReport) -> dict[str, Any]:
    found: dict[str, Any] = {"games": before.overall.n, "panel_sha256": before.panel_sha256}
    for when, report in (("before", before), ("after", after)):
        rates = report.overall.to_json()
        for arm in ("sr_with", "sr_without"):
            found |= {f"{arm}_{when}": rates[arm], f"{arm}_{when}_interval": rates[f"{arm}_interval"]}
        found[f"gap_{when}"] = {kind: counts.gap for kind, counts in report.per_type.items()}
    return {**found, "change_without": _points(compare_reports(before, after, skill=False)["overall"])}


def _points(change: Change) -> dict[str, Any]:
    return {"points": 100 * change.change, "interval": [100 * end for end in change.interval]}


# Two methods ----------------------------------------------------------------------------------------------------------


def run_demo_versus(options: DemoOptions, *, say: Say) -> dict[str, Any]:
    """Runs the demonstration of a method and of another one, or goes on with what was interrupted.

    The other one's run lies in ``beside/`` of the folder; what each of them says goes to ``logs/``, and line by line
    with the method's name before it to ``say``.

    Returns:
        The first method's summary, with that of the other under ``beside`` and how they differ under ``differences``.
    """
    _check(options)
    with _stop_watch(options.folder / "elapsed_beside.json") as elapsed:
        _warm_start(options, say)
        policy = None if options.policy is None and options.shipped else options.start
        other = replace(options, method=options.versus, out=options.folder / "beside", policy=policy)
        _check(other)
        _run_both((options, other), say)
        first, second = _summary_of(options), _summary_of(other)
        if not (first["finished"] and second["finished"]):
            return {"finished": False, "steps": min(first["steps"], second["steps"])}
        reports = [PairedReport.load(each.folder / "after" / "report.json") for each in (other, options)]
        changes = {arm: compare_reports(*reports, skill=arm == "with")["overall"] for arm in ("without", "with")}
        summary = {
            **first,
            "beside": second,
            "differences": {arm: _points(each) for arm, each in changes.items()},
            **_page(options, versus=[other.folder]),
            "seconds": round(elapsed(), 1),
        }
    write_json(options.folder / "summary.json", summary)
    return summary


def _run_both(both: Sequence[DemoOptions], say: Say) -> None:
    """Runs what is not finished, in as many processes as there are cores, at most two."""
    left = [each for each in both if not (each.folder / "summary.json").is_file()]
    logs = {each.method: both[0].folder / "logs" / f"{each.method.replace(':', '_')}.log" for each in left}
    with log_relay(logs, say):
        jobs = run_jobs(_demonstrate, {logs[each.method]: each for each in left}, min(2, cores()))
        failed = [job.method for job, well in jobs if not well]
    if failed:
        named = ", ".join(str(logs[name]) for name in failed)
        raise ConfigError(f"{' and '.join(failed)} failed; {named} says why. The same command goes on with it")


def _demonstrate(options: DemoOptions) -> None:
    """What a process does."""
    run_demo(options, progress=PlainProgress(sys.stdout))


@contextmanager
def log_relay(logs: Mapping[str, Path], say: Say, every: float = 0.5) -> Iterator[Callable[[], None]]:
    """Passes on what is added to several logs, line by line with each one's name; yields what does so at once."""
    at = {name: path.stat().st_size if path.exists() else 0 for name, path in logs.items()}
    width, closing = max(map(len, logs), default=0), Event()

    def pass_on() -> None:
        for name, path in logs.items():
            whole, end, _ = path.read_bytes()[at[name] :].rpartition(b"\n") if path.exists() else (b"", b"", b"")
            at[name] += len(whole + end)
            for line in whole.decode("utf-8", "replace").splitlines():
                say(f"{name:<{width}}  {line}")

    def follow() -> None:
        while not closing.wait(every):
            pass_on()
        pass_on()

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield pass_on
    finally:
        closing.set()
        thread.join()


def _summary_of(options: DemoOptions) -> dict[str, Any]:
    path = options.folder / "summary.json"
    if path.is_file():
        return dict(read_object(path))
    begun = (options.folder / "metrics.jsonl").is_file()
    return {"finished": False, "steps": RunRecords.read(options.folder).last_step if begun else 0}
