"""``skillc evaluate``: evaluate a policy with and without skills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError
from skillc_lab.agents import get_agent
from skillc_lab.cli.command import Command, refuse_options, say
from skillc_lab.cli.help import agent_help
from skillc_lab.commands.train import complete_from_policy
from skillc_lab.tables import Table
from trainers.config import Settings, TrainConfig
from trainers.evaluation import TrialReport, evaluate_policy, report_table
from trainers.recipes import recipe_in
from trainers.tracking import RunFolder, make_progress

MAIN = (
    *("model", "env", "data", "split", "library", "chat", "out", "per_type", "tasks"),
    *("attempts", "greedy_too", "agent"),
    *("base_url", "engine", "eval_temperature", "eval_greedy", "seed", "max_reply_tokens", "max_context"),
)
"""The options that matter most."""


@dataclass(frozen=True)
class EvaluateOptions:
    """Evaluate a policy with and without skills on a split, each task in both conditions from the same seeds.

    Settings are those of training; --eval-temperature, --eval-greedy, --seed and --max-parallel matter here.

    With an agent named, its own options follow at the end: skillc help evaluate --agent expel

    What a policy was made with (wording of prompts, length of replies, step limit, sampling, environment) stands in its
    folder, and is taken where nothing else is given. Tasks are of the environment's held-out split unless --split names
    another. The same command goes on or plays again; a folder that holds another evaluation is refused.

    Example: skillc evaluate --model shipped --per-type 8
    """

    settings: Settings
    out: Path | None = None
    """Folder for report.json and transcripts.jsonl; evaluations/MODEL-SPLIT if none."""
    per_type: int | None = None
    """A fixed panel of so many tasks per type; the whole split if none."""
    tasks: Path | None = None
    """A file with a panel: one task id a line; a task that stands there several times is played once."""
    attempts: int = 1
    """How often each task is played in each condition; more than one gives pass@k."""
    greedy_too: bool = False
    """Play the panel once more greedily; its report goes into the folder greedy beneath."""
    agent: str = "zero-shot"
    """What the policy is shown beside the skill: zero-shot (nothing), react, reflexion (tries failed tasks again),
    expel, mem0, or an agent of your own as module:NAME."""
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the agent; on the command line ``agent.trials=5``."""
    memory: Literal["own", "library"] = "own"
    """What skill-injected episodes are shown: own (what the policy's method learned to show, where it keeps a memory)
    or library (the environment's skills)."""
    base_url: str | None = None
    """Address of a server with OpenAI's interface, up to /v1, for --engine openai; its key is in OPENAI_API_KEY."""


def _run(options: EvaluateOptions) -> int:
    config = configured(options.settings, options.base_url)
    agent = get_agent(options.agent, **options.agent_options)
    out = options.out or Path("evaluations") / f"{model_name(config.model)}-{config.split}"
    with RunFolder(out).locked():
        report = evaluate_policy(
            config,
            per_type=options.per_type,
            tasks=None if options.tasks is None else task_lines(options.tasks),
            attempts=options.attempts,
            greedy_too=options.greedy_too,
            agent=agent,
            memory=options.memory,
            progress=make_progress(),
            folder=out,
        )
        report.save_all(out)
    greedy = f"\n\nGreedily:\n{report_table(report.greedy)}" if report.greedy else ""
    trials = f"\n\nFailed tasks tried again, {agent.name}:\n{trial_table(report.trials)}" if report.trials else ""
    used = f"\n\n{usage_table(report.usage)}" if report.usage else ""
    say(f"{report_table(report.paired)}{greedy}{trials}{used}\n\nReport and transcripts: {out}")
    return 0


def trial_table(report: TrialReport) -> str:
    """Success by trial as lines of text, in percent."""
    both = zip(report.success(True), report.success(False), strict=True)
    rows = [
        ["1 try" if trial == 1 else f"{trial} tries", *(f"{100 * rate:.1f}" for rate in rates)]
        for trial, rates in enumerate(both, 1)
    ]
    return Table(["solved within", "  with skills", "  without"], rows, numbers=(1, 2)).text()


def usage_table(report: Mapping[str, Any]) -> str:
    """A usage report as lines of text, per condition."""
    heads = ["skill    ", "episodes", "replies", " tokens read", "   written", "      cost"]
    counts = ("episodes", "requests", "prompt_tokens", "completion_tokens")
    rows = [
        [name, *(row[count] for count in counts), "-" if row["cost"] is None else f"{row['cost']:.4f}"]
        for name, row in report.items()
    ]
    return Table(heads, rows, numbers=range(1, 6)).text()


def configured(settings: Settings, base_url: str | None) -> TrainConfig:
    """An evaluation's settings, with the address of a server among the engine's options if there is one."""
    config = settings.config()
    refuse_options(config, ("run", "resume"), "An evaluation", ", and name its folder by --out")
    if base_url is None:
        return config
    return config.with_(engine_options={**config.engine_options, "base_url": base_url})


def task_lines(path: Path) -> list[str]:
    """The task ids of a file, one a line; a ConfigError where it cannot be read, or names none."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"--tasks {path} cannot be read: {error}") from error
    if not any(lines):
        raise ConfigError(f"--tasks {path} names no task; it has one task id a line")
    return [line for line in lines if line]


def model_name(model: str) -> str:
    """A model's name or the end of its folder's, as a name of a file."""
    return re.sub(r"[^\w.-]+", "-", "-".join(Path(model).parts[-2:])).strip("-.") or "model"


def completed_settings(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What was typed, what the policy's folder says, and the split to test on."""
    found, notes = complete_from_policy(given, learning=False)
    env = str(found.get("env", TrainConfig.env))
    if "method" in given:
        recipe_in(env, str(given["method"]), found.get("method_options", {}))  # refuses options that it lacks
    held_out = env_spec(env).held_out_split
    return {"split": held_out or TrainConfig.split, **found}, notes


COMMAND = Command(
    EvaluateOptions,
    _run,
    "interrupted; no report was written. With --engine openai, the same command goes on.",
    MAIN,
    agent_help,
    completed_settings,
)
