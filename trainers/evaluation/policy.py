"""Evaluates a checkpoint with and without skills, as a function; the command line is ``skillc evaluate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.episodes import write_jsonl
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, engine_spec
from trainers.engines.text import TextEngine
from trainers.engines.types import Engine, Sampling
from trainers.evaluation.cuts import cut_warning
from trainers.evaluation.paired import paired_evaluation
from trainers.evaluation.paired_report import PairedReport
from trainers.evaluation.panel import Panel, open_panel
from trainers.evaluation.table import table
from trainers.evaluation.text_player import TextRollouts, text_rollouts
from trainers.models import load_model, within_model, without_bars
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import GroupRollouts, derive_seed
from trainers.session import chat_tokens, load_tokenizer, make_rollouts
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import make_folder, provenance, write_json

__all__ = ["PolicyReport", "checkpoint_engine", "evaluate_policy", "table"]


@dataclass(frozen=True)
class PolicyReport:
    """A paired evaluation and the settings it was made with.

    Attributes:
        paired: The evaluation.
        config: Its settings.
        greedy: The same panel played greedily, if that was asked for.
        usage: Tokens and cost of an engine that answers in words; both evaluations together.
    """

    paired: PairedReport
    config: TrainConfig
    greedy: PairedReport | None = None
    usage: Mapping[str, Any] | None = None

    def save_all(self, folder: Path) -> None:
        """Writes ``report.json``, ``transcripts.jsonl``, ``config.json``, ``versions.json``; ``usage.json`` if known.

        The greedy evaluation goes into the folder ``greedy`` beneath, in the same form.
        """
        make_folder(folder)
        self.paired.save(folder / "report.json")
        write_jsonl(folder / "transcripts.jsonl", self.paired.episodes)
        write_json(folder / "config.json", self.config.to_json())
        write_json(folder / "versions.json", provenance())
        if self.usage is not None:
            write_json(folder / "usage.json", self.usage)
        if self.greedy is not None:
            PolicyReport(self.greedy, self.config.with_(eval_greedy=True)).save_all(folder / "greedy")


def evaluate_policy(
    config: TrainConfig,
    *,
    per_type: int | None = None,
    attempts: int = 1,
    greedy_too: bool = False,
    engine: Engine | TextEngine | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> PolicyReport:
    """Plays a split's tasks with and without the skill.

    Args:
        config: The policy (``model``), the environment, and the sampling (``eval_temperature``, ``eval_greedy``).
        per_type: A fixed panel of so many tasks per type; the whole split by default.
        attempts: How often each task is played in each condition, for pass@k.
        greedy_too: Play the panel once more greedily.
        engine: Plays instead of the configured one.
        progress: Told how many episodes are done.
        folder: Where an engine that answers in words keeps finished episodes (``journal.jsonl``), to go on after an
            interruption; None for nowhere.

    Raises:
        SkillCError: For missing models, data, extras and unknown names, as in training.
    """
    progress = progress or SilentProgress()
    panel = open_panel(config, per_type)
    rollouts = _rollouts(config, engine, folder)
    rollouts.on_progress = lambda done, total: progress.phase("episodes", done, total)
    progress.start(f"{config.model} on {config.split}: {len(panel.tasks)} tasks, with and without skills", 0, 1)
    try:
        paired = _play(rollouts, panel, config, Sampling(config.eval_temperature, config.eval_greedy), attempts)
        greedy = _play(rollouts, panel, config, Sampling(greedy=True), 1) if greedy_too else None
        max_context = None if isinstance(rollouts, TextRollouts) else rollouts.max_context
        if warning := cut_warning(paired, max_context):
            progress.note(warning)
    finally:
        rollouts.close()
        progress.close()
    return PolicyReport(paired, config, greedy, rollouts.usage() if isinstance(rollouts, TextRollouts) else None)


def _rollouts(
    config: TrainConfig, engine: Engine | TextEngine | None, folder: Path | None
) -> GroupRollouts | TextRollouts:
    for_text = engine_spec(config.engine).for_text
    if isinstance(engine, TextEngine):
        return text_rollouts(config, engine, folder)
    if engine is None and for_text is not None:
        return text_rollouts(config, for_text(config), folder)
    config = within_model(config)
    chat = chat_tokens(config, load_tokenizer(config))
    with without_bars():
        return make_rollouts(config, chat, engine or checkpoint_engine(config, chat))


def _play(
    rollouts: GroupRollouts | TextRollouts, panel: Panel, config: TrainConfig, sampling: Sampling, attempts: int
) -> PairedReport:
    return paired_evaluation(
        rollouts,
        panel.tasks,
        seed=derive_seed(config.seed, 4),
        sampling=sampling,
        attempts=attempts,
        identity=panel.identity,
        best_scores=panel.best_scores,
    )


def checkpoint_engine(config: TrainConfig, chat: ChatTokens) -> Engine:
    """The configured engine over the configured checkpoint."""
    checkpoint = CheckpointModel(chat.eos_ids, config, lambda: load_model(config))
    return engine_spec(config.engine).for_checkpoint(checkpoint)
