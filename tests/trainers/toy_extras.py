"""What is given from outside by its name: methods, losses, a critic, a memory; wrappers, logger, metrics; a backend."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import gymnasium
import numpy as np
import torch

from skill_library import Skill, SkillText
from trainers.advantages import Advantages, FloatArray, RolloutBatch, Scheme, grpo
from trainers.backends import BackendSpec
from trainers.config import TrainConfig
from trainers.engines import Engine
from trainers.engines.transformers import TransformersEngine
from trainers.learner import Objective, Weights
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, Teacher, TokenLoss
from trainers.memory import Memory, MemoryTools, SkillMemory
from trainers.models import load_model
from trainers.recipes import Allocation, Half, Recipe
from trainers.recipes.parts.allocation import Never
from trainers.rollout.batches import Tokens
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking import Progress

T = TypeVar("T")


@dataclass(frozen=True)
class Novelty(Scheme):
    """The group advantage, less a fee for every turn whose observation the episode had shown before."""

    name: ClassVar[str] = "novelty"
    fee: float = 0.25

    def __call__(self, batch: RolloutBatch) -> Advantages:
        outcome = grpo(batch.returns, batch.task)
        per_turn = [value - self.fee * repeats(i, batch) for i, value in enumerate(outcome)]
        repeated = float(np.mean([repeats(i, batch).mean() for i in range(len(outcome))]))
        lengths = [trajectory.reply_lengths for trajectory in batch.trajectories]
        per_token = tuple(np.repeat(turns, tokens) for turns, tokens in zip(per_turn, lengths, strict=True))
        return Advantages(per_token, log={"repeated_observations": repeated})


def repeats(i: int, batch: RolloutBatch) -> FloatArray:
    seen = [turn.observation for turn in batch.trajectories[i].episode.turns]
    return np.array([float(observation in seen[:k]) for k, observation in enumerate(seen)])


NOVELTY = Recipe(name="novelty", summary="Rewards seeing new things.", advantage=Novelty())


@dataclass(frozen=True)
class Pull(Loss):
    """The squared difference of log-probabilities, on skill-free rollouts."""

    name: ClassVar[str] = "pull"
    coefficient: float = 0.1
    prompt: Literal["with_skill", "without_skill"] = "with_skill"
    weights: Literal["policy", "reference", "average"] = "policy"

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset({"teacher_logprobs"})

    @property
    def teacher(self) -> Teacher:
        return Teacher(self.prompt, self.weights, decay=0.5)

    def on_rollouts(self, batch: RolloutBatch) -> FloatArray:
        return (~batch.condition).astype(float)

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        gap = inputs.logprobs - inputs["teacher_logprobs"]
        return TokenLoss(gap**2, {"teacher_gap": gap.detach().abs()})


PULL = Recipe(name="pull", summary="Distils from the prompt with the skill.", losses=(ClippedPolicyGradient(), Pull()))


@dataclass(frozen=True)
class LessValue(Scheme):
    """The return less the critic's value of each token."""

    name: ClassVar[str] = "less_value"
    inputs: ClassVar[frozenset[str]] = frozenset({"values"})

    def __call__(self, batch: RolloutBatch) -> Advantages:
        values = batch.scores["values"]
        targets = [np.full(len(own), value) for own, value in zip(values, batch.returns, strict=True)]
        advantages = tuple(target - own for target, own in zip(targets, values, strict=True))
        return Advantages(advantages, targets={"target": targets})


@dataclass(frozen=True)
class Critic(Loss):
    """Squared error of the value."""

    name: ClassVar[str] = "critic"
    coefficient: float = 0.5

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset({"values"})

    @property
    def heads(self) -> Mapping[str, Any]:
        def linear(width: int) -> Any:
            import torch

            return torch.nn.Linear(width, 1)

        return {"values": linear}

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        error = inputs["values"] - inputs["target"]
        return TokenLoss(error**2, {"value_error": error.detach() ** 2})


CRITIC = Recipe(
    name="critic",
    summary="A policy gradient with a critic.",
    allocation=Never(),
    advantage=LessValue(),
    losses=(ClippedPolicyGradient(), Critic()),
)


@dataclass(frozen=True)
class Diary(Memory):
    """One line per update and task type, the newest ``keep`` of them are shown."""

    name: ClassVar[str] = "diary"
    keep: int = 2

    def start(self, tools: MemoryTools) -> SkillMemory:
        return DiaryAtWork(self.keep)


class DiaryAtWork(SkillMemory):
    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.lines: dict[str, list[str]] = {}

    def choose(self, task_id: str, task_type: str, goal: str, member: int, *, training: bool) -> SkillText | None:
        lines = self.lines.get(task_type)
        if not lines:
            return None
        words = "\n".join([f"goal was {goal}", *lines[-self.keep :]])
        skill = Skill(f"diary-{len(lines)}", "What was noted.", (task_type,), words)
        return SkillText(skill.name, skill.text)

    def observe(self, batch: RolloutBatch) -> dict[str, Any]:
        for kind in sorted(set(batch.task_type)):
            won = sum(int(w) for w, k in zip(batch.success, batch.task_type, strict=True) if k == kind)
            self.lines.setdefault(kind, []).append(f"done {won} of {kind}")
        return {"diary_lines": sum(map(len, self.lines.values()))}

    def state_dict(self) -> dict[str, Any]:
        return {"lines": self.lines}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.lines = {kind: list(lines) for kind, lines in state["lines"].items()}


DIARY = Recipe(name="diary", summary="Shows what it wrote down.", allocation=Half(), memory=Diary())


class Allowance(gymnasium.Wrapper[str, str, str, str]):
    """Pays for every step."""

    def __init__(self, env: Any, amount: float) -> None:
        super().__init__(env)
        self.amount = amount

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) + self.amount, terminated, truncated, info


class WithoutPlans(gymnasium.Wrapper[str, str, str, str]):
    """Is made where cuDNN's attention is off alone."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        attention: Any = torch.backends.cuda
        assert not attention.cudnn_sdp_enabled()


class Kept:
    """A logger that keeps what it is told."""

    name = "kept"
    records: ClassVar[list[Any]] = []
    """What all of them were told."""

    def start(self, folder: Path, config: Any) -> None:
        self.records.clear()

    def log(self, record: Any) -> None:
        self.records.append(record)

    def close(self) -> None:
        self.records.append("closed")


@dataclass(frozen=True)
class FirstType(Allocation):
    """Every rollout of the first task type."""

    name: ClassVar[str] = "first_type"

    def n_plus(self, curriculum: Any, task_type: str, group_size: int) -> int:
        return group_size if task_type == curriculum.task_types[0] else 0


def mean_reward(trajectories: Any) -> dict[str, float]:
    rewards = [trajectory.episode.episode_return for trajectory in trajectories]
    return {"mean_reward": sum(rewards) / len(rewards)}


def taken_names(trajectories: Any) -> dict[str, float]:
    return dict.fromkeys(("mine", "tokens_generated", "entropy", "tokens_total"), 1.0)


def no_figures(trajectories: Any) -> None:
    pass


def unwritten(trajectories: Any) -> dict[str, Any]:
    """Gives what JSON cannot hold."""
    return {"lengths": {len(trajectories)}}


class PlainBackend:
    """A backend without TRL, as plain as can be: one process on the processor, AdamW at a constant learning rate."""

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
