"""Evaluates a checkpoint with and without skills, as a function; the command line is ``skillc evaluate``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.panels import panel_hash
from trainers.base import Sampling, flat_options
from trainers.config import TrainConfig
from trainers.engines.random import derive_seed
from trainers.engines.registry import CHOOSING, engine_spec
from trainers.engines.text import TextEngine
from trainers.engines.types import Engine
from trainers.evaluation.agents import PANEL_SEED, EvaluatedAgent, RunningAgent, TrialReport
from trainers.evaluation.paired import PairedReport, action_warning, cut_warning, paired_evaluation
from trainers.evaluation.player import MEMORY_FILE, decisive_settings, policy_memory, policy_player
from trainers.models import bfloat16_warning, check_model
from trainers.rollout.opening import chat_sha256, open_env, panel_of, require_library, tasks_of
from trainers.tracking.files import NO_WEIGHTS, read_object, remove, sha256_of_file, weights_sha256, write_json
from trainers.tracking.policy_settings import unlike_policy
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import make_folder, provenance, require_own_folder

IDENTITY_FILE = "evaluation.json"
_ALSO_DECISIVE = (
    *("revision", "seed", "panel_seed", "max_context", "eval_temperature", "eval_greedy", "top_p", "top_k", "min_p"),
    *("env_wrappers", "chat_template", "template_options", "thoughts", "precision"),
)
"""Settings that decide the outcomes beside :func:`trainers.evaluation.player.decisive_settings`."""


@dataclass(frozen=True)
class PolicyReport:
    """A paired evaluation and the settings it was made with, perhaps the same panel played greedily.

    ``usage`` is of both, where an engine answers in words; ``agent`` is who played and what it knew in the end;
    ``paired`` is the first of its ``trials``; ``identity`` makes it this evaluation and no other.
    """

    paired: PairedReport
    config: TrainConfig
    greedy: PairedReport | None = None
    usage: Mapping[str, Any] | None = None
    agent: Mapping[str, Any] = field(default_factory=dict)
    trials: TrialReport | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)

    def save_all(self, folder: Path | str) -> None:
        """Writes report, transcripts, config, versions and agent, and usage, trials and the folder ``greedy`` if any.

        ``evaluation.json`` says which evaluation the folder holds: :func:`evaluate_policy` refuses it to others.
        """
        folder = Path(folder)
        make_folder(folder)
        for name in ("greedy", "trials.json", *(path.name for path in folder.glob("transcripts-trial-*.jsonl"))):
            remove(folder / name)  # of an evaluation that did not come to its report
        if self.identity:
            write_json(folder / IDENTITY_FILE, self.identity)
        write_jsonl(folder / "transcripts.jsonl", self.paired.episodes)
        write_json(folder / "config.json", self.config.to_json())
        write_json(folder / "versions.json", provenance())
        write_json(folder / "agent.json", self.agent)
        if self.trials is not None:
            write_json(folder / "trials.json", self.trials.to_json())
            for trial, episodes in enumerate(self.trials.later, 2):
                write_jsonl(folder / f"transcripts-trial-{trial}.jsonl", episodes)
        if self.usage is not None:
            write_json(folder / "usage.json", self.usage)
        if self.greedy is not None:
            identity = {**self.identity, "eval_greedy": True, "greedy_too": False} if self.identity else {}
            alone = self.config.with_(eval_greedy=True)
            PolicyReport(self.greedy, alone, agent=self.agent, identity=identity).save_all(folder / "greedy")
        # A folder with a report is taken for a whole evaluation.
        self.paired.save(folder / "report.json")


@dataclass(frozen=True)
class Panel:
    """A fixed choice of tasks, what identifies them beside their names, and scores within reach if known."""

    tasks: tuple[str, ...]
    identity: Mapping[str, Any] = field(default_factory=dict)
    best_scores: Mapping[str, float] = field(default_factory=dict)


def open_panel(config: TrainConfig, per_type: int | None = None, named: Iterable[str] | None = None) -> Panel:
    """Chooses a panel of the configured split: so many tasks of each type, those that are named, or the whole split."""
    if per_type is not None and per_type < 1:
        raise ConfigError(f"per_type, the tasks per type of a panel, must be at least 1, got {per_type}.")
    if per_type is not None and named is not None:
        raise ConfigError("A panel is so many tasks of each type (per_type), or a list of tasks, not both.")
    types = tasks_of(config)
    tasks = tuple(sorted(types)) if per_type is None else panel_of(types, per_type, config.panel_seed)
    if named is not None:
        tasks = tuple(sorted(set(named)))
        for task in tasks:
            if task not in types:
                raise unknown_name("task id", task, sorted(types), f"The split is {config.split!r}: split=...")
    with open_env(config) as env:
        identify, best_score = getattr(env, "identify", None), getattr(env, "best_score", None)
        return Panel(
            tasks,
            identify(tasks) if identify else {},
            {task: float(best_score(task)) for task in tasks} if best_score else {},
        )


def evaluate_policy(
    config: TrainConfig,
    *,
    per_type: int | None = None,
    tasks: Sequence[str] | None = None,
    attempts: int = 1,
    greedy_too: bool = False,
    engine: Engine | TextEngine | None = None,
    agent: EvaluatedAgent | None = None,
    memory: Literal["own", "library"] = "own",
    progress: Progress | None = None,
    folder: Path | str | None = None,
) -> PolicyReport:
    """Plays a split's tasks with and without the skill.

    Args:
        config: The policy (``model``), the environment, and the sampling (``eval_temperature``, ``eval_greedy``).
        per_type: A fixed panel of so many tasks per type; the whole split by default.
        tasks: A panel by its task ids; one that is named several times is played once.
        attempts: How often each task is played in each condition, for pass@k.
        greedy_too: Play the panel once more greedily.
        engine: Plays instead of the configured one.
        agent: What the policy is shown beside the skill, such as those of ``skillc_lab.agents``; None is zero-shot.
        memory: Skill-injected episodes see what the policy's method learned to show, if it lies beside the weights
            ("own"), or the environment's library.
        progress: Told how many episodes are done.
        folder: Where the report is going to be saved; an engine that answers in words keeps finished episodes there
            (``journal.jsonl``), to go on after an interruption. None for nowhere.

    Raises:
        SkillCError: For missing models, data, extras and unknown names, as in training.
        ConfigError: Several attempts of an agent that tries failed tasks again itself; or the folder holds another
            evaluation or a training run.
    """
    progress, name = progress or SilentProgress(), agent.name if agent else "zero-shot"
    if agent and attempts > 1 and agent.trials > 1:
        raise ConfigError(f"The agent {agent.name} tries failed tasks again itself; leave attempts at 1")
    if greedy_too and config.eval_greedy:
        raise ConfigError("eval_greedy plays greedily already; leave greedy_too out")
    asked: dict[str, Any] = {"per_type": per_type, "attempts": attempts, "greedy_too": greedy_too}
    asked |= {"agent": name, "agent_options": flat_options(agent) if is_dataclass(agent) else {}, "memory": memory}
    asked["tasks_sha256"] = None if tasks is None else panel_hash(sorted(set(tasks)))
    if engine is None and engine_spec(config.engine).for_text is None:
        check_model(config.model_path)
    require_library(config)
    unlike, identity = unlike_policy(config), dict[str, Any]()
    if folder is not None:
        folder, identity = Path(folder), _identity(config, asked)
        _check_folder(folder, identity)
    panel = open_panel(config, per_type, tasks)
    play = partial(
        paired_evaluation,
        panel=panel.tasks,
        seed=derive_seed(config.seed, PANEL_SEED),
        identity=panel.identity,
        best_scores=panel.best_scores,
    )
    kept = policy_memory(config) if memory == "own" else None
    player = policy_player(config, engine, folder, kept, asked)
    _announce(progress, config, panel, name, own_memory=kept is not None)
    try:
        acted = RunningAgent(player, config)
        if agent is not None:
            acted = agent.around(player, config, panel.tasks, lambda phase: partial(progress.phase, phase))
        with closing(acted.rollouts()) as rollouts:
            rollouts.on_progress = partial(progress.phase, "episodes")
            paired = play(rollouts, sampling=config.eval_sampling, attempts=attempts)
            greedy = play(rollouts, sampling=Sampling(greedy=True)) if greedy_too else None
        trials = acted.play_trials(paired)
        for warning in filter(None, (cut_warning(paired, player.max_context), acted.warning())):
            progress.note(warning)
    finally:
        progress.close()
    warn = partial(action_warning, cause=unlike, commands_alone=engine is None and config.engine in CHOOSING)
    reports = [each and replace(each, agent=name, warning=warn(each)) for each in (paired, greedy)]
    return PolicyReport(reports[0] or paired, config, reports[1], player.usage(), acted.record(), trials, identity)


def _announce(progress: Progress, config: TrainConfig, panel: Panel, agent: str, *, own_memory: bool) -> None:
    title = f"{config.model} on {config.split}: {len(panel.tasks)} tasks, with and without skills ({agent})"
    progress.start(title, 0, 1)
    if slow := bfloat16_warning(config.precision):
        progress.note(f"Warning: {slow}")
    if own_memory:
        progress.note(
            "With the skill means: with what the policy's own memory chooses (--memory library: the library's)"
        )


def _identity(config: TrainConfig, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the outcomes of an evaluation, the policy's weights included."""
    memory = Path(config.model_path) / MEMORY_FILE
    own = sha256_of_file(memory) if asked["memory"] == "own" and memory.is_file() else None
    hashes = {"weights_sha256": weights_sha256(Path(config.model_path)), "memory_sha256": own}
    later = {"vllm_dtype": config.vllm_dtype, "chat_sha256": chat_sha256(config)}
    return {**deciding_settings(config), **json.loads(json.dumps(asked)), **hashes, **later}


def deciding_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide an evaluation's outcomes, and the hash of its skill library, as JSON-able values."""
    values = config.to_json()
    more = {name: values[name] for name in _ALSO_DECISIVE}
    if len(config.env_wrappers) > 1:  # an object's names are compared in any order
        more["wrappers"] = list(config.env_wrappers)
    return {**decisive_settings(config), **more}


def _held(folder: Path) -> dict[str, Any]:
    """Which evaluation a folder says that it holds; empty where it does not say."""
    try:
        return read_object(folder / IDENTITY_FILE)
    except (OSError, ValueError):
        return {}


def require_evaluation_of(policy: Path, evaluation: Path) -> None:
    """Refuses (ConfigError) an evaluation of other weights than a policy's; not where one of them does not say."""
    played = _held(evaluation).get("weights_sha256", NO_WEIGHTS)
    if NO_WEIGHTS not in (own := weights_sha256(policy), played) and own != played:
        raise ConfigError(
            f"{evaluation} evaluates other weights than those in {policy}; name an evaluation of this policy: "
            f"`skillc evaluate --model {policy}` makes one."
        )


def _check_greedy(folder: Path, identity: Mapping[str, Any]) -> None:
    held = _held(folder)
    if folder.exists() and (not held or any(held.get(name, value) != value for name, value in identity.items())):
        raise ConfigError(
            f"{folder} is of something else, and an evaluation around it would delete it; name another --out."
        )


def _check_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    make_folder(folder)
    if (folder / "metrics.jsonl").exists():
        raise ConfigError(f"{folder} holds a training run; name another --out, such as {folder / 'after'}.")
    written = ("config.json", "versions.json", "agent.json", "usage.json", "trials.json", "transcripts*.jsonl")
    require_own_folder(folder, (IDENTITY_FILE, "report.json"), written, "--out")
    _check_greedy(folder / "greedy", {**identity, "eval_greedy": True, "greedy_too": False})
    if not (folder / "report.json").exists():
        return
    held = _held(folder)
    if not held:
        raise ConfigError(
            f"{folder} holds a report, and nothing says of which evaluation; name another --out, or delete it."
        )
    later = {"vllm_dtype", "chat_sha256"} - held.keys()  # not in evaluations of earlier versions
    later |= {"weights_sha256"} if held.get("weights_sha256") == NO_WEIGHTS else set()
    other = [name for name in identity if held.get(name) != identity[name] and name not in later]
    if other:
        told = "; ".join(f"{name} was {held.get(name)!r}, is {identity[name]!r}" for name in other)
        raise ConfigError(f"{folder} holds another evaluation: {told}. Name another --out, or delete it.")
