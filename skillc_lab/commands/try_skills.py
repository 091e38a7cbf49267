"""``skillc skills test``: measure whether skills help a model, hurt it or do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from skill_library import BUILT_IN, SkillLibrary, library_folder, load_library
from skillc_gym.envs.registry import short_type
from skillc_gym.errors import ConfigError, MissingExtraError, require_name, unknown_name
from skillc_lab.cli.command import Command, say
from skillc_lab.commands.evaluate import completed_settings, configured, model_name, task_lines, usage_table
from skillc_lab.report import make_report
from skillc_lab.skills.effect import SkillTest
from skillc_lab.skills.evals import EVALS_FILE, SkillEval, cases_of, next_iteration, read_evals, write_workspace
from trainers.base import Count, Share
from trainers.config import Settings, TrainConfig
from trainers.evaluation import PolicyReport, evaluate_policy
from trainers.rollout import panel_of, tasks_of
from trainers.stats import MARGIN
from trainers.tracking import RunFolder, make_progress

PER_TYPE = 8
MAIN = (
    *("skills", "model", "env", "data", "split", "margin", "per_type", "tasks", "attempts", "out"),
    *("base_url", "engine", "eval_temperature", "eval_greedy", "seed", "max_reply_tokens", "max_context"),
)
"""The options that matter most."""


@dataclass(frozen=True)
class SkillTestOptions:
    """Measure whether skills help a model, hurt it or do nothing: each task is played with them and without.

    The verdict is pass where the whole 95 % interval of the difference in success lies above the margin, fail where it
    lies below minus the margin, and neutral elsewhere; the exit status is 1 for fail. Other settings are those of
    skillc evaluate.

    A skill's own test cases (evals/evals.json) are played if it brings any, each naming a task_id or a task_type of the
    environment, unless a panel is named. The results lie as the page on evaluation at agentskills.io lays them out.

    Example: skillc skills test alfworld --model shipped --data generated
    """

    skills: Annotated[str, tyro.conf.Positional]
    """A library by name or folder, or the folder of one skill."""
    settings: Settings
    margin: Share = MARGIN
    """The smallest difference in success that counts, as a share: 0.05 is five points."""
    per_type: Count | None = None
    """A fixed panel of so many tasks per type; 8 if neither it nor --tasks is given and the skills bring no evals."""
    tasks: Path | None = None
    """A file with a panel: one task id a line."""
    attempts: int = 1
    """How often each task is played in each condition."""
    out: Path | None = None
    """Folder for the results; NAME-workspace/iteration-N if none, N the next that has none."""
    base_url: str | None = None
    """Address of a server with OpenAI's interface, up to /v1, for --engine openai; its key is in OPENAI_API_KEY."""


def _run(options: SkillTestOptions) -> int:
    config = configured(options.settings, options.base_url).with_(library=options.skills)
    library = load_library(options.skills)
    evals = _own_evals(options, config)
    named = task_lines(options.tasks) if options.tasks else [task for found in evals.values() for task in found]
    per_type = options.per_type or PER_TYPE
    tasks = _panel(config, library, named, per_type)
    out = options.out or next_iteration(Path(f"{model_name(library.name)}-workspace"))
    with RunFolder(out).locked():
        report = evaluate_policy(
            config,
            per_type=None if tasks else per_type,
            tasks=tasks or None,
            attempts=options.attempts,
            memory="library",
            progress=make_progress(),
            folder=out,
        )
        report.save_all(out)
        test = SkillTest(report.paired, options.margin)
        panel = report.paired.panel_sha256
        about = {"library": library.name, "model": config.model, "env": config.env, "panel_sha256": panel}
        cases = cases_of(report.paired, evals)
        write_workspace(test, cases, out, about)
    _tell(test, report, graded_in_words=any(case.assertions for case in cases))
    say(f"Results: {out}")
    _draw(out, f"{library.name} with {model_name(config.model)}: {test.overall.words()}")
    return int(test.overall.verdict == "fail")


def _own_evals(options: SkillTestOptions, config: TrainConfig) -> Mapping[SkillEval, Sequence[str]]:
    """The test cases that the skills bring, and their tasks; none where the panel is named."""
    if options.per_type is not None and options.tasks is not None:
        raise ConfigError("A panel is so many tasks of each type (--per-type), or a list of tasks (--tasks), not both.")
    # A control, such as mine:blank, is tested on the cases of the skills that it is a control of.
    own = options.skills
    while (stem := own.rpartition(":")[0]) and not Path(own).exists():
        own = stem
    if own in BUILT_IN or options.per_type is not None or options.tasks is not None:
        return {}
    evals = read_evals(library_folder(own)[0])
    types = tasks_of(config) if evals else {}
    return {each: _tasks(each, types, config) for each in evals}


def _tell(test: SkillTest, report: PolicyReport, *, graded_in_words: bool) -> None:
    say(test.table())
    say("Intervals of types are wider, so that all of them hold at once in 95 of 100 tests.\n")
    words = test.overall.words()
    say(f"{words[:1].upper()}{words[1:]}.")
    if report.usage:
        say(f"\n{usage_table(report.usage)}\n")
    if report.paired.warning:
        say(f"Warning: {report.paired.warning}")
    if graded_in_words:
        say(f"Assertions of {EVALS_FILE} are words: the environment graded whether tasks are solved, and nothing else.")


def _draw(out: Path, title: str) -> None:
    """Writes the evaluation's page; a model behind a server is tested without what draws it, too."""
    try:
        say(f"Page: {make_report(out, title=title).page}")
    except MissingExtraError as error:
        say(f"No page: {error}")


def _panel(config: TrainConfig, library: SkillLibrary, tasks: Sequence[str], per_type: int) -> Sequence[str]:
    """Asks for all skills before anything is played; where no tasks are named, those of types that have one."""
    if not library.task_types:
        return tasks
    types = tasks_of(config)
    kinds = sorted({types[task] for task in tasks or types if task in types})
    served = tuple(filter(library.serves, kinds))
    if served and not tasks and len(served) < len(kinds):
        say(f"{library.name} serves {', '.join(map(short_type, served))}: tasks of these types are played.")
        return panel_of({task: kind for task, kind in types.items() if kind in served}, per_type, config.panel_seed)
    for kind in kinds:
        library.for_task(kind)
    return tasks


def _completed(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    if "library" in given:  # one that the policy's folder names is no matter
        raise ConfigError("skillc skills test has no use for --library; name the skills themselves, first.")
    return completed_settings(given)


def _tasks(each: SkillEval, types: Mapping[str, str], config: TrainConfig) -> Sequence[str]:
    asked = f"The test case {each.name} names it."
    if each.task_id:
        remedy = f"{asked} The split is {config.split!r}: split=..."
        return [require_name("task id", each.task_id, sorted(types), remedy)]
    own = {task: kind for task, kind in types.items() if each.task_type in (kind, short_type(kind))}
    if not own:
        raise unknown_name("task type", each.task_type, sorted(map(short_type, set(types.values()))), asked)
    return panel_of(own, PER_TYPE, config.panel_seed)


COMMAND = Command(
    SkillTestOptions,
    _run,
    "interrupted; no verdict. With --engine openai, the same command goes on.",
    MAIN,
    complete=_completed,
)
