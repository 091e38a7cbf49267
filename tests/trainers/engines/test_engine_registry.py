"""Engines are found by name; one of your own is a module that holds a specification."""

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, UnknownNameError
from tests.trainers.conftest import make_model
from tests.trainers.toys import ScriptedEngine
from trainers import train
from trainers.config import TrainConfig
from trainers.engines.registry import CheckpointModel, EngineSpec, TrainerModel, check_engine, engine_spec


@pytest.fixture
def own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """An importable module ``own_engine`` with the specification ``ENGINE``."""
    engine = EngineSpec(
        for_trainer=lambda trainer: ScriptedEngine(str, trainer.model),
        for_checkpoint=lambda checkpoint: ScriptedEngine(str, checkpoint.load()),
    )
    monkeypatch.setitem(sys.modules, "own_engine", SimpleNamespace(ENGINE=engine, WORD="word"))


@pytest.mark.parametrize(
    ("name", "door"), [("openai", "for_trainer"), ("openai", "for_checkpoint"), ("scoring", "for_trainer")]
)
def test_what_cannot_train_is_refused_before_a_model_is_looked_for(name: str, door: str) -> None:
    check_engine(name)
    make = getattr(engine_spec(name), door)
    for start in (partial(make, None), partial(train, TrainConfig(model="no_such_model", engine=name))):
        with pytest.raises(ConfigError, match=r"cannot train\. Train with engine=transformers"):
            start()


def test_vllms_specification_needs_no_vllm_is_not_exact_and_has_its_arguments_by_their_old_name_too() -> None:
    make: Any = EngineSpec
    with pytest.warns(FutureWarning, match="llm_options"):
        spec = make(None, None, server_options=dict)
    assert spec.llm_options is spec.server_options is dict
    vllm, config = engine_spec("vllm"), TrainConfig(model="m", engine="vllm", vllm_memory=0.5)
    assert not vllm.exact_logprobs
    assert vllm.backend_arguments(config)["vllm_gpu_memory_utilization"] == 0.5


@pytest.mark.parametrize("name", ["transformers", "choosing", "scoring"])
@pytest.mark.parametrize(
    ("precision", "autocast", "held"),
    [("auto", None, "float32"), ("bfloat16", "bfloat16", "float32"), ("bfloat16_copy", None, "bfloat16")],
)
def test_a_processor_plays_checkpoints_in_the_arithmetic_that_is_asked_for(
    name: str, precision: Any, autocast: str | None, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    config = TrainConfig(model="m", engine=name, precision=precision)
    made: Any = engine_spec(name).for_checkpoint(CheckpointModel([1], config, lambda: make_model(40)))
    played = getattr(made, "_engine", made)
    assert played.autocast == (autocast and getattr(torch, autocast))
    assert {parameter.dtype for parameter in played.model.parameters()} == {getattr(torch, held)}
    for rotary, exact in zip(played.model.buffers(), make_model(40).buffers(), strict=True):
        assert torch.equal(rotary, exact)


def test_an_engine_of_ones_own_plays_trainers_and_checkpoints(own_module: None) -> None:
    config = TrainConfig(model="m", engine="own_engine:ENGINE", engine_options={"x": 1})
    spec: Any = engine_spec(config.engine)
    assert spec.for_trainer(TrainerModel("model", [1], config)).tokenizer == "model"
    assert spec.for_checkpoint(CheckpointModel([1], config, lambda: "loaded")).tokenizer == "loaded"
    assert spec.backend_arguments(config) == {}


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("vlm", UnknownNameError, "Did you mean 'vllm'"),
        ("own_engine:NONE", ConfigError, "has no attribute 'NONE'"),
        ("own_engine:WORD", ConfigError, "must be a trainers.engines.registry.EngineSpec; got"),
    ],
)
def test_wrong_names_say_what_is_wrong(own_module: None, name: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        engine_spec(name)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("transformers", {"base_url": "http://127.0.0.1:9/v1"}, UnknownNameError),
        *(("transformers", {"draft_tokens": value}, ConfigError) for value in (-1, True)),
        ("openai", {"timeout": 0}, ConfigError),
        ("openai", {"api_key": "secret"}, ConfigError),
        *(("openai", {"base_url": url}, ConfigError) for url in ("x/v1", "http://u:secret@x/v1", "http://x/v1?key=1")),
        *((name, {"reply": "go"}, ConfigError) for name in ("choosing", "scoring")),
        ("choosing", {"nevr": []}, UnknownNameError),
        ("scoring", {"normalise": "some"}, UnknownNameError),
    ],
)
def test_options_that_an_engine_cannot_read_are_refused(name: str, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))) as caught:
        check_engine(name, options)
    assert "secret" not in str(caught.value)
    check_engine("transformers", {"draft_tokens": 3})
