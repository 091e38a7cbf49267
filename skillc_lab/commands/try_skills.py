"""``skillc skills test``: measure whether skills help a model, hurt it or do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from skill_library import SkillLibrary, load_library
from skillc_gym.envs.registry import short_type
from skillc_gym.errors import MissingExtraError
from skillc_lab.cli.command import Command, say
from skillc_lab.commands.evaluate import completed_settings, configured, model_name, task_lines
from skillc_lab.skills.effect import SkillTest, check_margin
from trainers.config import Settings, TrainConfig
from trainers.stats import MARGIN
from trainers.tracking import make_progress, write_json

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

    Example: skillc skills test alfworld --model shipped --data generated
    """

    skills: Annotated[str, tyro.conf.Positional]
    """A library by name or folder, or the folder of one skill."""
    settings: Settings
    margin: float = MARGIN
    """The smallest difference in success that counts, as a share: 0.05 is five points."""
    per_type: int | None = None
    """A fixed panel of so many tasks per type; 8 if neither it nor --tasks is given."""
    tasks: Path | None = None
    """A file with a panel: one task id a line."""
    attempts: int = 1
    """How often each task is played in each condition."""
    out: Path | None = None
    """Folder for the verdict, skill_test.json, beside report and transcripts; skill-tests/NAME-MODEL-HASH if none,
    with the skills' hash: other skills, another folder."""
    base_url: str | None = None
    """Address of a server with OpenAI's interface, up to /v1, for --engine openai; its key is in OPENAI_API_KEY."""


def try_skills(options: SkillTestOptions) -> int:
    """Runs the command."""
    check_margin(options.margin)
    library = load_library(options.skills)
    tasks = task_lines(options.tasks) if options.tasks else None
    config = configured(options.settings, options.base_url).with_(library=options.skills)
    config = _with_served_types(config, library, tasks or ())
    from trainers.evaluation import evaluate_policy, usage_table

    name = f"{model_name(library.name)}-{model_name(config.model)}-{library.sha256[:8]}"
    out = options.out or Path("skill-tests") / name
    report = evaluate_policy(
        config,
        per_type=PER_TYPE if options.per_type is None and tasks is None else options.per_type,
        tasks=tasks,
        attempts=options.attempts,
        memory="library",
        progress=make_progress(),
        folder=out,
    )
    report.save_all(out)
    test = SkillTest(report.paired, options.margin)
    about = {"library": library.name, "model": config.model, "env": config.env}
    write_json(out / "skill_test.json", {**about, "panel_sha256": report.paired.panel_sha256, **test.to_json()})
    verdict = test.overall.words()
    used = f"\n{usage_table(report.usage)}\n" if report.usage else ""
    warning = f"Warning: {report.paired.warning}" if report.paired.warning else ""
    widened = "Intervals of types are wider, so that all of them hold at once in 95 of 100 tests.\n"
    told = [test.table(), widened, f"{verdict[:1].upper()}{verdict[1:]}.", used, warning, f"Results: {out}"]
    say("\n".join(filter(None, told)))
    _draw(out, f"{library.name} with {model_name(config.model)}: {verdict}")
    return int(test.overall.verdict == "fail")


def _draw(out: Path, title: str) -> None:
    """Writes the evaluation's page; a model behind a server is tested without what draws it, too."""
    from skillc_lab.report import make_report

    try:
        say(f"Page: {make_report(out, title=title).page}")
    except MissingExtraError as error:
        say(f"No page: {error}")


def _with_served_types(config: TrainConfig, library: SkillLibrary, tasks: Sequence[str]) -> TrainConfig:
    """Asks for all skills before anything is played; where no tasks are named, those types are played that have one."""
    if not library.task_types:
        return config
    from trainers.rollout import tasks_of

    types = tasks_of(config)
    kinds = sorted({types[task] for task in tasks or types if task in types})
    served = tuple(filter(library.serves, kinds))
    if served and not tasks and len(served) < len(kinds):
        say(f"{library.name} serves {', '.join(map(short_type, served))}: tasks of these types are played.")
        return config.with_(task_types=served)
    for kind in kinds:
        library.for_task(kind)
    return config


COMMAND = Command(
    SkillTestOptions,
    try_skills,
    "interrupted; no verdict. With --engine openai, the same command goes on.",
    MAIN,
    complete=completed_settings,
)
