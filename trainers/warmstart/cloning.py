"""Behaviour cloning: next-token cross-entropy on the demonstrator's replies and, with less weight, on what it read."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from skillc_gym.errors import CheckpointError, ConfigError
from trainers.base import Count, Natural, NotNegative, Positive
from trainers.engines.random import derive_seed
from trainers.models.loading import only_at
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking.files import storing_weights

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

IGNORED = -100


@dataclass(frozen=True)
class CloningConfig:
    """Settings of behaviour cloning."""

    batches: Count = 2000
    """Optimiser steps."""
    batch_episodes: Count = 12
    """Episodes per step."""
    context_weight: NotNegative = 0.3
    """Weight of the loss on prompts and observations, beside the replies'; predicting them teaches a small model to
    copy names. 0 for a pretrained model."""
    learning_rate: Positive = 3e-3
    """Peak learning rate; it rises over the first 5 % of the steps and falls along a cosine to a tenth."""
    weight_decay: NotNegative = 0.01
    """AdamW's decoupled weight decay."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic: bfloat16 under autocast over float32 weights."""
    seed: Natural = 0
    """Seed of the order of the episodes."""


@dataclass(frozen=True)
class TokenisedDialogue:
    """Token ids of a whole dialogue, and labels that hold only the assistant's tokens."""

    ids: list[int]
    labels: list[int]
    slips: list[bool]
    """Tokens of replies that are not to be imitated, nor predicted as part of the context."""


def tokenise_conversation(
    chat: ChatTokens, messages: Sequence[dict[str, str]], slips: Collection[int] = (), *, max_length: int | None = None
) -> TokenisedDialogue:
    """Tokenises a dialogue turn by turn, as rollouts do with any model's chat template, up to its last reply.

    Replies in ``slips`` are context; what is over ``max_length`` is cut.
    """
    item, turn, known = TokenisedDialogue([], [], []), 0, list[dict[str, str]]()
    reply: list[int] = []
    for message in messages:
        if message["role"] != "assistant":
            known.append(message)
            continue
        _extend(item, chat.after_reply(known, reply) if turn else chat.prompt(known), said=False, slip=False)
        reply = chat.reply_ids(message["content"])
        _extend(item, reply, said=True, slip=turn in slips)
        known, turn = [], turn + 1
    return TokenisedDialogue(item.ids[:max_length], item.labels[:max_length], item.slips[:max_length])


def _extend(item: TokenisedDialogue, ids: Sequence[int], *, said: bool, slip: bool) -> None:
    item.ids.extend(ids)
    item.labels.extend(ids if said and not slip else [IGNORED] * len(ids))
    item.slips.extend([slip] * len(ids))


def _learning_rate(step: int, config: CloningConfig) -> float:
    warmup = max(1, config.batches // 20)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, config.batches - warmup)
    return config.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


def _collate(batch: Sequence[TokenisedDialogue], pad: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, labels, and which tokens are context to be predicted: each of shape (batch, longest)."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    ids = pad_sequence([torch.tensor(item.ids) for item in batch], batch_first=True, padding_value=pad)
    labels = pad_sequence([torch.tensor(item.labels) for item in batch], batch_first=True, padding_value=IGNORED)
    slips = pad_sequence([torch.tensor(item.slips) for item in batch], batch_first=True, padding_value=True)
    return ids, labels, ~slips & (labels == IGNORED)


def _batch_loss(
    model: PreTrainedModel, batch: Sequence[TokenisedDialogue], pad: int, context_weight: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss to minimise, and the part of it that is the replies'; both in nats per token."""
    from torch.nn import functional

    ids, labels, context = (tensor.to(model.device) for tensor in _collate(batch, pad))
    # Padding stands on the right, where causal attention never looks back from: no mask, and the fast kernel is used.
    reply = labels[:, 1:] != IGNORED
    # The output layer is most of a small model's work: it runs on the tokens alone whose loss counts.
    wanted = reply | (context_weight > 0) & context[:, 1:]
    with only_at(model.get_output_embeddings(), functional.pad(wanted, (0, 1))):
        # Not by hand: some models scale what the output layer gives.
        logits = model(input_ids=ids, use_cache=False).logits
    losses = functional.cross_entropy(logits.float(), ids[:, 1:][wanted], reduction="none")
    replies = _mean(losses[reply[wanted]])
    if not context_weight:
        return replies, replies
    return replies + context_weight * _mean(losses[~reply[wanted]]), replies


def _mean(values: torch.Tensor) -> torch.Tensor:
    """0 of none: a batch may hold slips alone."""
    return values.mean() if values.numel() else values.sum()


def reply_loss(
    model: PreTrainedModel, dialogues: Sequence[TokenisedDialogue], *, pad_token_id: int, batch_episodes: int
) -> float:
    """Mean cross-entropy of the replies' tokens, in nats; nothing is trained."""
    import torch

    total, tokens, training = 0.0, 0, model.training
    model.eval()
    with torch.no_grad():
        for start in range(0, len(dialogues), batch_episodes):
            batch = dialogues[start : start + batch_episodes]
            # A row's first token is predicted by nothing.
            count = sum(label != IGNORED for item in batch for label in item.labels[1:])
            total += count * float(_batch_loss(model, batch, pad_token_id, 0.0)[1]) if count else 0.0
            tokens += count
    model.train(training)
    return total / max(tokens, 1)


def _epoch(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[list[int]]:
    """One pass in random order; windows of eight batches are sorted by length, so that little is padding."""
    shuffled = rng.permutation(len(lengths))
    windows = [shuffled[start : start + 8 * size] for start in range(0, len(shuffled), 8 * size)]
    ordered = np.concatenate([window[np.argsort(lengths[window], kind="stable")] for window in windows])
    batches = [ordered[start : start + size].tolist() for start in range(0, len(ordered), size)]
    return [batches[index] for index in rng.permutation(len(batches))]


def _order(dialogues: Sequence[TokenisedDialogue], config: CloningConfig) -> list[list[int]]:
    rng = np.random.default_rng(config.seed)
    lengths = np.array([len(item.ids) for item in dialogues])
    batches: list[list[int]] = []
    while len(batches) < config.batches:
        batches.extend(_epoch(lengths, config.batch_episodes, rng))
    return batches[: config.batches]


# Going on ------------------------------------------------------------------------------------------------------------

CLONING_FILE = "cloning.pt"
"""In the folder of a policy whose cloning is not done yet."""


@dataclass(frozen=True)
class ProgressFile:
    """The file in which an unfinished cloning lies, so that the same command goes on to the same weights."""

    path: Path
    key: str
    """Names everything that decides the weights: what was begun under another is not gone on with."""
    every: int = 100
    """Optimiser steps between two writings."""
    shown: str = ""
    """Hash of the demonstrations, once they are played; the data behind a path may have changed."""

    def check(self) -> None:
        """Refuses a file of another recipe (ConfigError), and one that cannot be read (CheckpointError)."""
        if self.path.is_file():
            self._read()

    def restore(self, model: Any, optimiser: torch.optim.Optimizer) -> list[float]:
        """Puts model and optimiser where the file left them; gives the loss of every step done. As :meth:`check`."""
        if not self.path.is_file():
            return []
        saved = self._read()
        if saved.get("shown", self.shown) != self.shown:
            raise ConfigError(
                f"{self.path} was begun with other demonstrations; put the data and the skills back, or remove the "
                "file to begin anew"
            )
        trained = _trained(model)
        for name, weights in saved["weights"].items():
            trained[name].data.copy_(weights)
        optimiser.load_state_dict(saved["optimiser"])
        return list(saved["losses"])

    def keep(self, model: Any, optimiser: torch.optim.Optimizer, losses: list[float], *, last: bool) -> None:
        """Writes the file where its turn has come, or at the end; an interruption leaves the old one or the new one."""
        import torch

        if len(losses) % self.every and not last:
            return
        unfinished = self.path.with_name(f"{self.path.name}.tmp")
        weights = {name: parameter.detach().cpu() for name, parameter in _trained(model).items()}
        state = {"key": self.key, "shown": self.shown, "weights": weights, "losses": losses}
        with storing_weights(self.path):
            torch.save({**state, "optimiser": optimiser.state_dict()}, unfinished)
            unfinished.replace(self.path)

    def remove(self) -> None:
        """Takes the file away, once the policy is written."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        import torch

        try:
            saved = torch.load(self.path, weights_only=True, map_location="cpu")
            key = saved["key"]
        except Exception as error:  # a damaged file fails in many ways, by its place
            raise CheckpointError(
                f"{self.path} cannot be read ({type(error).__name__}: {error}); remove it to begin anew"
            ) from error
        if key != self.key:
            raise ConfigError(
                f"{self.path} is of a cloning begun with other settings; repeat these to go on, name another folder, "
                "or remove the file to begin anew"
            )
        return dict(saved)


def _trained(model: Any) -> dict[str, Any]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


@contextmanager
def _seeded(device: torch.device, seed: int) -> Iterator[None]:
    """What layers drop depends on the seed alone: a cloning that goes on drops the same."""
    import torch

    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed % 2**63)
        yield


def clone(
    model: PreTrainedModel,
    dialogues: Sequence[TokenisedDialogue],
    config: CloningConfig,
    *,
    pad_token_id: int,
    on_step: Callable[[int, float], Any] | None = None,
    kept: ProgressFile | None = None,
) -> list[float]:
    """Trains a policy on demonstrations, in place; returns the loss of every step, in nats per token of the replies.

    ``pad_token_id`` fills short rows, ``on_step`` is called with (step, loss), and ``kept`` is where steps done lie, to
    go on from after an interruption.
    """
    import torch

    optimiser = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=config.weight_decay
    )
    model.train()
    losses = [] if kept is None else kept.restore(model, optimiser)
    for step, indices in list(enumerate(_order(dialogues, config)))[len(losses) :]:
        for group in optimiser.param_groups:
            group["lr"] = _learning_rate(step, config)
        batch = [dialogues[index] for index in indices]
        cast = torch.autocast(model.device.type, torch.bfloat16, enabled=config.precision == "bfloat16")
        with _seeded(model.device, derive_seed(config.seed, step)), cast:
            loss, replies = _batch_loss(model, batch, pad_token_id, config.context_weight)
        loss.backward()  # type: ignore[no-untyped-call]
        if not math.isfinite(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))):
            raise ConfigError(f"The gradient of batch {step + 1} is not finite; take a lower learning_rate.")
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        losses.append(float(replies.detach()))
        if kept is not None:
            kept.keep(model, optimiser, losses, last=len(losses) == config.batches)
        if on_step is not None:
            on_step(step, losses[-1])
    model.eval()
    return losses
