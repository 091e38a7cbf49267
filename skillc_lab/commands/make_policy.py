"""``skillc tools make-policy``: make a small policy from demonstrations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from skillc_lab.cli.command import Command, complain, count_line, say
from trainers.base import Natural
from trainers.models import bfloat16_warning
from trainers.warmstart import (
    CLONING_FILE,
    SMALL,
    TINY,
    CloningConfig,
    DemonstrationConfig,
    PolicyRecipe,
    data_recipe,
    generated_mixture,
    make_policy,
    measure_start,
    set_error_rate,
    shipped_recipe,
    write_card,
)

_POLICY = ("max_length", "start", "chat", "lora_rank", "held_out", "seed")


@dataclass(frozen=True)
class Shown:
    """What is demonstrated."""

    episodes: int = PolicyRecipe.episodes
    """Number of demonstrations."""
    max_steps: int = 30
    """Longest demonstration, in commands."""
    slips: float = DemonstrationConfig.slips
    """Probability per step that the demonstrator slips."""
    error_rate_without_skill: float | None = None
    """How often demonstrations without skill leave out the essential step, for every task type; by default each type
    has its own rate. At 1.0 success without skill becomes rare: a hard start."""
    error_rate_with_skill: float = DemonstrationConfig.error_rate_with_skill
    """The same of demonstrations with skill; as high as without, the policy profits from no skill."""
    generated_share: float = PolicyRecipe.mixture_share
    """Share of the demonstrations that play generated tasks as large as those of --data, mixed into these, so that a
    small policy does not learn few rooms by heart."""
    task_types: tuple[str, ...] | None = None
    """Only tasks of these types; all if None. Comma-separated on the command line."""
    thoughts: bool = True
    """Whether demonstrators say what they think before each command; such a policy plays with require_think=false
    where they do not."""


@dataclass(frozen=True)
class Cloning(CloningConfig):
    """How it is cloned."""

    seed: Natural = 0
    """Seed of demonstrations, of their order and of the initial weights."""
    max_length: int = 4096
    """Longest context, in tokens."""
    shape: Literal["tiny", "small"] = "tiny"
    """Size of the policy: 0.9 or some 28 million parameters."""
    start: str | None = None
    """Policy to go on from instead of random weights: a checkpoint folder of any language model, smollm2-135m (skillc
    get-model), or "shipped" or another that ships."""
    chat: str = "compact"
    """Wording of the prompts: compact, or default, which says how to reply and lists the possible commands."""
    lora_rank: int = 0
    """Rank of LoRA adapters, which are merged in the end; 0 trains all weights."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where cloning computes."""
    held_out: int = 0
    """Demonstrations of held-out tasks on which the loss is measured before and after."""


@dataclass(frozen=True)
class MakePolicyOptions:
    """Make a small policy by cloning demonstrations of an expert."""

    shown: Shown
    cloning: Cloning
    out: Path
    """Checkpoint folder to write."""
    env: str = "alfworld"
    """The environment."""
    data: str = "generated"
    """The environment's folder or archive, or "generated"."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment, such as --env.goal_order products."""
    measure: Natural = 0
    """Play so many held-out tasks per type with the finished policy, at temperatures 1.0 and 0.4, with and without
    skills, and write the rates into its card; 0 for none."""

    def recipe(self) -> PolicyRecipe:
        """The recipe that the options make of the shipped one."""
        recipe = shipped_recipe(self.env) if self.data == "generated" else data_recipe(self.data, self.env)
        types = {"task_types": self.shown.task_types} if self.shown.task_types else {}
        shown = replace(
            recipe.demonstrations,
            env_kwargs={**recipe.demonstrations.env_kwargs, **types, **self.env_options},
            max_steps=self.shown.max_steps,
            slips=self.shown.slips,
            thoughts=self.shown.thoughts,
            error_rate_with_skill=self.shown.error_rate_with_skill,
        )
        recipe = replace(recipe, demonstrations=shown)
        if self.shown.error_rate_without_skill is not None:
            recipe = set_error_rate(recipe, self.shown.error_rate_without_skill)
        return replace(
            recipe,
            mixture=generated_mixture(recipe) if self.shown.generated_share else None,
            mixture_share=self.shown.generated_share,
            episodes=self.shown.episodes,
            cloning=CloningConfig(**{spec.name: getattr(self.cloning, spec.name) for spec in fields(CloningConfig)}),
            size=TINY if self.cloning.shape == "tiny" else SMALL,
            **{name: getattr(self.cloning, name) for name in _POLICY},
        )


def _run(options: MakePolicyOptions) -> int:
    recipe = options.recipe()
    if slow := bfloat16_warning(options.cloning.precision):
        complain(f"Warning: {slow}")
    card = make_policy(recipe, options.out, device=options.cloning.device, progress=_show, keep_progress=True)
    if options.measure:
        card["measured"] = measure_start(recipe, options.out, options.measure)
        write_card(options.out, card)
    (options.out / CLONING_FILE).unlink(missing_ok=True)
    say(json.dumps({key: value for key, value in card.items() if key != "recipe"}, indent=2))
    return 0


def _show(phase: str, done: int, total: int, loss: float) -> None:
    count_line(phase, done, total, "" if math.isnan(loss) else f"  loss {loss:.3f}")


COMMAND = Command(MakePolicyOptions, _run, "interrupted; the same command goes on from the last hundredth batch.")
