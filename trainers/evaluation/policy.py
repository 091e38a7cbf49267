"""Evaluates a checkpoint with and without skills, as a function; the command line is ``skillc evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillc_gym.episodes import write_jsonl
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, engine_spec
from trainers.engines.types import Engine, Sampling
from trainers.evaluation.cuts import cut_warning
from trainers.evaluation.paired import paired_evaluation
from trainers.evaluation.paired_report import PairedReport
from trainers.evaluation.panel import Panel, open_panel
from trainers.evaluation.table import table
from trainers.models import load_model, without_bars
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import GroupRollouts, derive_seed
from trainers.session import chat_format, load_tokenizer, make_rollouts
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import make_folder, provenance, write_json

__all__ = ["PolicyReport", "evaluate_policy", "table"]


@dataclass(frozen=True)
class PolicyReport:
    """A paired evaluation and the settings it was made with.

    Attributes:
        paired: The evaluation.
        config: Its settings.
        greedy: The same panel played greedily, if that was asked for.
    """

    paired: PairedReport
    config: TrainConfig
    greedy: PairedReport | None = None

    def save_all(self, folder: Path) -> None:
        """Writes ``report.json``, ``transcripts.jsonl``, ``config.json`` and ``versions.json``.

        The greedy evaluation goes into the folder ``greedy`` beneath, in the same form.
        """
        make_folder(folder)
        self.paired.save(folder / "report.json")
        write_jsonl(folder / "transcripts.jsonl", self.paired.episodes)
        write_json(folder / "config.json", self.config.to_json())
        write_json(folder / "versions.json", provenance())
        if self.greedy is not None:
            PolicyReport(self.greedy, self.config.with_(eval_greedy=True)).save_all(folder / "greedy")


def evaluate_policy(
    config: TrainConfig,
    *,
    per_type: int | None = None,
    attempts: int = 1,
    greedy_too: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> PolicyReport:
    """Plays a split's tasks with and without the skill.

    Args:
        config: The policy (``model``), the environment, and the sampling (``eval_temperature``, ``eval_greedy``).
        per_type: A fixed panel of so many tasks per type; the whole split by default.
        attempts: How often each task is played in each condition, for pass@k.
        greedy_too: Play the panel once more greedily.
        engine: Plays instead of the configured one.
        progress: Told how many episodes are done.

    Raises:
        SkillCError: For missing models, data, extras and unknown names, as in training.
    """
    progress = progress or SilentProgress()
    panel = open_panel(config, per_type)
    chat = ChatTokens(load_tokenizer(config), growing=chat_format(config).form == "conversation")
    with without_bars():
        rollouts = make_rollouts(config, chat, engine or _engine(config, chat))
    rollouts.on_progress = lambda done, total: progress.phase("episodes", done, total)
    progress.start(f"{config.model} on {config.split}: {len(panel.tasks)} tasks, with and without skills", 0, 1)
    try:
        paired = _play(rollouts, panel, config, Sampling(config.eval_temperature, config.eval_greedy), attempts)
        greedy = _play(rollouts, panel, config, Sampling(greedy=True), 1) if greedy_too else None
        if warning := cut_warning(paired, config.max_context):
            progress.note(warning)
    finally:
        rollouts.close()
        progress.close()
    return PolicyReport(paired, config, greedy)


def _play(
    rollouts: GroupRollouts, panel: Panel, config: TrainConfig, sampling: Sampling, attempts: int
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


def _engine(config: TrainConfig, chat: ChatTokens) -> Engine:
    checkpoint = CheckpointModel(chat.eos_ids, config, lambda: load_model(config))
    return engine_spec(config.engine).for_checkpoint(checkpoint)
