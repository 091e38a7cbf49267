"""From demonstrations to a warm-started checkpoint folder, with a card that says how it was made."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from trainers.models import attend_without_plans, cast, limit_of, load_model, load_plain_tokenizer, without_bars
from trainers.models.loading import hub_access, is_hub_name
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking.files import NO_WEIGHTS, read_object, seal, sha256_of_file, storing_weights, weights_sha256
from trainers.tracking.policy_settings import save_policy_settings
from trainers.tracking.run_folder import make_folder, provenance, require_own_folder
from trainers.warmstart.cloning import (
    CLONING_FILE,
    IGNORED,
    ProgressFile,
    TokenisedDialogue,
    clone,
    reply_loss,
    tokenise_conversation,
)
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


@dataclass(frozen=True)
class _Shown:
    """The demonstrations that a policy is cloned from, and those of held-out tasks that its loss is measured on."""

    played: list[Demonstration]
    held_out: list[Demonstration]

    @property
    def sha256(self) -> str:
        """Hash of all that was said."""
        told = json.dumps([demo.messages for demo in (*self.played, *self.held_out)])
        return hashlib.sha256(told.encode()).hexdigest()

    def tokenised(self, chat: ChatTokens, max_length: int) -> tuple[list[TokenisedDialogue], list[TokenisedDialogue]]:
        """Both as tokens; a ConfigError where nothing is left to learn of one, or of all."""
        dialogues, held_out = (
            [tokenise_conversation(chat, demo.messages, demo.slips, max_length=max_length) for demo in demos]
            for demos in (self.played, self.held_out)
        )
        if any(not any(item.slips) and set(item.labels) == {IGNORED} for item in dialogues):
            raise ConfigError(
                f"max_length={max_length} cuts off all replies of a demonstration; raise it, or name a start that "
                "takes longer rows."
            )
        if all(set(item.labels) == {IGNORED} for item in dialogues):
            raise ConfigError("The demonstrations hold slips alone, which nothing is learned from; lower slips.")
        return dialogues, held_out


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
    if not is_hub_name(str(folder)) and not (folder / "config.json").is_file():
        raise MissingDataError(f"start={str(folder)!r} holds no checkpoint (config.json); name the folder of a policy.")
    config = TrainConfig(model=str(folder))
    with without_bars(), hub_access(str(folder)):
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
    chat_format = chat_format or warm_started(recipe.demonstrations.env)[0].chat_format(recipe.chat)
    kept = ProgressFile(out / CLONING_FILE, _key(recipe, chat_format))
    kept.check()
    held_out = _held_out(recipe, chat_format)  # the few first: where the split is missing, nothing was played in vain
    shown = _Shown(_play_all(recipe, chat_format, progress), held_out)
    start = recipe.start_folder
    tokenizer, model = _policy_to_go_on_from(start) if start else _fresh_policy(recipe, shown.played)
    attend_without_plans()
    model = _adapted(model, recipe).to(device)
    longest = min(recipe.max_length, limit_of(model.config) or recipe.max_length)
    dialogues, unseen = shown.tokenised(ChatTokens(tokenizer), longest)
    pad, size = tokenizer.pad_token_id, recipe.cloning.batch_episodes
    measure = partial(reply_loss, model, unseen, pad_token_id=pad, batch_episodes=size)
    before = measure()
    losses = clone(
        model,
        dialogues,
        recipe.cloning,
        pad_token_id=pad,
        on_step=progress and (lambda step, loss: progress("cloning", step + 1, recipe.cloning.batches, loss)),
        kept=replace(kept, shown=shown.sha256),
    )
    measured = {"loss_held_out": [before, measure()] if unseen else None, **_learned(dialogues, losses)}
    with storing_weights(out):
        model = _merged(model, out / ADAPTER) if recipe.lora_rank else model
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    sizes = {"parameters": sum(weights.numel() for weights in model.parameters()), "vocabulary": len(tokenizer)}
    card = _card(recipe, out, {"demonstrator_success": success_rates(shown.played), **sizes, **measured})
    write_card(out, card)
    config, longest = recipe_config(recipe, out), max(map(_longest_reply, dialogues))
    save_policy_settings(out, config.with_(max_reply_tokens=max(longest, config.max_reply_tokens)))
    seal(out)
    if not keep_progress:
        kept.remove()
    return card


def _learned(dialogues: Sequence[TokenisedDialogue], losses: Sequence[float]) -> dict[str, float]:
    last = losses[-20:]
    tokens = sum(len(item.ids) for item in dialogues) / len(dialogues)
    return {"tokens_per_demonstration": tokens, "loss_first": losses[0], "loss_last": sum(last) / len(last)}


def _card(recipe: PolicyRecipe, out: Path, measured: Mapping[str, Any]) -> dict[str, Any]:
    hashes = {
        "weights_sha256": sha256_of_file(out / "model.safetensors"),
        "start_sha256": _start_sha256(recipe.start_folder),
    }
    return {"recipe": asdict(recipe), **measured, **hashes, "versions": provenance()}


def _longest_reply(dialogue: TokenisedDialogue) -> int:
    """Tokens of the longest reply, 0 without any: what a policy of these demonstrations must be allowed to say."""
    spans = groupby(dialogue.labels, lambda label: label != IGNORED)
    return max((len(list(own)) for said, own in spans if said), default=0)


def _key(recipe: PolicyRecipe, chat_format: ChatFormat) -> str:
    parts = [asdict(recipe), chat_format.to_dict(), _start_sha256(recipe.start_folder)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _start_sha256(folder: Path | None) -> str | None:
    if folder is None:
        return None
    single = folder / "model.safetensors"
    found = sha256_of_file(single) if single.is_file() else weights_sha256(folder)
    return None if found == NO_WEIGHTS else found


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes a policy's card, ``policy_card.json``."""
    replace_file(folder / CARD, [(json.dumps(card, indent=2, sort_keys=True) + "\n").encode()])
