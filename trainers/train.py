"""A training run as a function: ``run(config)``; the command line is ``skillc train``."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, missing_extra
from trainers.config import TrainConfig
from trainers.engines.registry import TrainerModel, engine_spec
from trainers.recipes import get_preset
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.task_sampling import TaskSplit, split_tasks
from trainers.session import (
    chat_format,
    load_model,
    load_tokenizer,
    make_rollouts,
    tasks_of,
    without_bars,
)
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import RunFolder, make_folder, read_checkpoint

if TYPE_CHECKING:
    from trainers.backends.trl.trainer import SkillTrainer
    from trainers.engines import Engine

__all__ = ["RunResult", "run"]


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    folder: RunFolder
    """Its files."""
    step: int
    """Updates done."""
    finished: bool
    """False if it was interrupted; calling :func:`run` again goes on."""

    @property
    def policy(self) -> Path:
        """The trained policy, a transformers checkpoint folder; there once the run has finished."""
        return self.folder.policy_path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return self.folder.metrics()


def run(config: TrainConfig, *, progress: Progress | None = None) -> RunResult:
    """Trains a policy, or goes on with a run that was interrupted.

    Ctrl-C finishes the current update, saves a checkpoint and returns; pressed twice, it drops the update, and the run
    goes on from its last checkpoint.

    Args:
        config: All settings.
        progress: Who is told what happens; nobody by default.

    Raises:
        MissingExtraError: If the extra ``train`` is not installed.
        CheckpointError: If the folder's checkpoint belongs to another configuration.
        UnknownNameError: For a preset, environment or option that does not exist.
        MissingDataError: If there is no model or no data where the configuration says.
        ConfigError: If the run's folder cannot be made, or another process trains in it.
    """
    _require_train()
    progress = progress or SilentProgress()
    try:
        with without_bars(), ExitStack() as stack:
            trainer, start = _prepare(config, progress, stack)
            with _interruptible(trainer, progress):
                finished = _train(trainer, start)
            return _finish(trainer, finished, progress)
    finally:
        progress.close()


def _require_train() -> None:
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise missing_extra("trl, with torch and transformers,", "train") from error


def _prepare(config: TrainConfig, progress: Progress, stack: ExitStack) -> tuple[SkillTrainer, Path | None]:
    """Builds the trainer; returns it with the checkpoint that it has been restored from."""
    from trainers.backends.trl.trainer import SkillTrainer

    tasks = tasks_of(config)
    split = split_tasks(tasks, config.panel_per_type, config.seed)
    method = get_preset(config.preset, **config.method_options).start(
        config.env_spec.ordered(tasks.values()), config.steps
    )
    folder = RunFolder(config.run_folder)
    checkpoint = folder.to_resume(config)
    saved = read_checkpoint(checkpoint, config, split.digest) if checkpoint else None
    tokenizer = load_tokenizer(config)
    chat = ChatTokens(tokenizer, growing=chat_format(config).form == "conversation")
    rollouts = make_rollouts(config, chat, _NoEngine())
    model = load_model(config)
    make_folder(folder.path)
    trainer = SkillTrainer(
        config,
        folder=folder,
        split=split,
        method=method,
        rollouts=rollouts,
        progress=progress,
        model=model,
        processing_class=tokenizer,
        peft_config=_lora(config),
    )
    rollouts.engine = _engine(config, trainer, chat)
    if trainer.is_world_process_zero():
        stack.enter_context(folder.locked())
        folder.prepare(config, _task_record(split))
        folder.truncate(saved["step"] if saved else None)
    if saved:
        method.load_state_dict(saved["method"])
        trainer.counters = dict(saved["counters"])
    step = int(saved["step"]) if saved else 0
    title = f"{config.preset} on {config.env}: {len(split.training)} training tasks, panel of {len(split.panel)}"
    progress.start(title, step, config.steps)
    if checkpoint:
        progress.note(f"Going on from {checkpoint} (step {step}).")
    return trainer, checkpoint


def _task_record(split: TaskSplit) -> dict[str, Any]:
    return {"digest": split.digest, "training": len(split.training), "panel": list(split.panel)}


def _lora(config: TrainConfig) -> Any:
    if not config.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora_rank, lora_alpha=config.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def _engine(config: TrainConfig, trainer: SkillTrainer, chat: ChatTokens) -> Engine:
    import torch

    return engine_spec(config.engine).for_trainer(
        TrainerModel(
            trainer.accelerator.unwrap_model(trainer.model),
            chat.eos_ids,
            config,
            autocast=torch.bfloat16 if trainer.args.bf16 else None,
            sharded=trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled,
            processes=trainer.accelerator.num_processes,
            server=getattr(trainer, "vllm_generation", None),
            sync=trainer.sync_vllm,
        )
    )


def _train(trainer: SkillTrainer, checkpoint: Path | None) -> bool:
    """Trains to the end unless interrupted; tells whether it got there."""
    config = trainer.config
    try:
        if checkpoint is None:
            trainer.validate()
        elif checkpoint_step(checkpoint) >= config.steps:
            trainer.state.global_step = config.steps * config.minibatches
            trainer._load_from_checkpoint(str(checkpoint))
            return True
        if trainer.stop_requested:
            return False
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except KeyboardInterrupt:
        return False
    return trainer.update >= config.steps


def checkpoint_step(path: Path) -> int:
    """The update after which a checkpoint was written."""
    import json

    return int(json.loads((path / "run.json").read_text(encoding="utf-8"))["step"])


def _finish(trainer: SkillTrainer, finished: bool, progress: Progress) -> RunResult:
    folder = trainer.folder
    trainer.shared.rollouts.close()
    if finished:
        trainer.save_model(str(folder.policy_path))
        progress.note(f"Finished after {trainer.update} steps; the policy is in {folder.policy_path}.")
    else:
        saved = folder.checkpoints()
        where = f"from step {checkpoint_step(saved[-1])}" if saved else "from the start"
        progress.note(f"Stopped. The same command with resume=auto goes on {where} in {folder.path}.")
    return RunResult(folder, trainer.update, finished)


@contextmanager
def _interruptible(trainer: SkillTrainer, progress: Progress) -> Iterator[None]:
    """Turns the first Ctrl-C into a request to stop after the update; the second one is Python's own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)

    def ask(_number: int, _frame: Any) -> None:
        trainer.stop_requested = True
        signal.signal(signal.SIGINT, previous)
        progress.note("Stopping after this step, then saving. Press Ctrl-C again to stop at once and drop the step.")

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


class _NoEngine:
    """Stands in until the trainer owns the model that generates."""

    def generate(self, requests: Any, sampling: Any) -> Any:
        raise ConfigError("The rollouts have no engine yet.")

    def release(self, keys: Any) -> None:
        """Nothing is kept."""

    def reset(self) -> None:
        """Nothing is kept."""
