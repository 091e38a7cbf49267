"""What decides the weights of a warm-started policy, recipes of those that ship, and what a start can do untrained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from trainers.base import Count, Fraction, Natural, check_values
from trainers.base.model_folders import named_folder
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport
from trainers.evaluation.policy import evaluate_policy
from trainers.warmstart.cloning import CloningConfig
from trainers.warmstart.demonstration import DemonstrationConfig
from trainers.warmstart.policy import TINY, PolicySize


@dataclass(frozen=True)
class PolicyRecipe:
    """Everything that decides the weights of a warm-started policy."""

    demonstrations: DemonstrationConfig = field(default_factory=DemonstrationConfig)
    """What is demonstrated, and how often the essential step is left out."""
    episodes: Count = 9600
    """Number of demonstrations."""
    mixture: DemonstrationConfig | None = None
    """Further tasks to demonstrate: generated rooms beside a data set's few, which a small model learns by heart."""
    mixture_share: Fraction = 0.0
    """Share of the demonstrations that are of the further tasks."""
    cloning: CloningConfig = field(default_factory=CloningConfig)
    """Optimisation."""
    size: PolicySize = TINY
    """Shape of the model."""
    max_length: Count = 4096
    """Longest context in tokens."""
    seed: Natural = 0
    """Seed of demonstrations and of the initial weights."""
    start: str | None = None
    """Checkpoint folder to go on from, with its tokenizer, chat template and shape, or the name of a shipped policy or
    of one that ``skillc get-model`` fetches; None starts from random weights."""
    chat: str = "compact"
    """Wording of the prompts by name: compact, or default, which lists the possible commands."""
    lora_rank: Natural = 0
    """Rank of LoRA adapters on all linear layers, which are merged in the end; 0 trains all weights."""
    held_out: Natural = 0
    """Further demonstrations, of the environment's first held-out split, to measure the loss before and after."""

    @property
    def start_folder(self) -> Path | None:
        """The folder to go on from."""
        if self.start is None:
            return None
        return named_folder(self.start, self.demonstrations.env) or Path(self.start)

    def check(self) -> None:
        """Holds every number against its bounds; a ConfigError for one outside, or two that contradict each other."""
        for part in filter(None, (self, self.cloning, self.demonstrations, self.mixture)):
            check_values(part)
        self.size.check()
        if self.mixture_share and self.mixture is None:
            raise ConfigError(
                f"mixture_share={self.mixture_share} needs further tasks to show, and the recipe has no mixture."
            )
        if self.lora_rank and self.start is None:
            raise ConfigError("lora_rank adapts a model that there is; name one as start, or train all weights.")


def shipped_recipe(env: str = "alfworld") -> PolicyRecipe:
    """The recipe of a policy that ships with the package."""
    return data_recipe("generated", env, generator=dict(warm_started(env)[1].generator))


def data_recipe(data: str, env: str = "alfworld", **options: Any) -> PolicyRecipe:
    """A recipe for a policy warm-started on the training split of data, with further arguments of the environment."""
    shown = {"data": data, "split": "train", **options}
    rates = dict(warm_started(env)[1].error_rates)
    return PolicyRecipe(demonstrations=DemonstrationConfig(env=env, env_kwargs=shown, error_rates_without_skill=rates))


def generated_mixture(recipe: PolicyRecipe) -> DemonstrationConfig:
    """What a recipe demonstrates of a data set's tasks, of generated ones as large; a ConfigError if there are none."""
    shown = recipe.demonstrations
    mixture = warm_started(shown.env)[1].mixture
    data = shown.env_kwargs.get("data", "generated")
    if not mixture or data == "generated":
        raise ConfigError(
            f"Generated tasks are mixed into those of a data set; got data={data!r} of "
            f"{shown.env}. Name a folder or archive of alfworld's games, or leave the generated share at 0."
        )
    return replace(shown, env_kwargs={**shown.env_kwargs, "data": "generated", "generator": dict(mixture)})


def set_error_rate(recipe: PolicyRecipe, without_skill: float) -> PolicyRecipe:
    """A recipe whose skill-free demonstrations leave out the essential step equally often for all task types."""
    rates = dict.fromkeys(warm_started(recipe.demonstrations.env)[1].error_rates, without_skill)
    return replace(recipe, demonstrations=replace(recipe.demonstrations, error_rates_without_skill=rates))


def recipe_config(recipe: PolicyRecipe, policy: Path) -> TrainConfig:
    """The settings with which a policy of a recipe, in its folder, plays held-out tasks of its world."""
    shown = recipe.demonstrations
    settings = small_policy_settings(shown.env, str(shown.env_kwargs.get("data", "generated")))
    if recipe.chat != "compact":
        settings |= {"chat": recipe.chat, "chat_options": {}, "max_context": recipe.max_length}
    demo = warm_started(shown.env)[1].demo
    own = ("task_types", "max_episode_steps")
    options = {key: value for key, value in shown.env_kwargs.items() if key not in ("data", "split", *own)}
    settings |= {name: shown.env_kwargs[name] for name in own if name in shown.env_kwargs}
    config = TrainConfig(model=str(policy), **settings, require_think=shown.thoughts)
    return replace(config, split=demo.held_out_split, env_options=options)


def small_policy_settings(env: str, data: str | None = "generated") -> dict[str, Any]:
    """TrainConfig's fields for a small policy and its environment's ``data``; policy, method and seed are left."""
    spec, start = warm_started(env)
    compact = spec.chat.get("compact")
    settings = {
        "env": env,
        "data": data,
        "chat": "compact",
        "chat_options": {"role": compact.role} if compact else {},
        "task_sampling": "types",
        "max_context": 2048,
        "max_reply_tokens": start.demo.max_reply_tokens,
        # About 2,000 tokens a pass: on a processor, what fits into its cache is a fifth faster.
        "micro_batches": 16,
        "learning_rate": 3e-4,
        "adam_beta2": 0.98,
        "kl_coef": 0.0,
        "validate_every": 5,
        "save_every": 5,
        "panel_per_type": start.demo.panel_per_type,
    }
    if data != "generated":
        return {**settings, "max_episode_steps": start.demo.max_episode_steps_of_data}
    return {
        **settings,
        "max_episode_steps": start.demo.max_episode_steps,
        "method_options": dict(start.demo.preset_options),
        "env_options": {"generator": dict(start.generator)},
    }


ATTEMPTS: Mapping[float, int] = {1.0: 4, 0.4: 1}
"""Pairs of episodes per task at each temperature: more at that of training, 1, where rare successes count."""


def measure_start(recipe: PolicyRecipe, policy: Path, per_type: int) -> dict[str, Any]:
    """Plays held-out tasks with a policy, with the skill and without, at the training temperature and at validations'.

    On a fixed panel of the recipe's world, so many tasks per type. Gives the panel, and by temperature the rates over
    all tasks and per type: success, and how often the essential step was taken (None where it has no mark).
    """
    config = recipe_config(recipe, policy)
    found = {
        temperature: evaluate_policy(config.with_(eval_temperature=temperature), per_type=per_type, attempts=attempts)
        for temperature, attempts in ATTEMPTS.items()
    }
    reports = {str(temperature): report.paired for temperature, report in found.items()}
    return {
        "split": config.split,
        "tasks_per_type": per_type,
        "panel_sha256": next(iter(reports.values())).panel_sha256,
        "temperatures": {name: _rates(report, config.env) for name, report in reports.items()},
    }


def essential_rate(episodes: Sequence[Episode], pattern: str) -> float:
    """Share of episodes among whose possible commands the pattern is found; the commands stand one a line."""
    compiled = re.compile(pattern, re.MULTILINE)
    taken = ["\n".join(turn.action for turn in episode.turns if turn.action_valid) for episode in episodes]
    return fmean(bool(compiled.search(commands)) for commands in taken)


def _rates(report: PairedReport, env: str) -> dict[str, Any]:
    marks = warm_started(env)[1].essential
    by_type: dict[str, Any] = {}
    for kind, counts in report.per_type.items():
        by_type[kind] = {"sr_without": counts.sr_without, "sr_with": counts.sr_with}
        for condition, arm in enumerate(("without", "with")):
            played = [e for e in report.episodes if e.task_type == kind and e.condition == condition]
            by_type[kind][f"essential_{arm}"] = essential_rate(played, marks[kind]) if kind in marks else None
    overall = report.overall.to_json()
    names = ("sr_without", "sr_without_interval", "sr_with", "sr_with_interval")
    rates = {name: overall[name] for name in names}
    return {"attempts": report.attempts, "tasks": overall["n"], **rates, "per_type": by_type}
