"""What is no hub's name never reaches the network; bfloat16 is warned of where it only costs time."""

import os
import re
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError
from trainers.config import TrainConfig
from trainers.models import bfloat16_warning, load_model, load_plain_config, load_plain_tokenizer, loading
from trainers.models.loading import bfloat16_slowdown, check_model, hub_access, is_hub_name
from trainers.tracking.checkpoints import read_checkpoint
from trainers.tracking.policy_settings import SETTINGS_FILE
from trainers.tracking.run_folder import POLICY_FILES, RunFolder


@pytest.mark.parametrize(
    ("name", "of_the_hub", "there"),
    [
        *((name, True, True) for name in ("Qwen/Qwen2.5-7B-Instruct", "a/b")),
        *((name, False, True) for name in ("policy", "org/model", "./policy")),
        *((name, False, False) for name in ("nowhere", "../a/b", "~/model", "runs/missing", "a/b/c")),
        *((name, False, False) for name in ("a\\b", "", "a/b\n", "https://host/a")),
    ],
)
def test_names_of_the_hub_and_folders_are_told_apart_from_missing_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, of_the_hub: bool, there: bool
) -> None:
    for folder in ("runs", "policy", "org/model"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert is_hub_name(name) is of_the_hub
    with nullcontext() if there else pytest.raises(MissingDataError, match="neither a folder"):
        check_model(name)


def test_a_damaged_policy_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path).new_policy() as path:
        path.mkdir()
        (path / "weights").write_text("good")
        (path / SETTINGS_FILE).write_text('{"version": 1}')
    policy = tmp_path / "policy"
    check_model(str(policy))
    (policy / SETTINGS_FILE).write_text("{}")  # what one may look through before one publishes
    check_model(str(policy))
    (policy / "weights").write_text("bad")
    with pytest.raises(CheckpointError, match=r"weights is not what was written.*same command"):
        check_model(str(policy))
    (policy / POLICY_FILES).write_text("[")
    with pytest.raises(CheckpointError, match="cannot be read"):
        check_model(str(policy))
    (policy / POLICY_FILES).unlink()
    check_model(str(policy))
    (policy / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds adapters; merge them"):
        check_model(str(policy))


def test_a_run_is_no_model_and_says_where_its_policy_is(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(config := TrainConfig(model="m"), {})
    folder.append({"step": 1})
    with pytest.raises(MissingDataError, match="no policy yet"):
        check_model(str(tmp_path))
    meta = {"config": config.to_json(), "task_digest": "d", "method": {}, "step": 1}
    (folder.saved.partial(1) / "config.json").write_text("{}")
    saved = folder.saved.commit(folder.saved.partial(1, make=False), 1, meta, 1)
    told = re.escape(str(saved))
    with pytest.raises(MissingDataError, match=f"newest checkpoint is {told}"):
        check_model(str(tmp_path))
    with pytest.raises(CheckpointError, match=f"model={told} run="):
        read_checkpoint(saved, config.with_(group_size=4), "d", {})
    folder.policy_path.mkdir()
    with pytest.raises(MissingDataError, match=r"its policy is .*policy"):
        check_model(str(tmp_path))
    with pytest.raises(CheckpointError, match=r"model=.*policy run="):
        read_checkpoint(saved, config.with_(group_size=4), "d", {})


def test_a_tokenizer_without_padding_pads_with_its_end(tmp_path: Path) -> None:
    tokenizer = load_plain_tokenizer(TrainConfig(model="shipped"))
    end, tokenizer.pad_token = tokenizer.eos_token, None
    tokenizer.save_pretrained(tmp_path)
    assert load_plain_tokenizer(TrainConfig(model=str(tmp_path))).pad_token == end


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The constants of the hub's client, which is not offline."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the train extra")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return constants


def test_the_hub_is_off_for_folders_whatever_the_environment_says(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoConfig

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network was asked"))
    with hub_access(str(tmp_path)), pytest.raises(OSError):  # noqa: PT011
        AutoConfig.from_pretrained("some/name")
    assert not hub.HF_HUB_OFFLINE
    assert "HF_HUB_OFFLINE" not in os.environ
    monkeypatch.setattr(loading, "_is_reachable", lambda endpoint: True)
    with hub_access(str(tmp_path), "some/name") as asked:  # a folder to train, and a reference of a hub's
        assert asked
        assert not hub.HF_HUB_OFFLINE


def test_a_hub_that_cannot_be_reached_is_said_at_once(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody, waits = "http://127.0.0.1:9", list[float]()
    monkeypatch.setattr(hub, "ENDPOINT", nobody)
    monkeypatch.setattr(hub, "HUGGINGFACE_CO_URL_TEMPLATE", nobody + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(MissingDataError, match="could not be fetched"):
        load_plain_config(TrainConfig(model="some/name"))
    assert sum(waits) < 1


@pytest.mark.parametrize(
    ("cuda", "factor", "asked", "warned"),
    [
        (False, 50.0, "bfloat16_copy", True),
        (False, 50.0, "float32", False),
        (False, 50.0, "auto", False),
        (False, 0.6, "bfloat16", False),
        (True, 50.0, "bfloat16", False),
    ],
)
def test_only_a_processor_that_loses_by_it_is_warned(
    cuda: bool, factor: float, asked: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra 'train'")
    assert bfloat16_slowdown() > 0
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(loading, "bfloat16_slowdown", lambda: factor)
    said = bfloat16_warning(asked)
    assert bool(said) == ("50 times" in said) == ("take precision=float32" in said) == warned


def test_a_model_that_is_loaded_attends_without_plans_for_each_shape(toy_folder: Path, cudnn: Any) -> None:
    load_model(TrainConfig(model=str(toy_folder / "model")))
    assert not cudnn.cudnn_sdp_enabled()
