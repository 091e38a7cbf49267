"""The fuzzer finds its targets."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.fuzz import TARGETS

pytest.importorskip("openai", reason="needs the openai extra")


@pytest.mark.parametrize("place", TARGETS.values())
def test_every_target_takes_any_bytes(place: str) -> None:
    module, _, name = place.partition(":")
    test = getattr(importlib.import_module(f"tests.hostile.test_hostile_{module}"), name)
    test.hypothesis.fuzz_one_input(b"")
