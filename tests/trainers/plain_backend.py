"""A backend without TRL: a model, an optimiser and five lines of training."""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import torch

from trainers.backends import BackendSpec
from trainers.config import TrainConfig
from trainers.engines import Engine
from trainers.engines.transformers import TransformersEngine
from trainers.learner import Objective, Weights
from trainers.models import load_model
from trainers.rollout.batches import Tokens
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking import Progress

T = TypeVar("T")


class PlainBackend:
    """One process on the processor, AdamW at a constant learning rate."""

    device = torch.device("cpu")
    process_index, num_processes = 0, 1

    def __init__(self, config: TrainConfig, objective: Objective, tokenizer: Any, progress: Progress) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.models = {"policy": load_model(self.config), "reference": load_model(self.config)}
        self.parameters = list(self.models["policy"].parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=self.config.learning_rate, weight_decay=self.config.weight_decay
        )
        Path(config.run_folder).mkdir(parents=True, exist_ok=True)

    def gather(self, objects: list[T]) -> list[T]:
        return objects

    def all_reduce_sum(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def engine(self, chat: ChatTokens) -> Engine:
        return TransformersEngine(self.models["policy"], chat.eos_ids)

    def prepare(self, checkpoint: Path | None) -> None:
        assert checkpoint is None

    def start_update(self, update: int) -> None:
        pass

    def accumulate(self, *, last: bool) -> AbstractContextManager[object]:
        return nullcontext()

    def forward(self, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        return self.score(tokens, wants)

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def step(self) -> dict[str, float | None]:
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"grad_norm": float(norm), "learning_rate": self.config.learning_rate}

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        logits = self.models[weights](input_ids=tokens.input_ids).logits[:, :-1] / self.config.temperature
        distribution, keep = torch.distributions.Categorical(logits=logits), tokens.mask.shape[1]
        logprobs = distribution.log_prob(tokens.input_ids[:, 1:])[:, -keep:]
        return {"logprobs": logprobs * tokens.mask, "entropies": distribution.entropy()[:, -keep:] * tokens.mask}

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        gradients = torch.autograd.grad(torch.stack(list(losses)).sum(), self.parameters)
        return float(torch.stack([gradient.norm() for gradient in gradients]).norm())

    def save(self, folder: Path) -> None:
        self.save_policy(folder)

    def restore(self, checkpoint: Path) -> None:
        saved = load_model(self.config.with_(model=str(checkpoint)))
        self.models["policy"].load_state_dict(saved.state_dict())

    def save_policy(self, path: Path) -> None:
        self.models["policy"].save_pretrained(path)
        self.tokenizer.save_pretrained(path)


BACKEND = BackendSpec("plain", lambda: None, PlainBackend)
