"""The vLLM that TRL's trainer starts in its own process: arguments that TRL does not pass on, waking, and sleep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trl.generation import vllm_generation

from trainers.engines.vllm import replaceable_weights


@contextmanager
def started_with(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Lets a ``vllm.LLM`` that TRL starts within have further arguments.

    Args:
        options: They have precedence over TRL's; ``max_num_seqs``, for instance, which TRL derives from its batches.

    Yields:
        All arguments that it was started with, once it was.
    """
    effective: dict[str, Any] = {}
    plain = getattr(vllm_generation, "LLM", None)
    if plain is None or not options:
        yield effective
        return

    def start(**given: Any) -> Any:
        effective.update({**given, **options})
        with replaceable_weights():
            return plain(**effective)

    vllm_generation.LLM = start
    try:
        yield effective
    finally:
        vllm_generation.LLM = plain


def in_words(effective: Mapping[str, Any]) -> str:
    """The arguments in one line."""
    return "vLLM was started with " + ", ".join(f"{name}={effective[name]}" for name in sorted(effective))


def has_first_weights(generation: Any) -> bool:
    """Whether vLLM has loaded the weights that training begins with: a server may hold others, a sleeping one none."""
    return generation.mode == "colocate" and not generation._llm_weights_sleeping


def wake_up(generation: Any) -> None:
    """Sends the weights to TRL's ``VLLMGeneration``, whose vLLM is awake from then on."""
    # This wakes what holds the weights.
    generation.sync_weights()
    if _sleeps(generation):
        generation.llm.wake_up(tags=["kv_cache"])


def sleep(generation: Any) -> bool:
    """Lets a vLLM that may sleep give its memory back; tells whether it has lost its weights by that."""
    if not _sleeps(generation) or generation._llm_weights_sleeping:
        return False
    generation.llm.sleep(level=2)
    generation._llm_weights_sleeping = True
    return True


def _sleeps(generation: Any) -> bool:
    return generation.mode == "colocate" and bool(generation.enable_sleep_mode)
