"""From demonstrations to a warm-started checkpoint folder, with a card that says how it was made."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from skill_library import load_library
from skill_library.loader import BUILT_IN
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import ConfigError, MissingDataError
from trainers.rollout.chat_encoder import ChatEncoder
from trainers.tracking.run_folder import make_folder, provenance
from trainers.warmstart.cloning import CloningConfig, clone, tokenise_dialogue
from trainers.warmstart.demonstrations import Demonstration, DemonstrationConfig, demonstrations
from trainers.warmstart.model import TINY, PolicySize, build_model
from trainers.warmstart.shipped import is_shipped, shipped_policy
from trainers.warmstart.tokenizer import build_tokenizer, vocabulary

CARD = "policy_card.json"
NUMBERS = [str(number) for number in range(64)]
Progress = Callable[[str, int, int, float], Any]
"""Called with (phase, done, total, loss or nan)."""


@dataclass(frozen=True)
class PolicyRecipe:
    """Everything that decides the weights of a warm-started policy."""

    demonstrations: DemonstrationConfig = field(default_factory=DemonstrationConfig)
    """What is demonstrated, and how often the essential step is left out."""
    episodes: int = 9600
    """Number of demonstrations."""
    cloning: CloningConfig = field(default_factory=CloningConfig)
    """Optimisation."""
    size: PolicySize = TINY
    """Shape of the model."""
    max_length: int = 4096
    """Longest context in tokens."""
    seed: int = 0
    """Seed of demonstrations and of the initial weights."""
    start: str | None = None
    """Checkpoint folder to go on from, with its tokenizer and shape, or the name of a shipped policy; None starts from
    random weights."""

    @property
    def start_folder(self) -> Path | None:
        """The folder to go on from."""
        if self.start is None or not is_shipped(self.start):
            return None if self.start is None else Path(self.start)
        return shipped_policy(self.demonstrations.env, self.start)


def _check(recipe: PolicyRecipe) -> None:
    numbers = {
        "episodes": recipe.episodes,
        "batches": recipe.cloning.batches,
        "batch_episodes": recipe.cloning.batch_episodes,
        "max_steps": recipe.demonstrations.max_steps,
        "max_length": recipe.max_length,
    }
    for name, number in numbers.items():
        if number < 1:
            raise ConfigError(f"{name} must be at least 1, got {number}.")
    if recipe.seed < 0 or recipe.cloning.seed < 0:
        raise ConfigError(f"Seeds must be at least 0, got {min(recipe.seed, recipe.cloning.seed)}.")


def _play_all(recipe: PolicyRecipe, chat_format: ChatFormat, progress: Progress | None) -> list[Demonstration]:
    played = []
    for demo in demonstrations(recipe.demonstrations, chat_format, count=recipe.episodes, seed=recipe.seed):
        played.append(demo)
        if progress is not None and len(played) % 50 == 0:
            progress("demonstrations", len(played), recipe.episodes, float("nan"))
    return played


def success_rates(played: Sequence[Demonstration]) -> dict[str, dict[str, float]]:
    """Share of demonstrations that win, per task type and condition ("with", "without")."""
    wins: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for demo in played:
        wins[demo.task_type]["with" if demo.condition else "without"].append(demo.won)
    return {
        kind: {arm: sum(won) / len(won) for arm, won in sorted(arms.items())} for kind, arms in sorted(wins.items())
    }


def sha256_of_file(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _corpus(played: Sequence[Demonstration], library: str | None) -> list[str]:
    libraries = dict.fromkeys((*BUILT_IN, *([] if library is None else [library])))
    skills = [skill.text for name in libraries for skill in load_library(name).skills]
    return [message["content"] for demo in played for message in demo.messages] + skills + NUMBERS


def _fresh_policy(recipe: PolicyRecipe, played: Sequence[Demonstration]) -> tuple[Any, Any]:
    spec, start = warm_started(recipe.demonstrations.env)
    said = vocabulary(_corpus(played, spec.library), start.spelling, min_count=start.min_count)
    tokenizer = build_tokenizer(said, start.spelling, max_length=recipe.max_length)
    return tokenizer, build_model(tokenizer, recipe.size, seed=recipe.seed)


def _policy_to_go_on_from(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    if not (folder / "config.json").is_file():
        raise MissingDataError(f"start={str(folder)!r} holds no checkpoint (config.json); name the folder of a policy.")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return tokenizer, AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa")


def make_policy(
    recipe: PolicyRecipe,
    out: Path,
    *,
    chat_format: ChatFormat | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Plays demonstrations, clones a policy from them and writes a Hugging Face checkpoint folder.

    Args:
        recipe: All settings; equal recipes give equal weights on one machine.
        out: Folder to write; it is created.
        chat_format: How observations become messages; defaults to the environment's compact form.
        device: Where cloning computes.
        progress: Told of each phase.

    Raises:
        ConfigError: If a number is out of range, or the folder cannot be made.
        SkillCError: For an environment without demonstrator, and for data that are missing or cannot be read.

    Returns:
        The card that was also written as ``policy_card.json``.
    """
    _check(recipe)
    make_folder(out)
    start = recipe.start_folder
    spec, _ = warm_started(recipe.demonstrations.env)
    played = _play_all(recipe, chat_format or spec.chat_format("compact"), progress)
    tokenizer, model = _policy_to_go_on_from(start) if start else _fresh_policy(recipe, played)
    model = model.to(device)
    encoder = ChatEncoder(tokenizer)
    dialogues = [tokenise_dialogue(encoder, demo.messages, demo.slips) for demo in played]
    total = recipe.cloning.batches
    losses = clone(
        model,
        dialogues,
        recipe.cloning,
        pad_token_id=tokenizer.pad_token_id,
        on_step=(lambda step, loss: progress("cloning", step + 1, total, loss)) if progress is not None else None,
    )
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    card = {
        "recipe": asdict(recipe),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": len(tokenizer),
        "tokens_per_demonstration": sum(len(item.ids) for item in dialogues) / len(dialogues),
        "demonstrator_success": success_rates(played),
        "loss_first": losses[0],
        "loss_last": sum(losses[-20:]) / len(losses[-20:]),
        "weights_sha256": sha256_of_file(out / "model.safetensors"),
        "start_sha256": sha256_of_file(start / "model.safetensors") if start else None,
        "versions": provenance(),
    }
    write_card(out, card)
    return card


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes a policy's card, ``policy_card.json``."""
    (folder / CARD).write_text(json.dumps(card, indent=2, sort_keys=True) + "\n", encoding="utf-8")
