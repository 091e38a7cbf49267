"""vLLM, stood in for by fakes, and processes that share an engine."""

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, EngineError
from trainers.base import Sampling
from trainers.engines.lockstep import LockstepEngine, ProcessExchange
from trainers.engines.types import Generation, Request, StreamingEngine
from trainers.engines.vllm import VllmEngine, VllmServerEngine, engine_of_trl, turn_seed


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the package: what it samples by is a namespace."""
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=SimpleNamespace))


class FakeLLM:
    """Answers like vLLM: the tokens 5, 6, 1 with their log-probabilities."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def generate(self, prompts: Any, sampling_params: Any, use_tqdm: bool) -> Any:
        self.calls.append((prompts, sampling_params))
        logprobs = [{token: SimpleNamespace(logprob=-0.1 * token)} for token in (5, 6, 1)]
        return [SimpleNamespace(outputs=[SimpleNamespace(token_ids=[5, 6, 1], logprobs=logprobs)]) for _ in prompts]

    def reset_prefix_cache(self) -> None:
        self.calls.append("reset")


def test_tokens_go_in_and_log_probabilities_come_out() -> None:
    llm, synced = FakeLLM(), []
    engine = VllmEngine(llm, [1], before_generate=lambda: synced.append(1))
    requests = [Request(0, [3, 4], 7, 9), Request(1, [3], 8, 5)]
    first, _ = engine.generate(requests, Sampling(0.4))
    assert (first.token_ids, first.logprobs) == ([5, 6, 1], pytest.approx([-0.5, -0.6, -0.1]))
    prompts, params = llm.calls[0]
    assert prompts == [{"prompt_token_ids": [3, 4]}, {"prompt_token_ids": [3]}]
    assert [(p.max_tokens, p.temperature, p.stop_token_ids) for p in params] == [(9, 0.4, [1]), (5, 0.4, [1])]
    assert params[0].seed == turn_seed(requests[0])
    assert synced == [1]
    engine.reset()
    assert llm.calls[-1] == "reset"
    engine.generate(requests, Sampling(greedy=True))
    assert llm.calls[-1][1][0].temperature == 0.0
    engine.generate(requests, Sampling(top_p=0.9, top_k=20, min_p=0.1))
    cut = llm.calls[-1][1][0]
    assert (cut.top_p, cut.top_k, cut.min_p) == (0.9, 20, 0.1)


class FakeSteps:
    """Answers like vLLM's own engine: each step adds the token 5 to every reply, its last one is the token 1."""

    def __init__(self, lengths: dict[int, int]) -> None:
        self.lengths, self.said = lengths, dict[str, list[int]]()
        self.most, self.aborted = 0, list[str]()

    def add_request(self, name: str, prompt: Any, params: Any) -> None:
        self.said[name] = []
        self.lengths[int(name)] = self.lengths.get(int(name), params.max_tokens)

    def step(self) -> list[Any]:
        self.most = max(self.most, len(self.said))
        return [self._one(name) for name in list(self.said)]

    def _one(self, name: str) -> Any:
        ids = self.said[name]
        finished = len(ids) + 1 == self.lengths[int(name)]
        ids.append(1 if finished else 5)
        completion = SimpleNamespace(token_ids=list(ids), logprobs=[{t: SimpleNamespace(logprob=-1.0)} for t in ids])
        if finished:
            del self.said[name]
        return SimpleNamespace(request_id=name, finished=finished, outputs=[completion])

    def abort_request(self, names: list[str]) -> None:
        self.aborted += names


def test_conversations_go_on_while_others_still_speak() -> None:
    steps, synced = FakeSteps({0: 2, 1: 6}), []
    engine = VllmEngine(SimpleNamespace(llm_engine=steps), [1], before_generate=lambda: synced.append(1))
    order: list[tuple[Any, int]] = []

    def answer(replies: Any) -> list[Request]:
        order.extend((request.key, len(reply.token_ids)) for request, reply in replies)
        return [Request(request.key, [3, 4], 0, 3, turn=1) for request, _ in replies if request.turn == 0]

    engine.stream([Request(key, [3], 0, 9, turn=0) for key in "ab"], Sampling(), answer)
    assert order == [("a", 2), ("a", 3), ("b", 6), ("b", 3)]
    assert (synced, steps.most, steps.aborted) == ([1], 2, [])


def fails(error: BaseException, *_: Any, **__: Any) -> Any:
    raise error


def test_what_is_under_way_is_given_up_when_somebody_raises() -> None:
    steps = FakeSteps({0: 1, 1: 6})
    engine, asked = VllmEngine(SimpleNamespace(llm_engine=steps), [1]), [Request(key, [3], 0, 9) for key in "ab"]
    with pytest.raises(ConfigError, match="gone"):
        engine.stream(asked, Sampling(), partial(fails, ConfigError("the environment is gone")))
    assert steps.aborted == ["1"]


def test_an_engine_that_dies_is_said_in_words() -> None:
    dies = partial(fails, RuntimeError("EngineCore encountered an issue."))
    steps = SimpleNamespace(add_request=lambda *_: None, step=dies, abort_request=partial(fails, RuntimeError("gone")))
    engine = VllmEngine(SimpleNamespace(llm_engine=steps, generate=dies), [1])
    server = VllmServerEngine(SimpleNamespace(generate=dies), [1], lambda: None)
    for ask in (partial(engine.stream, answer=list), engine.generate, server.generate):
        with pytest.raises(EngineError, match=r"failed \(EngineCore encountered an issue.*resume=auto goes on"):
            ask([Request(0, [3], 0)], Sampling())


def test_the_turns_of_a_conversation_have_different_seeds() -> None:
    short, long = [3] * 4, [3] * 9
    assert turn_seed(Request(0, short, 7)) != turn_seed(Request(0, long, 7))
    seeds = [turn_seed(Request(0, prompt, 7, turn=turn)) for prompt, turn in ((short, 2), (long, 2), (short, 3))]
    assert seeds[0] == seeds[1] != seeds[2]
    assert 0 <= turn_seed(Request(0, [3], 2**63)) < 2**31


def test_a_prompt_near_the_models_limit_leaves_the_others_their_room() -> None:
    def generate(prompts: list[list[int]], max_tokens: int, **_: Any) -> Any:
        # As vLLM's server does it for the whole call.
        assert all(len(ids) + max_tokens <= 8 for ids in prompts), "maximum context length"
        said = [[ids[0]] * max_tokens for ids in prompts]
        return {"completion_ids": said, "logprobs": [[[-0.1]] * max_tokens for _ in prompts]}

    engine = VllmServerEngine(SimpleNamespace(generate=generate), [1], lambda: None)
    prompts = {5: 1, 6: 7, 7: 2, 9: 5}
    requests = [Request(first, [first] * size, 0, min(3, 8 - size)) for first, size in prompts.items()]
    replies = engine.generate(requests, Sampling())
    assert [reply.token_ids for reply in replies] == [[5] * 3, [6], [7] * 3, [9] * 3]
    assert replies[1].logprobs == [-0.1]


@pytest.mark.parametrize(
    ("mode", "connected", "parallel", "processes", "kind", "asks"),
    [
        ("colocate", {"llm": None}, 1, 4, VllmEngine, None),
        ("server", {"vllm_client": None}, 1, 1, VllmServerEngine, None),
        ("server", {"vllm_client": "client"}, 1, 2, LockstepEngine, VllmServerEngine),
        ("server", {}, 1, 2, LockstepEngine, type(None)),  # TRL connects the first process; the others ask through it
        ("colocate", {"llm": None}, 2, 2, LockstepEngine, VllmEngine),
    ],
)
def test_which_engine_serves_which_set_up(
    mode: str, connected: Any, parallel: int, processes: int, kind: Any, asks: Any
) -> None:
    generation = SimpleNamespace(mode=mode, tensor_parallel_size=parallel, tp_group=None, **connected)
    engine: Any = engine_of_trl(generation, [1], lambda: None, processes)
    assert type(engine) is kind
    assert asks is None or type(engine.engine) is asks


LENGTHS = ([1, 4], [2, 2], [])
"""How many turns each process's conversations have; the last process has none."""


class Threads:
    """An exchange between threads."""

    def __init__(self, place: int, shared: dict[str, Any]) -> None:
        self.place, self._shared = place, shared

    def gather(self, part: Any) -> list[Any]:
        return self._meet("parts", part)

    def result(self, ask: Callable[[], Any]) -> Any:
        # The first process alone has an engine.
        return self._meet("told", ask() if self.place == 0 else None)[0]

    def _meet(self, name: str, mine: Any) -> list[Any]:
        self._shared[name][self.place] = mine
        self._shared["barrier"].wait(timeout=20)
        found = list(self._shared[name])
        self._shared["barrier"].wait(timeout=20)
        return found


def test_all_play_to_their_ends_in_step() -> None:
    processes = len(LENGTHS)
    shared = {"parts": [None] * processes, "told": [None] * processes, "barrier": threading.Barrier(processes)}
    calls, sent = list[int](), list[int]()
    heard: list[list[tuple[int, int]]] = [[] for _ in LENGTHS]

    def echo(requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        assert len({request.key for request in requests}) == len(requests)
        calls.append(len(requests))
        return [Generation([request.prompt_ids[0]]) for request in requests]

    def take_part(place: int) -> None:
        def answer(replies: Any) -> list[Request]:
            heard[place] += [(request.key, reply.token_ids[0]) for request, reply in replies]
            going = [request for request, _ in replies if request.turn + 1 < LENGTHS[place][request.key]]
            return [replace(request, turn=request.turn + 1) for request in going]

        asked: Any = SimpleNamespace(generate=echo) if place == 0 else None
        engine = LockstepEngine(asked, Threads(place, shared), lambda: sent.append(1))
        assert isinstance(engine, StreamingEngine)
        with pytest.raises(ConfigError, match="in step"):  # one process alone cannot ask
            engine.generate([], Sampling())
        engine.reset()
        first = [Request(key, [100 * place + key], 0, turn=0) for key in range(len(LENGTHS[place]))]
        engine.stream(first, Sampling(), answer)

    with ThreadPoolExecutor(processes) as threads:
        list(threads.map(take_part, range(processes), timeout=30))
    for place, lengths in enumerate(LENGTHS):
        assert sorted(heard[place]) == [(key, 100 * place + key) for key, n in enumerate(lengths) for _ in range(n)]
    assert calls == [4, 3, 1, 1]
    assert len(sent) == processes


def test_an_engine_that_dies_on_the_first_process_is_everybodys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, told = ProcessExchange(first_asks=True), list[Any]()
    fake = SimpleNamespace(get_rank=lambda group: 0, broadcast_object_list=lambda box, **_: told.append(box[0]))
    monkeypatch.setattr(exchange, "_dist", fake)
    with pytest.raises(EngineError, match="ConnectionError: nobody listens"):
        exchange.result(partial(fails, ConnectionError("nobody listens")))
    with pytest.raises(KeyboardInterrupt):
        exchange.result(partial(fails, KeyboardInterrupt()))
    assert told == [(None, "ConnectionError: nobody listens"), (None, "interrupted")]
