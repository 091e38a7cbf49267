"""Engines are found by name; one of your own is a module that holds a specification."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, UnknownNameError
from tests.trainers.conftest import make_model
from tests.trainers.toys import ScriptedEngine
from trainers import train
from trainers.config import TrainConfig
from trainers.engines import Engine
from trainers.engines.registry import CheckpointModel, EngineSpec, TrainerModel, check_engine, engine_spec


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An importable module ``own_engine`` with the specification ``ENGINE``."""
    module: Any = ModuleType("own_engine")
    module.ENGINE = EngineSpec(
        for_trainer=lambda trainer: ScriptedEngine(lambda prompt: "look", trainer.model),
        for_checkpoint=lambda checkpoint: ScriptedEngine(lambda prompt: "look", checkpoint.load()),
    )
    monkeypatch.setitem(sys.modules, "own_engine", module)
    return module


@pytest.mark.parametrize("name", ["openai", "scoring"])
def test_what_cannot_train_is_refused_before_a_model_is_looked_for(name: str) -> None:
    check_engine(name)
    with pytest.raises(ConfigError, match="Train with engine=transformers"):
        train(TrainConfig(model="no_such_model", engine=name))


def test_vllms_arguments_have_their_old_name_too() -> None:
    make: Any = EngineSpec
    with pytest.warns(FutureWarning, match="llm_options"):
        spec = make(None, None, server_options=dict)
    assert spec.llm_options is spec.server_options is dict


def test_vllms_specification_needs_no_vllm_and_is_not_exact() -> None:
    spec, config = engine_spec("vllm"), TrainConfig(model="m", engine="vllm", vllm_memory=0.5)
    assert not spec.exact_logprobs
    assert spec.backend_arguments(config)["vllm_gpu_memory_utilization"] == 0.5


@pytest.mark.parametrize("name", ["transformers", "choosing", "scoring"])
@pytest.mark.parametrize("precision", ["auto", "bfloat16"])
def test_a_processor_plays_checkpoints_in_the_arithmetic_that_is_asked_for(
    name: str, precision: Any, tiny_model: Any
) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here, where weights are cast")
    config = TrainConfig(model="m", engine=name, precision=precision)
    played: Any = engine_spec(name).for_checkpoint(CheckpointModel([1], config, lambda: tiny_model))
    assert getattr(played, "_engine", played).autocast == (torch.bfloat16 if precision == "bfloat16" else None)


def test_a_checkpoint_in_bfloat16_keeps_its_rotary_frequencies() -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    config = TrainConfig(model="m", precision="bfloat16_copy")
    checkpoint = CheckpointModel([1], config, lambda: make_model(40))
    played: Any = engine_spec("transformers").for_checkpoint(checkpoint)
    assert {parameter.dtype for parameter in played.model.parameters()} == {torch.bfloat16}
    for mine, exact in zip(played.model.buffers(), make_model(40).buffers(), strict=True):
        assert torch.equal(mine.cpu(), exact)


def test_an_engine_of_ones_own_plays_trainers_and_checkpoints(own_module: ModuleType) -> None:
    config = TrainConfig(model="m", engine="own_engine:ENGINE", engine_options={"x": 1})
    spec = engine_spec(config.engine)
    assert isinstance(spec.for_trainer(TrainerModel("model", [1], config)), Engine)
    played: Any = spec.for_checkpoint(CheckpointModel([1], config, lambda: "loaded"))
    assert played.tokenizer == "loaded"
    assert spec.backend_arguments(config) == {}


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("vlm", UnknownNameError, "Did you mean 'vllm'"),
        ("own_engine:NONE", ConfigError, "has no attribute 'NONE'"),
        ("own_engine:__name__", ConfigError, "is a str; name an EngineSpec"),
        ("no_such_module:ENGINE", ConfigError, "No module named 'no_such_module'"),
    ],
)
def test_wrong_names_say_what_is_wrong(own_module: ModuleType, name: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        engine_spec(name)
    for wrong in (":", "module:", "nope"):
        with pytest.raises(UnknownNameError, match="my_module:ENGINE"):
            check_engine(wrong)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("transformers", {"base_url": "http://127.0.0.1:9/v1"}, UnknownNameError),
        *(("transformers", {"draft_tokens": value}, ConfigError) for value in (-1, 1.5, True, "3")),
        ("openai", {"retries": -1}, ConfigError),
        ("openai", {"draft_tokens": 3}, UnknownNameError),
        *((name, {"reply": "go"}, ConfigError) for name in ("choosing", "scoring")),
        ("choosing", {"nevr": []}, UnknownNameError),
        ("choosing", {"never": "help"}, ConfigError),
        ("scoring", {"normalize": "sum"}, UnknownNameError),
        ("scoring", {"normalise": "some"}, UnknownNameError),
    ],
)
def test_options_that_an_engine_cannot_read_are_refused(name: str, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        check_engine(name, options)
    check_engine("transformers", {"draft_tokens": 3})
