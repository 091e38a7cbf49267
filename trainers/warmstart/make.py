"""From demonstrations to a warm-started checkpoint folder, with a card that says how it was made."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from skill_library import load_library
from skill_library.loader import BUILT_IN
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import PLAIN_WORDS
from skillc_gym.errors import ConfigError, MissingDataError, needs_extra
from skillc_gym.files import replace_file
from trainers.config import TrainConfig
from trainers.models import attend_without_plans, cast, load_model, load_plain_tokenizer, without_bars
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking.files import read_object, seal, sha256_of_file, storing_weights
from trainers.tracking.policy_settings import save_policy_settings
from trainers.tracking.run_folder import make_folder, provenance, require_own_folder
from trainers.warmstart.cloning import CLONING_FILE, IGNORED, ProgressFile, clone, reply_loss, tokenise_conversation
from trainers.warmstart.demonstration import Demonstration, demonstrations
from trainers.warmstart.policy import build_model, build_tokenizer, require_sayable, vocabulary
from trainers.warmstart.recipes import PolicyRecipe, recipe_config

CARD = "policy_card.json"
_MAPPINGS = ("env_kwargs", "error_rates_without_skill")
ADAPTER = "adapter"
"""Folder of the adapters within a policy's, where it was cloned by adapters."""
_FILES = ("*.json", "*.jsonl", "*.safetensors", "*.bin", "*.md", "*.yaml", "*/SKILL.md")
"""What a folder for a policy must not hold before it is made."""
NUMBERS = [str(number) for number in range(64)]
Progress = Callable[[str, int, int, float], Any]
"""Called with (phase, done, total, loss or nan)."""


def _play_all(recipe: PolicyRecipe, chat_format: ChatFormat, progress: Progress | None) -> list[Demonstration]:
    mixed, played = round(recipe.episodes * recipe.mixture_share), list[Demonstration]()
    demos = demonstrations(recipe.demonstrations, chat_format, count=recipe.episodes - mixed, seed=recipe.seed)
    if recipe.mixture is not None and mixed:
        demos = chain(demos, demonstrations(recipe.mixture, chat_format, count=mixed, seed=recipe.seed))
    for demo in demos:
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


def _fresh_policy(recipe: PolicyRecipe, played: Sequence[Demonstration]) -> tuple[Any, Any]:
    spec, start = warm_started(recipe.demonstrations.env)
    libraries = dict.fromkeys((*BUILT_IN, *([] if spec.library is None else [spec.library])))
    skills = [skill.text for name in libraries for skill in load_library(name).skills]
    messages = [message for demo in played for message in demo.messages]
    if start.spelling == PLAIN_WORDS:  # one of somebody's own says itself what is dropped, as prices' cents in the shop
        require_sayable(message["content"] for message in messages if message["role"] == "assistant")
    read = [message["content"] for message in messages]
    said = vocabulary(read + skills + NUMBERS, start.spelling, min_count=start.min_count)
    tokenizer = build_tokenizer(said, start.spelling, max_length=recipe.max_length)
    return tokenizer, build_model(tokenizer, recipe.size, seed=recipe.seed)


def _policy_to_go_on_from(folder: Path) -> tuple[Any, Any]:
    if not (folder / "config.json").is_file():
        raise MissingDataError(f"start={str(folder)!r} holds no checkpoint (config.json); name the folder of a policy.")
    config = TrainConfig(model=str(folder))
    with without_bars():
        return load_plain_tokenizer(config), load_model(config)


def _adapted(model: Any, recipe: PolicyRecipe) -> Any:
    if not recipe.lora_rank:
        return model
    with needs_extra("peft", "train"):
        import torch
        from peft import LoraConfig, get_peft_model
    adapters = LoraConfig(
        r=recipe.lora_rank, lora_alpha=2 * recipe.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    # Adapters are passed on: a folder of this machine would mean nothing elsewhere.
    model.name_or_path = recipe.start
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return get_peft_model(model, adapters)


def _merged(model: Any, folder: Path) -> Any:
    """Writes the adapters alone, which can be passed on, and merges them; in bfloat16, to half the size."""
    import torch

    adapters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    cast(adapters, torch.bfloat16)
    model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)  # peft's template, of which nothing is filled in
    # Merged is what was written, so that the start with these adapters is exactly the policy.
    cast(adapters, torch.float32)
    return model.merge_and_unload()


def _held_out(recipe: PolicyRecipe, chat_format: ChatFormat) -> list[Demonstration]:
    if not recipe.held_out:
        return []
    split = warm_started(recipe.demonstrations.env)[1].demo.held_out_split
    shown = replace(recipe.demonstrations, env_kwargs={**recipe.demonstrations.env_kwargs, "split": split})
    return list(demonstrations(shown, chat_format, count=recipe.held_out, seed=recipe.seed))


def _require_device(device: str) -> None:
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device={device}: torch sees no GPU here; leave it out for the processor.")


def _require_free(folder: Path, recipe: PolicyRecipe) -> None:
    """Refuses a folder of something else: a run, a model, a skill library, a policy of another recipe."""
    if (folder / CARD).is_file():
        mine = json.loads(json.dumps(asdict(recipe)))
        try:
            card = read_object(folder / CARD)
        except ValueError as error:
            raise ConfigError(f"{folder / CARD} is damaged ({error}); name another folder, or delete it.") from error
        if _completed(card.get("recipe", {}), mine) != mine:
            raise ConfigError(f"{folder} holds the policy of another recipe; name another folder, or delete it.")
    # Interrupted at its end, it has weights and no card yet.
    require_own_folder(folder, (CARD, CLONING_FILE), _FILES, "--out")


def _completed(recipe: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe of an earlier version with today's values where it had none; a mapping of the user's stays as it is."""
    return {
        name: _completed(recipe[name], value)
        if isinstance(value, dict) and isinstance(recipe.get(name), dict) and name not in _MAPPINGS
        else recipe.get(name, value)
        for name, value in now.items()
    }


def make_policy(
    recipe: PolicyRecipe,
    out: Path,
    *,
    chat_format: ChatFormat | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
    keep_progress: bool = False,
) -> dict[str, Any]:
    """Plays demonstrations, clones a policy from them and writes a Hugging Face checkpoint folder; returns its card.

    Equal recipes give equal weights on one machine. After an interruption the same call goes on from the last hundredth
    batch, to the same weights. ``chat_format`` is the environment's by default; ``progress`` is told of each phase.
    With ``keep_progress`` the cloning's file stays, for a caller who has more to do before the policy is whole.

    Raises:
        ConfigError: If a number is out of range, the folder cannot be made, or holds the beginning of another policy;
            or if ``max_length`` leaves nothing of a demonstration's replies.
        SkillCError: For an environment without demonstrator, and for data that are missing or cannot be read.
    """
    recipe.check()
    _require_device(device)
    make_folder(out)
    _require_free(out, recipe)
    start = recipe.start_folder
    spec, _ = warm_started(recipe.demonstrations.env)
    chat_format = chat_format or spec.chat_format(recipe.chat)
    kept = ProgressFile(out / CLONING_FILE, _key(recipe, chat_format, start))
    kept.check()
    held_out = _held_out(recipe, chat_format)  # the few first: where the split is missing, nothing was played in vain
    played = _play_all(recipe, chat_format, progress)
    told = json.dumps([demo.messages for demo in (*played, *held_out)])
    kept = replace(kept, shown=hashlib.sha256(told.encode()).hexdigest())
    tokenizer, model = _policy_to_go_on_from(start) if start else _fresh_policy(recipe, played)
    attend_without_plans()
    model = _adapted(model, recipe).to(device)
    chat, length = ChatTokens(tokenizer), recipe.max_length
    dialogues, kept_back = (
        [tokenise_conversation(chat, demo.messages, demo.slips, max_length=length) for demo in shown]
        for shown in (played, held_out)
    )
    if any(not any(item.slips) and set(item.labels) == {IGNORED} for item in dialogues):
        raise ConfigError(f"max_length={length} cuts off all replies of a demonstration; raise it.")
    if all(set(item.labels) == {IGNORED} for item in dialogues):
        raise ConfigError("The demonstrations hold slips alone, which nothing is learned from; lower slips.")
    total, pad = recipe.cloning.batches, tokenizer.pad_token_id
    measure = partial(reply_loss, model, kept_back, pad_token_id=pad, batch_episodes=recipe.cloning.batch_episodes)
    before = measure()
    losses = clone(
        model,
        dialogues,
        recipe.cloning,
        pad_token_id=pad,
        on_step=(lambda step, loss: progress("cloning", step + 1, total, loss)) if progress is not None else None,
        kept=kept,
    )
    after = measure()
    if recipe.lora_rank:
        model = _merged(model, out / ADAPTER)
    with storing_weights(out):
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
        "loss_held_out": [before, after] if kept_back else None,
        "weights_sha256": sha256_of_file(out / "model.safetensors"),
        "start_sha256": _start_sha256(start),
        "versions": provenance(),
    }
    write_card(out, card)
    config = recipe_config(recipe, out)
    spans = (groupby(item.labels, lambda label: label != IGNORED) for item in dialogues)
    longest = max(len(list(own)) for found in spans for said, own in found if said)
    save_policy_settings(out, config.with_(max_reply_tokens=max(longest, config.max_reply_tokens)))
    seal(out)
    if not keep_progress:
        kept.remove()
    return card


def _key(recipe: PolicyRecipe, chat_format: ChatFormat, start: Path | None) -> str:
    parts = [asdict(recipe), chat_format.to_dict(), _start_sha256(start)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _start_sha256(folder: Path | None) -> str | None:
    weights = folder / "model.safetensors" if folder else None
    return sha256_of_file(weights) if weights is not None and weights.is_file() else None


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes a policy's card, ``policy_card.json``."""
    replace_file(folder / CARD, [(json.dumps(card, indent=2, sort_keys=True) + "\n").encode()])
