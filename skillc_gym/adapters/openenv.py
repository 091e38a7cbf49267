"""OpenEnv: a server of environments, one session per episode, with tasks that a client can list and choose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gymnasium.error import ResetNeeded

from skillc_gym.adapters.chat_env import EPISODE_OVER, ChatEnv
from skillc_gym.errors import ConfigError, SkillCError, needs_extra

with needs_extra("openenv", "openenv"):
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
    from pydantic import Field
    from starlette.responses import JSONResponse


class ChatAction(Action):  # type: ignore[misc]
    """A reply of the agent."""

    reply: str = Field(description="The agent's whole reply: <think>...</think><action>...</action>")


class ChatObservation(Observation):  # type: ignore[misc]
    """What the agent reads next, and how the episode stands."""

    messages: list[dict[str, str]] = Field(description="New chat messages: at reset the whole prompt")
    terminated: bool = Field(default=False, description="The environment ended the episode")
    truncated: bool = Field(default=False, description="A step limit ended the episode")
    record: dict[str, Any] = Field(default_factory=dict, description="Task, seed, condition, skill, hash and outcome")


class SkillEnvironment(Environment):  # type: ignore[misc]
    """One session of what ``make`` makes; ``split`` is what its tasks are called among OpenEnv's splits."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, make: Callable[[], ChatEnv], split: str = "tasks") -> None:
        super().__init__()
        self._chat, self._split = make(), split
        self._episode_id: str | None = None
        self._started = False

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> ChatObservation:
        """Starts an episode.

        Args:
            seed: Seed of the environment. Without it, as in Gymnasium, it follows from the one that the session gave
                last, and is random if it gave none; the record tells it.
            episode_id: Any name, told again in :attr:`state`.
            **kwargs: ``task_id``, or ``index`` (from 0) and if you like ``split``, for the task (else the seed picks);
                ``skill`` (bool), ``group_id``.

        Raises:
            SkillCError: An argument, a split or a task that does not exist.
        """
        known = {"task_id", "index", "split", "skill", "group_id"}
        if not known >= set(kwargs):
            raise ConfigError(f"reset() knows {', '.join(sorted(known))}; got {', '.join(sorted(set(kwargs) - known))}")
        task_id, index = kwargs.get("task_id"), kwargs.get("index")
        task_ids = self._tasks(self._split if kwargs.get("split") is None else kwargs["split"])
        if task_id is not None and index is not None:
            raise ConfigError("Name the task by task_id or by index, not by both")
        if index is not None:
            task_id = _task_at(task_ids, index)
        skill, group_id = kwargs.get("skill", False), kwargs.get("group_id", 0)
        if type(skill) is not bool or type(group_id) is not int:
            raise ConfigError(f"skill is true or false, and group_id a whole number; got {skill!r} and {group_id!r}")
        messages = self._chat.reset(task_id, seed=seed, condition=int(skill), group_id=group_id)
        self._episode_id, self._started = episode_id, True
        return ChatObservation(messages=messages, record=self._chat.record())

    def step(self, action: ChatAction, timeout_s: float | None = None, **kwargs: Any) -> ChatObservation:
        """Carries out a reply; after the end it changes nothing."""
        messages, reward = [{"role": "user", "content": EPISODE_OVER}], 0.0
        if not self._chat.done:
            step = self._chat.step(action.reply)
            messages, reward = step.messages, step.reward
        record = self._chat.record()
        ends = {name: record[name] for name in ("terminated", "truncated")}
        return ChatObservation(messages=messages, done=self._chat.done, reward=reward, record=record, **ends)

    @property
    def state(self) -> State:
        """The episode's name and length, and its record."""
        record = self._chat.record() if self._started else {}
        return State(episode_id=self._episode_id, step_count=record.get("steps", 0), record=record)

    def list_splits(self) -> list[str]:
        """The one split that is served."""
        return [self._split]

    def num_tasks(self, split: str) -> int:
        """How many tasks there are."""
        return len(self._tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """One task's id and place."""
        try:
            return {"id": _task_at(self._tasks(split), index), "index": index}
        except ConfigError as error:
            raise IndexError(str(error)) from error  # what OpenEnv's server answers as the client's mistake

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """All tasks, in a fixed order."""
        return [{"id": task_id, "index": index} for index, task_id in enumerate(self._tasks(split))]

    def close(self) -> None:
        """Ends the session."""
        self._chat.close()

    def _tasks(self, split: str) -> tuple[str, ...]:
        if split != self._split:
            raise ConfigError(f"This server has the split {self._split!r}, not {split!r}")
        return self._chat.task_ids


def _task_at(task_ids: tuple[str, ...], index: Any) -> str:
    if type(index) is not int or not 0 <= index < len(task_ids):
        raise ConfigError(f"An index is a whole number from 0 to {len(task_ids) - 1}, got {index!r:.40}")
    return task_ids[index]


def create_server(make: Callable[[], ChatEnv], *, split: str = "tasks", sessions: int = 64) -> Any:
    """Makes the FastAPI application, for so many sessions; serve it with uvicorn, or name it in an ``openenv.yaml``."""
    factory = partial(SkillEnvironment, make, split)
    app = create_app(factory, ChatAction, ChatObservation, env_name="skillc", max_concurrent_envs=sessions)
    for mistake in (SkillCError, ResetNeeded):  # a step over plain HTTP has no session, so no episode
        app.add_exception_handler(mistake, _in_words)
    return app


async def _in_words(request: Any, error: Exception) -> Any:
    """Answers a bad request over HTTP; the websocket of OpenEnv tells the words itself."""
    return JSONResponse({"detail": str(error)}, status_code=422)
