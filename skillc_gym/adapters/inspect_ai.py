"""Inspect: tasks whose samples are episodes in pairs, scored by success, its gap and the gap's standard error.

``inspect eval skillc_gym/alfworld`` finds them by the entry point of the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from statistics import fmean, stdev
from typing import Any

from skillc_gym.adapters.chat_env import ChatEnv, EpisodeRequest, paired_requests, tasks_of
from skillc_gym.errors import needs_extra
from skillc_gym.panels import ranked
from skillc_gym.values import require_whole
from skillc_gym.wrappers.action_format import with_thoughts

with needs_extra("inspect-ai", "inspect"):
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import Score, grouped, mean, metric, scorer, stderr
    from inspect_ai.solver import solver

_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_STORE = "episode"


def skill_task(make: Callable[[], ChatEnv], requests: Iterable[EpisodeRequest], **task_kwargs: Any) -> Task:
    """Makes the task of some episodes; ``make`` is called once per sample, ``task_kwargs`` are Inspect's own."""
    return Task(dataset=samples(make, requests), solver=play(make), scorer=[success(), average_score()], **task_kwargs)


# Inspect is not installed where types are checked, so that its decorators, six in this file, have none there.
@task  # type: ignore[untyped-decorator]
def alfworld(tasks: int = 20, seed: int = 0, library: str | None = None, **env_kwargs: Any) -> Task:
    """Household tasks in pairs: ``inspect eval skillc_gym/alfworld -T tasks=8 -T split=valid_seen``.

    Args:
        tasks: How many tasks, drawn by a hash of seed and name: the same on every machine.
        seed: Seed of the draw and of the pairs.
        library: Skill library; the environment's own by default.
        **env_kwargs: Arguments of the environment; generated games of valid_unseen by default.
    """
    return _panel("alfworld", tasks, seed, library, {"data": "generated", "split": "valid_unseen"} | env_kwargs)


@task  # type: ignore[untyped-decorator]
def webshop(tasks: int = 20, seed: int = 0, library: str | None = None, **env_kwargs: Any) -> Task:
    """Shopping in pairs: ``inspect eval skillc_gym/webshop``; arguments as for :func:`alfworld`."""
    return _panel("webshop", tasks, seed, library, {"data": "generated", "split": "test"} | env_kwargs)


def _panel(env: str, tasks: int, seed: int, library: str | None, env_kwargs: dict[str, Any]) -> Task:
    make = partial(ChatEnv, env, library=library, **env_kwargs)
    count = require_whole("tasks", tasks, 1)
    return skill_task(make, paired_requests(ranked(tasks_of(make), seed)[:count], seed=seed))


def samples(make: Callable[[], ChatEnv], requests: Iterable[EpisodeRequest]) -> MemoryDataset:
    """One sample per request: the first prompt as input, the request's columns and the task type as metadata."""
    with closing(make()) as env:
        return MemoryDataset([_sample(env, number, request) for number, request in enumerate(requests)])


def _sample(env: ChatEnv, number: int, request: EpisodeRequest) -> Sample:
    chat = env.begin(request)
    metadata = {**request.to_row(), "task_type": env.episode().task_type}
    return Sample(input=_messages(chat), id=f"{number}-{request.task_id}", metadata=metadata)


@solver  # type: ignore[untyped-decorator]
def play(make: Callable[[], ChatEnv]) -> Any:
    """Lets the model play a sample's episode; one of Inspect's limits cuts it, and it counts as truncated."""

    async def solve(state: Any, generate: Callable[..., Any]) -> Any:
        with closing(make()) as env:
            chat = env.begin(state.metadata)
            try:
                state.messages = _messages(chat)  # which Inspect holds against its limit, too
                while not env.done:
                    state = await generate(state)
                    # A chat that is too long comes back as a reply with the server's error for its text.
                    if state.completed or state.output.stop_reason == "model_length":
                        break
                    state.messages += _messages(env.step(_reply(state.output.message)).messages)
            finally:
                env.cut()
                state.store.set(_STORE, env.record())
        return state

    return solve


def _reply(message: Any) -> str:
    """In one text; Inspect takes thoughts out of what OpenAI-compatible servers say."""
    parts = message.content if isinstance(message.content, list) else []
    thoughts = (part.summary if part.redacted else part.reasoning for part in parts if part.type == "reasoning")
    return with_thoughts(message.text, next(thoughts, None))


@metric  # type: ignore[untyped-decorator]
def gap() -> Any:
    """Success with the skill minus success without, over groups: ``gap`` and its standard error ``gap_stderr``."""

    def measure(scores: Sequence[Any]) -> dict[str, float]:
        groups: dict[int, tuple[list[float], list[float]]] = {}
        for score in scores:
            metadata = score.sample_metadata
            groups.setdefault(metadata["group_id"], ([], []))[metadata["condition"]].append(score.score.as_float())
        gaps = [fmean(with_) - fmean(without) for without, with_ in groups.values() if without and with_]
        error = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
        return {"gap": fmean(gaps) if gaps else math.nan, "gap_stderr": error}

    return measure


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def average_score() -> Any:
    """The environment's own score in [0, 1], what was done in part counted: the shop's first figure."""

    async def score(state: Any, target: Any) -> Score:
        return Score(value=state.store.get(_STORE)["task_score"])

    return score


@scorer(metrics=[grouped(mean(), "condition"), stderr(cluster="group_id"), gap()])  # type: ignore[untyped-decorator]
def success() -> Any:
    """Whether the episode was won; the score's metadata is :meth:`~skillc_gym.adapters.ChatEnv.record`."""

    async def score(state: Any, target: Any) -> Score:
        record = state.store.get(_STORE)
        return Score(value=record["won"], explanation=f"{record['steps']} steps", metadata=record)

    return score


def _messages(chat: Iterable[dict[str, str]]) -> list[Any]:
    return [_ROLES[message["role"]](content=message["content"]) for message in chat]
