"""Evaluates a checkpoint with and without skills, as a function; the command line is ``skillc evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import ConfigError
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, engine_spec
from trainers.engines.types import Engine, Sampling
from trainers.evaluation.paired import paired_evaluation
from trainers.evaluation.paired_report import PairedCounts, PairedReport
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import stream_seed
from trainers.rollout.task_sampling import panel_of
from trainers.session import chat_format, load_model, load_tokenizer, make_rollouts, tasks_of, without_bars
from trainers.tracking.progress import Progress, SilentProgress, short_type
from trainers.tracking.run_folder import make_folder, provenance, write_json

__all__ = ["PolicyReport", "evaluate_policy", "table"]


@dataclass(frozen=True)
class PolicyReport:
    """A paired evaluation and the settings it was made with."""

    paired: PairedReport
    config: TrainConfig

    def save_all(self, folder: Path) -> None:
        """Writes ``report.json``, ``transcripts.jsonl``, ``config.json`` and ``versions.json``."""
        make_folder(folder)
        self.paired.save(folder / "report.json")
        write_jsonl(folder / "transcripts.jsonl", self.paired.episodes)
        write_json(folder / "config.json", self.config.to_json())
        write_json(folder / "versions.json", provenance())


def evaluate_policy(
    config: TrainConfig,
    *,
    per_type: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> PolicyReport:
    """Plays a split's tasks once with and once without the skill.

    Args:
        config: The policy (``model``), the environment, and the sampling (``eval_temperature``, ``eval_greedy``).
        per_type: A fixed panel of so many tasks per type; the whole split by default.
        engine: Plays instead of the configured one.
        progress: Told how many episodes are done.

    Raises:
        SkillCError: For missing models, data, extras and unknown names, as in training.
    """
    if per_type is not None and per_type < 1:
        raise ConfigError(f"per_type, the tasks per type of a panel, must be at least 1, got {per_type}.")
    progress = progress or SilentProgress()
    tasks = tasks_of(config)
    chosen = sorted(tasks) if per_type is None else panel_of(tasks, per_type, config.seed)
    tokenizer = load_tokenizer(config)
    chat = ChatTokens(tokenizer, growing=chat_format(config).form == "conversation")
    with without_bars():
        rollouts = make_rollouts(config, chat, engine or _engine(config, chat))
    rollouts.on_progress = lambda done, total: progress.phase("episodes", done, total)
    progress.start(f"{config.model} on {config.split}: {len(chosen)} tasks, with and without skills", 0, 1)
    try:
        paired = paired_evaluation(
            rollouts,
            chosen,
            seed=stream_seed(config.seed, 4),
            sampling=Sampling(config.eval_temperature, config.eval_greedy),
        )
    finally:
        rollouts.close()
        progress.close()
    return PolicyReport(paired, config)


def _engine(config: TrainConfig, chat: ChatTokens) -> Engine:
    checkpoint = CheckpointModel(chat.eos_ids, config, lambda: load_model(config))
    return engine_spec(config.engine).for_checkpoint(checkpoint)


def table(report: PairedReport) -> str:
    """The report as lines of text, rates in percent with their 95 % intervals."""
    rows = [*report.per_type.items(), ("all", report.overall)]
    lines = [f"{'type':<10}{'n':>5}  {'with skills':^18}  {'without':^18}  {'gap':^18}"]
    return "\n".join([*lines, *(_line(short_type(kind), counts) for kind, counts in rows)])


def _line(name: str, counts: PairedCounts) -> str:
    figures = (
        (counts.sr_with, counts.sr_with_interval),
        (counts.sr_without, counts.sr_without_interval),
        (counts.gap, counts.gap_interval),
    )
    cells = [f"{100 * rate:5.1f} [{100 * i.low:5.1f},{100 * i.high:6.1f}]" for rate, i in figures]
    return f"{name:<10}{counts.n:>5}  " + "  ".join(cells)
