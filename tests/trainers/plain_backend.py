"""A backend without TRL: a loop, an optimiser and the learner."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch

from trainers.backends import BackendSpec
from trainers.engines import Engine
from trainers.engines.transformers import TransformersEngine
from trainers.learner import Learner, Weights
from trainers.models import load_model
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collate import Tokens

T = TypeVar("T")


class PlainBackend:
    """One process on the processor, AdamW at a constant learning rate."""

    device = torch.device("cpu")
    process_index, num_processes, is_main = 0, 1, True

    def __init__(self, learner: Learner, tokenizer: Any) -> None:
        self.learner, self.tokenizer = learner, tokenizer
        self.models = {"policy": load_model(learner.config), "reference": load_model(learner.config)}
        config = learner.config
        self.optimizer = torch.optim.AdamW(
            self.models["policy"].parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        Path(config.run_folder).mkdir(parents=True, exist_ok=True)
        learner.attach(self)

    def gather(self, objects: list[T]) -> list[T]:
        return objects

    def add_up(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        logits = self.models[weights](input_ids=tokens.input_ids).logits[:, :-1] / self.learner.config.temperature
        distribution, keep = torch.distributions.Categorical(logits=logits), tokens.mask.shape[1]
        logprobs = distribution.log_prob(tokens.input_ids[:, 1:])[:, -keep:]
        return {"logprobs": logprobs * tokens.mask, "entropies": distribution.entropy()[:, -keep:] * tokens.mask}

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        gradients = torch.autograd.grad(torch.stack(list(losses)).sum(), list(self.models["policy"].parameters()))
        return float(torch.stack([gradient.norm() for gradient in gradients]).norm())

    def engine(self, chat: ChatTokens) -> Engine:
        return TransformersEngine(self.models["policy"], chat.eos_ids)

    def fit(self, checkpoint: Path | None) -> None:
        assert checkpoint is None
        learner, config = self.learner, self.learner.config
        learner.begin()
        while learner.update < config.steps and not learner.agree_to_stop():
            for number, batch in enumerate(learner.prepare(), 1):
                learner.loss(batch, self.score(batch.tokens, learner.objective.wants)).backward()
                if number % config.micro_batches == 0:
                    norm = self._step()
            learner.finish({"grad_norm": norm, "learning_rate": config.learning_rate})

    def _step(self) -> float:
        parameters = self.models["policy"].parameters()
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.learner.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(norm)

    def restore(self, checkpoint: Path) -> None:
        saved = load_model(self.learner.config.with_(model=str(checkpoint)))
        self.models["policy"].load_state_dict(saved.state_dict())

    def save_policy(self, path: Path) -> None:
        self.models["policy"].save_pretrained(path)
        self.tokenizer.save_pretrained(path)


BACKEND = BackendSpec("plain", lambda: None, PlainBackend)
