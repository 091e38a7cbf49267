"""What a fuzz target is, where it is found, and how its inputs are bounded."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import unknown_name

NAMES: Mapping[str, str] = {
    "addresses": "servers:ADDRESSES",
    "alfworld-actions": "actions:HOUSES",
    "answers": "servers:ANSWERS",
    "importers": "texts:FORMS",
    "loader": "games:LOADER",
    "skills": "texts:SKILLS",
    "stepper": "games:STEPPER",
    "transcripts": "texts:TRANSCRIPTS",
    "webshop-actions": "actions:SHOPS",
    "writers": "servers:WRITERS",
}
"""The targets, and where they are: a module of this package, and the target's name in it."""
INSTRUMENTED = ("skill_library.", "skillc_gym.", "json", "tarfile", "zipfile")
SECONDS_PER_INPUT = 1.0
"""Of processor time: the machine may be busy."""

GENERATOR: Mapping[str, Any] = {"seed": 0, "games_per_type": 2, "size": "small"}
"""Twelve small generated games, from which the fuzzers of ALFWorld start."""

Run = Callable[[bytes], None]
"""Plays one input; whatever it raises is a finding."""


@dataclass(frozen=True)
class FuzzTarget:
    """One fuzzer.

    Attributes:
        about: What the inputs are and what must hold, one or two sentences for the record.
        make: Prepares what every input shares. It is given the module ``atheris``, whose ``FuzzedDataProvider`` turns
            an input into choices, and returns the function that plays one input.
        instrumented: Beginnings of the names of modules whose branches the fuzzer should see.
    """

    about: str
    make: Callable[[Any], Run]
    instrumented: tuple[str, ...] = INSTRUMENTED


def load(name: str) -> FuzzTarget:
    """Imports a target.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name not in NAMES:
        raise unknown_name("fuzz target", name, NAMES)
    module, _, attribute = NAMES[name].partition(":")
    target: FuzzTarget = getattr(importlib.import_module(f"benchmarks.fuzz.{module}"), attribute)
    return target


def bounded(run: Run) -> Run:
    """Fails when an input takes too long, by the processor's clock."""

    def timed(data: bytes) -> None:
        started = time.process_time()
        run(data)
        taken = time.process_time() - started
        assert taken < SECONDS_PER_INPUT, f"an input took {taken:.2f} seconds"

    return timed


def changed_text(provider: Any, text: str, pieces: Sequence[str], repeats: int = 5_000) -> str:
    """A text with one change that the fuzzer chooses: something dropped, repeated, put in or written over.

    Args:
        provider: A ``FuzzedDataProvider``.
        text: What is changed.
        pieces: What may be put in.
        repeats: At most so many times.
    """
    start: int = provider.ConsumeIntInRange(0, len(text))
    end: int = min(len(text), start + provider.ConsumeIntInRange(0, 200))
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return text[:start] + text[end:]
    if way == 1:
        return text[:start] + text[start:end] * int(provider.ConsumeIntInRange(2, 50)) + text[end:]
    if way == 2:
        most = 3 if provider.ConsumeBool() else repeats
        piece: str = pieces[provider.ConsumeIntInRange(0, len(pieces) - 1)]
        return text[:start] + piece * int(provider.ConsumeIntInRange(1, most)) + text[start:]
    return text[:start] + str(provider.ConsumeUnicode(40)) + text[end:]
