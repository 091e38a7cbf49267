"""A training run as a function: ``run(config)``; the command line is ``skillc train``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError
from trainers.backends import BACKENDS
from trainers.base import launch_warning, stop_requests
from trainers.config import TrainConfig
from trainers.engines.registry import check_engine
from trainers.models import bfloat16_warning, check_model, hub_access, load_tokenizer, within_model, without_bars
from trainers.recipes import Recipe, recipe_in
from trainers.recipes.method import Method
from trainers.rollout import library_sha256, make_chat, make_prompts, make_rollouts, tasks_of, token_policy
from trainers.rollout.opening import chat_sha256, require_library, split_tasks, tasks_sha256, words_sha256
from trainers.tracking import weights_sha256, write_json
from trainers.tracking.checkpoints import read_checkpoint, read_meta, restoring
from trainers.tracking.loggers import LOGGERS
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import POLICY_FILES, RunFolder

if TYPE_CHECKING:
    from trainers.learner import Backend, Learner

__all__ = ["RunResult", "prepare", "run", "what_acted"]


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    folder: RunFolder
    """Its files."""
    step: int
    """Updates done."""
    finished: bool
    """False if it was interrupted; calling :func:`run` again goes on."""
    stopped: bool = False
    """Whether it was asked to stop, and did not end by itself or by its time."""

    @property
    def policy(self) -> Path:
        """The trained policy, a transformers checkpoint folder; there once the run has finished."""
        return self.folder.policy_path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return self.folder.metrics()

    @property
    def acted(self) -> dict[str, Any]:
        """What the method's own parts did, see :func:`what_acted`; ``what_acted.json`` in the folder."""
        return what_acted(self.metrics)


def what_acted(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a method's own parts did in a run, so that a score is not taken for theirs where they did nothing.

    From the lines of metrics.jsonl; None where the method has no such part, or an older version did not record it.
    ``skill_share``: the share of rollouts that saw a skill, mean over updates and task types. ``bank_size``;
    ``bank_uses``, episodes that were shown an entry; ``entries_added``. ``distracted_share``: of the rollouts with a
    text those whose text did not fit, on purpose. ``teacher_part``: what a teacher adds to a token's loss (opid, rlsd,
    pi_distill: advantage), its mean size. ``relabelled_updates``: the share of updates with a row beside the rollouts'.
    ``withdrawn_types``: the first update in which a task type had lost its skill; ``withdrawn_at``: in which all had.
    """
    updates = [record for record in records if record["event"] == "train"]
    banks = [update["memory"] for update in updates if "size" in update.get("memory", {})]
    shares = [update["rollout_fraction_with"] for update in updates if update.get("rollout_fraction_with")]
    curricula = [update for update in updates if "active" in update]
    shown = sorted({kind for update in curricula for kind in update["active"]})
    seen = [{*update["active"], *_seen(update)} for update in curricula]
    without = {kind: [i for i, kinds in enumerate(seen) if kind not in kinds] for kind in shown}
    withdrawn = {kind: curricula[places[0]]["step"] for kind, places in without.items() if places}
    return {
        "skill_share": _mean([fmean(found.values()) for found in shares]),
        "bank_size": banks[-1]["size"] if banks else None,
        "bank_uses": _total(banks, "shown"),
        "entries_added": _total(banks, "added"),
        "distracted_share": _mean([update["distracted_share"] for update in updates if "distracted_share" in update]),
        "teacher_part": _mean([update["teacher_part"] or 0.0 for update in updates if "teacher_part" in update]),
        "relabelled_updates": _mean([update["extra_rows"] > 0 for update in updates if "extra_rows" in update]),
        "withdrawn_at": max(withdrawn.values()) if withdrawn and len(withdrawn) == len(shown) else None,
        "withdrawn_types": withdrawn,
    }


def _seen(update: Mapping[str, Any]) -> list[str]:
    """The types whose rollouts saw a skill, also those that were played ahead of its withdrawal."""
    return [kind for kind, share in (update.get("rollout_fraction_with") or {}).items() if share]


def _total(banks: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """The sum over a bank's records; None without a bank, and where a record does not say."""
    return sum(bank[name] for bank in banks) if banks and all(name in bank for bank in banks) else None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def run(config: TrainConfig, *, progress: Progress | None = None) -> RunResult:
    """Trains a policy, or goes on with a run that was interrupted.

    Ctrl-C or SIGTERM finishes the current update, saves a checkpoint and returns; a second one drops the update, and
    the run goes on from its last checkpoint.

    Args:
        config: All settings.
        progress: Who is told what happens; nobody by default.

    Raises:
        MissingExtraError: If the extra ``train`` is not installed.
        CheckpointError: If the folder's checkpoint belongs to another configuration.
        UnknownNameError: For a method, environment or option that does not exist.
        MissingDataError: If there is no model or no data where the configuration says.
        ConfigError: If the run's folder cannot be made, or another process trains in it.
        StorageError: If the disk is full or read-only.
    """
    check_engine(config.engine, config.engine_options, training=True)
    BACKENDS.get(config.backend).require()
    # One process speaks for all.
    progress = progress if progress is not None and _is_first_process() else SilentProgress()
    try:
        asked = filter(None, (config.model_path, config.reference_path, _encoder(config)))
        with without_bars(), hub_access(*asked), ExitStack() as stack:
            learner, checkpoint = prepare(config, progress, stack)

            def ask_to_stop() -> None:
                learner.stop_requested = True
                with suppress(RuntimeError):  # a signal may come while something is being written
                    progress.note(
                        "Stopping after this step, then saving. Press Ctrl-C again to stop at once and drop the step."
                    )

            with stop_requests(ask_to_stop):
                finished = _train(learner, checkpoint)
            return _finish(learner, finished)
    finally:
        progress.close()


def prepare(config: TrainConfig, progress: Progress, stack: ExitStack) -> tuple[Learner, Path | None]:
    """Builds all that a run needs; ``stack`` keeps its folder locked. Gives the learner and where its state is from."""
    from trainers.learner import Learner, Setup, make_objective

    recipe = _checked(config)
    tasks = tasks_of(config)
    split = split_tasks(tasks, config.panel_per_type, config.panel_seed)
    method = _method(config, recipe, config.env_spec.ordered(tasks.values()))
    config = within_model(config)
    tokenizer = load_tokenizer(config)
    chat = make_chat(config, tokenizer)
    folder = RunFolder(config.run_folder)
    if _is_first_process():
        # Before a checkpoint is chosen: another process may be about to write one, or to clear this one away.
        stack.enter_context(folder.locked())
    checkpoint = folder.to_resume(config, split.digest)
    prompts = make_prompts(config, chat)
    objective = make_objective(config, recipe, tokenizer.pad_token_id)
    read = {
        "library_sha256": library_sha256(config),
        "chat_sha256": chat_sha256(config),
        "tasks_sha256": tasks_sha256(config, tasks),
        "words_sha256": words_sha256(tokenizer),
    }
    if config.lora_rank or objective.needs_reference:  # else the checkpoint holds all weights
        paths = dict.fromkeys((config.model_path, config.reference_path))
        read["starts_sha256"] = " ".join(weights_sha256(Path(path)) for path in paths)
    if encoder := _encoder(config):
        read["encoder_sha256"] = weights_sha256(Path(encoder))
    saved = read_checkpoint(checkpoint, config, split.digest, read) if checkpoint else None
    backend: Backend = BACKENDS.get(config.backend).make(config, objective, tokenizer, progress)
    rollouts = make_rollouts(config, token_policy(config, chat, backend.engine(chat)))
    stack.callback(rollouts.close)
    loggers = [LOGGERS.get(name)() for name in config.report_to]
    setup = Setup(config, folder, split, method, rollouts, prompts, tokenizer.pad_token_id, progress, loggers, read)
    learner = Learner(setup, objective, backend, resumed=saved is not None)
    if learner.ahead is not None:
        stack.callback(learner.ahead.close)
    if saved and checkpoint:
        with restoring(checkpoint):
            learner.load_state_dict(saved)
    if learner.is_main:
        _open_files(learner, checkpoint, saved["step"] if saved else None, stack)
    _announce(learner, checkpoint)
    return learner, checkpoint


def _encoder(config: TrainConfig) -> str | None:
    """The sentence encoder by which the method's memory retrieves, if it does."""
    return getattr(recipe_in(config.env, config.method, config.method_options).memory, "embeddings", None)


def _checked(config: TrainConfig) -> Recipe:
    """The method's recipe; refuses a model or a library that is not there."""
    recipe = recipe_in(config.env, config.method, config.method_options)
    check_model(config.reference_path)
    check_model(config.model_path)  # before the environment's data: a name that is mistyped has no settings for them
    require_library(config)
    if config.skill_library is None:
        _require_no_reading(config, recipe)
    return recipe


def _require_no_reading(config: TrainConfig, recipe: Recipe) -> None:
    """Refuses what looks into the library, where the environment shows skills by a switch of its own."""
    memory = recipe.memory
    reading = {
        f"method={config.method}": memory.reads_library or getattr(memory, "start_with", "") == "library",
        f"the teacher of method={config.method}": any(loss.taught_behind == "with_skill" for loss in recipe.losses),
    }
    for name, reads in reading.items():
        if reads:
            raise ConfigError(
                f"{name} reads the skill library itself, and {config.env} shows skills by a switch of its own; leave "
                "that out and name the skills by library=FOLDER."
            )


def _method(config: TrainConfig, recipe: Recipe, types: Sequence[str]) -> Method:
    method, probe = (Method(recipe, types, config.steps) for _ in range(2))
    for kind in types:
        probe.n_plus(kind, config.group_size)  # refuses a group that is too small, before anything is played
    return method


def _open_files(learner: Learner, checkpoint: Path | None, step: int | None, stack: ExitStack) -> None:
    """Writes what a run's folder begins with, takes away what came after ``step``, and starts the loggers."""
    folder, split, config = learner.setup.folder, learner.setup.split, learner.config
    folder.prepare(config, {"digest": split.digest, "training": len(split.training), "panel": list(split.panel)})
    if not learner.finished:
        folder.write_versions(checkpoint)
    folder.truncate(step)
    for logger in learner.setup.loggers:
        logger.start(folder.path, config.to_json())
        stack.callback(logger.close)


def _announce(learner: Learner, checkpoint: Path | None) -> None:
    config, split, progress = learner.config, learner.setup.split, learner.setup.progress
    title = f"{config.method} on {config.env}: {len(split.training)} training tasks, panel of {len(split.panel)}"
    progress.start(title, learner.update, config.steps)
    for warning in filter(None, (launch_warning(learner.backend.num_processes), bfloat16_warning(config.precision))):
        progress.note(f"Warning: {warning}")
    if checkpoint:
        progress.note(f"Going on from {checkpoint} (step {learner.update}).")
    for path, fault in learner.setup.folder.saved.damaged.items():
        progress.note(f"Passed over {path}, which is damaged: {fault}.")


def _is_first_process() -> bool:
    """Whether this is the process that writes; known before a backend is."""
    return os.environ.get("RANK", "0") == "0"


def _train(learner: Learner, checkpoint: Path | None) -> bool:
    from trainers.learner import train

    if checkpoint and learner.finished:
        learner.backend.restore(checkpoint)
        return True
    try:
        return train(learner, checkpoint)
    except KeyboardInterrupt:
        return False


def _finish(learner: Learner, finished: bool) -> RunResult:
    folder, progress = learner.setup.folder, learner.setup.progress
    result = RunResult(folder, learner.update, finished, stopped=learner.stop_requested and not finished)
    if learner.is_main:
        write_json(folder.path / "what_acted.json", result.acted)
    if finished:
        # Asked of the process that writes: others may be on another machine, and a policy is saved by all together.
        kept = learner.config.load_best_at_end and learner.is_main and folder.best_path.is_dir()
        best = any(learner.backend.gather([kept]))
        with folder.new_policy(commit=learner.is_main) as path:
            if not best:
                learner.write_policy(path)
            elif learner.is_main:
                shutil.copytree(folder.best_path, path, ignore=shutil.ignore_patterns(POLICY_FILES))
        which = f", of update {folder.best_validation()['step']}," if kept else ""
        progress.note(f"Finished after {learner.update} steps; the policy{which} is in {folder.policy_path}.")
    else:
        saved = folder.saved.complete()
        where = f"from step {read_meta(saved[-1])['step']}" if saved else "from the start"
        how = "The same command" if learner.config.resume == "auto" else "The same command with resume=auto"
        progress.note(f"Stopped. {how} goes on {where} in {folder.path}.")
    return result
