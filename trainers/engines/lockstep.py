"""One engine for several training processes: they ask it together, turn by turn, until the last one has nothing to say.

A vLLM whose weights are spread over processes needs the same requests from each of them in the same order; a server
that TRL is connected to knows the first process alone. In both cases a process whose episodes have ended keeps taking
part, with nothing to ask, as long as others play.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from skillc_gym.errors import ConfigError, EngineError
from trainers.base import Sampling
from trainers.engines.types import Answer, Engine, Generation, Request, StreamingEngine

T = TypeVar("T")
_FAILED = "The engine that all training processes share failed"
NO_WRITER = (
    "The training processes share one vLLM and can only play whole collections in step; a policy that writes skills "
    "needs vllm_mode=colocate with vllm_tensor_parallel=1."
)
"""Why one process alone cannot ask a :class:`LockstepEngine`."""


class ProcessExchange:
    """Processes of ``torch.distributed`` (of a group, or all) that share an engine, or whose first one asks for all."""

    def __init__(self, group: Any = None, *, first_asks: bool = False) -> None:
        import torch.distributed

        self._dist, self._group, self._first_asks = torch.distributed, group, first_asks

    @property
    def place(self) -> int:
        """Which of them this is."""
        return int(self._dist.get_rank(self._group))

    def gather(self, part: T) -> list[T]:
        """What each of them has, in their order, on each of them."""
        parts: list[Any] = [None] * self._dist.get_world_size(self._group)
        self._dist.all_gather_object(parts, part, group=self._group)
        return parts

    def result(self, ask: Callable[[], T]) -> T:
        """What the engine answers, asked by all, or by the first, whose failure becomes everybody's (EngineError)."""
        if not self._first_asks:
            return ask()
        told: list[Any] = [(None, "interrupted")]
        try:
            if self.place == 0:
                told = [(ask(), "")]
        except Exception as error:
            told = [(None, f"{type(error).__name__}: {error}")]
            raise EngineError(f"{_FAILED}: {told[0][1]}") from error
        finally:
            # The other processes wait, whatever it was: without a word from here they would hang.
            self._dist.broadcast_object_list(told, src=0, group=self._group)
        value, fault = told[0]
        if fault:
            raise EngineError(f"{_FAILED}: {fault}")
        return cast("T", value)


class LockstepEngine(StreamingEngine):
    """Plays several processes' conversations together; the engine is None where it is not asked."""

    def __init__(self, engine: Engine | None, exchange: ProcessExchange, before: Callable[[], object]) -> None:
        self.engine, self.exchange = engine, exchange
        self._before = before

    def stream(self, requests: Sequence[Request], sampling: Sampling, answer: Answer) -> None:
        """Plays until nobody asks any more; see :class:`trainers.engines.types.StreamingEngine`."""
        # Who has nothing to ask goes on gathering: a collective call hangs if one process stays away.
        while any(everyone := self.exchange.gather(list(requests))):
            # Everybody asks for everybody, in the same order (tensor parallelism needs it), and keeps its own part.
            asked = [replace(each, key=(place, each.key)) for place, part in enumerate(everyone) for each in part]
            replies = self.exchange.result(partial(self._ask, asked, sampling))
            start = sum(len(part) for part in everyone[: self.exchange.place])
            own = replies[start : start + len(requests)]
            requests = answer(list(zip(requests, own, strict=True))) if requests else []

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """Refused with a ConfigError: one process alone cannot ask."""
        raise ConfigError(NO_WRITER)

    def reset(self) -> None:
        """Takes in the present weights, on all processes."""
        self._before()

    def _ask(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        assert self.engine is not None
        return self.engine.generate(requests, sampling)
