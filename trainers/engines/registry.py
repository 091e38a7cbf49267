"""The engines by name: how each is made for a trainer's model, and how it loads a checkpoint.

A new engine is one module with an :class:`EngineSpec`, named on the command line by ``engine=my_module:ENGINE``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from skillc_gym.errors import ConfigError, require_name, unknown_name
from trainers.base import instance_of, load_object, understands_old_names
from trainers.config import TrainConfig
from trainers.engines.text import TextEngine
from trainers.engines.types import Engine

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ENGINES: Mapping[str, str] = {
    "transformers": "trainers.engines.in_process:ENGINE",
    "vllm": "trainers.engines.vllm:ENGINE",
    "openai": "trainers.engines.openai:ENGINE",
    "scoring": "trainers.engines.scoring:ENGINE",
    "choosing": "trainers.engines.choosing:ENGINE",
}
"""Short names of the engines that come with the package, and where each is defined."""
IN_PROCESS = frozenset({"transformers", "choosing"})
"""Those that generate with transformers in the training process."""
CHOOSING = frozenset({"choosing", "scoring"})
"""Those that take one of the commands that are possible, where others write freely."""
EVALUATING: Mapping[str, str] = {
    "openai": "answers in words, not in tokens",
    "scoring": "chooses whole commands and draws no tokens",
}
"""Those that cannot train, and why."""


@dataclass(frozen=True)
class TrainerModel:
    """A model in training, for an engine that generates with its present weights."""

    model: Any
    """The model, unwrapped."""
    eos_ids: Sequence[int]
    """Tokens that end a reply."""
    settings: TrainConfig
    """The run's settings."""
    autocast: Any = None
    """The torch type that the trainer computes in, where it is not that of the weights."""
    sharded: bool = False
    """Whether the weights are spread over processes."""
    whole: Callable[[], tuple[Any, Callable[[], object]]] | None = None
    """Makes a whole copy of weights that are spread, or that compute in another type, and what brings it up to date,
    which all processes do together; None where the weights themselves generate, or no copy can be had."""
    processes: int = 1
    """Number of training processes."""
    server: Any = None
    """What the backend has started on the engine's behalf (TRL's ``VLLMGeneration``)."""
    sync: Callable[[], object] = lambda: None
    """Sends the weights to the server if they are newer than its own."""


@dataclass(frozen=True)
class CheckpointModel:
    """A checkpoint on disk, for an engine that plays it."""

    eos_ids: Sequence[int]
    """Tokens that end a reply."""
    settings: TrainConfig
    """The settings; ``settings.model_path`` names the checkpoint."""
    load: Callable[[], Any]
    """Loads the checkpoint as a transformers model."""


@understands_old_names({"server_options": "llm_options"})
@dataclass(frozen=True)
class EngineSpec:
    """One engine."""

    for_trainer: Callable[[TrainerModel], Engine]
    """Makes the engine that generates while a model trains."""
    for_checkpoint: Callable[[CheckpointModel], Engine]
    """Makes the engine that plays a checkpoint."""
    backend_arguments: Callable[[TrainConfig], dict[str, Any]] = lambda settings: {}
    """What the training backend must be started with so that it serves the engine (fields of TRL's GRPOConfig)."""
    llm_options: Callable[[TrainConfig], dict[str, Any]] = lambda settings: {}
    """Arguments of the ``vllm.LLM`` that the training backend starts in its own process, beside the backend's own."""
    exact_logprobs: bool = True
    """Whether its log-probabilities are the trainer's own; if not, the objective corrects the ratio."""
    for_text: Callable[[TrainConfig], TextEngine] | None = None
    """Makes an engine that plays in words, without tokenizer and checkpoint; None for engines of tokens."""
    read_options: Callable[[Mapping[str, Any]], object] = lambda options: None
    """Raises a ConfigError for options that the engine cannot read."""


T = TypeVar("T", bound="DataclassInstance")


def read_options(kind: type[T], engine: str, options: Mapping[str, Any]) -> T:
    """An engine's options as its dataclass; an UnknownNameError for one that is not there."""
    known = [spec.name for spec in fields(kind)]
    for name in options:
        require_name(f"option of engine={engine}", name, known)
    return kind(**options)


def check_engine(name: str, options: Mapping[str, Any] | None = None, *, training: bool = False) -> None:
    """Refuses a name that can be no engine's, one that cannot train where it should, and options nobody would read."""
    module, _, attribute = name.partition(":")
    if name not in ENGINES and (not module or not attribute or module.startswith(".")):
        raise unknown_name("engine", name, ENGINES, "An engine of your own is named as my_module:ENGINE.")
    if training and name in EVALUATING:
        refuse_training(name)
    if name in ENGINES and options:
        engine_spec(name).read_options(options)


def refuse_training(name: str) -> NoReturn:
    """The ConfigError of an engine that cannot train."""
    raise ConfigError(
        f"engine={name} {EVALUATING[name]}: it evaluates, and cannot train. Train with engine=transformers, choosing "
        "or vllm."
    )


def engine_spec(name: str) -> EngineSpec:
    """Finds an engine by its short name or ``module:NAME``; else an error that says the remedy."""
    check_engine(name)
    if name in ENGINES:
        # Imported as it is, so that a missing extra is told as one.
        spec: EngineSpec = pkgutil.resolve_name(ENGINES[name])
    else:
        spec = load_object(name, "engine", instance_of(EngineSpec))
    return spec
