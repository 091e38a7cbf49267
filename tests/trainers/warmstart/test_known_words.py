"""What small policies can read of a control: an unknown word would leave its prompt empty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trainers.warmstart
from skill_library.controls import FILLER

TOKENIZERS = sorted(Path(trainers.warmstart.__file__).parent.glob("*/tokenizer.json"))


@pytest.mark.parametrize("file", TOKENIZERS, ids=lambda file: file.parent.name)
def test_shipped_policies_know_the_filler(file: Path):
    assert FILLER in json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]


def test_there_are_shipped_policies():
    assert len(TOKENIZERS) > 4
