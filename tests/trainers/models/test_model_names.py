"""What is no hub's name never reaches the network; bfloat16 is warned of where it only costs time."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError, MissingDataError
from trainers.config import TrainConfig
from trainers.models import bfloat16_slowdown, bfloat16_warning, load_plain_config, loading
from trainers.models.loading import check_model, hub_access, is_hub_name
from trainers.tracking.run_folder import POLICY_FILES, RunFolder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs").mkdir()
    (tmp_path / "policy").mkdir()
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "of_the_hub"),
    [("Qwen/Qwen2.5-7B-Instruct", True), ("a/b", True), ("policy", False), ("org/model", False), ("./policy", False)],
)
def test_names_of_the_hub_and_folders_are_told_apart(here: Path, name: str, of_the_hub: bool) -> None:
    assert is_hub_name(name) is of_the_hub
    check_model(name)


@pytest.mark.parametrize(
    "name", ["nowhere", "../a/b", "~/model", "runs/missing", "a/b/c", "a\\b", "", "a/b\n", "https://host/a"]
)
def test_missing_folders_are_no_hub_names(here: Path, name: str) -> None:
    assert not is_hub_name(name)
    with pytest.raises(MissingDataError, match="neither a folder"):
        check_model(name)


def test_a_damaged_policy_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path).new_policy() as path:
        path.mkdir()
        (path / "weights").write_text("good")
    policy = tmp_path / "policy"
    check_model(str(policy))
    (policy / "weights").write_text("bad")
    with pytest.raises(CheckpointError, match=r"weights is not what was written.*same command"):
        check_model(str(policy))
    (policy / POLICY_FILES).write_text("[")
    with pytest.raises(CheckpointError, match="cannot be read"):
        check_model(str(policy))
    (policy / POLICY_FILES).unlink()
    check_model(str(policy))


def test_the_hub_is_off_for_folders_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the train extra")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    from transformers import AutoConfig

    with hub_access(str(tmp_path)), pytest.raises(OSError):  # noqa: PT011
        AutoConfig.from_pretrained("some/name")
    assert not constants.HF_HUB_OFFLINE
    assert "HF_HUB_OFFLINE" not in os.environ
    monkeypatch.setattr(loading, "_is_reachable", lambda endpoint: True)
    with hub_access(str(tmp_path), "some/name") as asked:  # a folder to train, and a reference of a hub's
        assert asked
        assert not constants.HF_HUB_OFFLINE


def test_a_hub_that_cannot_be_reached_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the train extra")
    nobody = "http://127.0.0.1:9"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", nobody + "/{repo_id}/resolve/{revision}/{filename}")
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(MissingDataError, match="could not be fetched"):
        load_plain_config(TrainConfig(model="some/name"))
    assert sum(waits) < 1


def test_the_factor_is_measured_here() -> None:
    pytest.importorskip("torch", reason="needs the extra 'train'")
    assert bfloat16_slowdown() > 0


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
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(loading, "bfloat16_slowdown", lambda: factor)
    said = bfloat16_warning(asked)
    assert bool(said) == warned
    if said:
        assert "50 times" in said
        assert "precision=float32" in said
