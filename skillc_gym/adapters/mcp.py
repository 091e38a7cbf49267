"""A server of the Model Context Protocol: an agent starts an episode and acts in it, by tools."""

from __future__ import annotations

import json
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple

from skillc_gym.adapters.chat_env import EPISODE_OVER, ChatEnv, EpisodeRequest, tasks_of
from skillc_gym.errors import SkillCError, needs_extra, require_name
from skillc_gym.values import require_whole
from skillc_gym.version import __version__

with needs_extra("mcp", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult, TextContent

RECORD = "skillc-gym/record"
"""Where an episode's :meth:`~skillc_gym.adapters.ChatEnv.record` is in the ``_meta`` of every answer.

By MCP's guidance hosts keep ``_meta`` from the model: an agent that knew its condition could act on it.
"""

Answer = Annotated[CallToolResult, dict[str, Any]]
"""What a tool returns: content of these keys and values, and ``_meta``."""


class _Kept(NamedTuple):
    """An episode's environment, which one call uses at a time."""

    env: ChatEnv
    lock: threading.Lock

    def close(self) -> None:
        """Ends the episode, once nobody acts in it."""
        with self.lock:
            self.env.cut()
            self.env.close()


class EpisodeTools:
    """The tools of a server; arguments are those of :func:`create_server`.

    Raises:
        UnknownNameError: A request names a task that does not exist.
        ConfigError: ``episodes`` is below 1.
    """

    def __init__(
        self, make: Callable[[], ChatEnv], episodes: int = 64, requests: Iterable[EpisodeRequest] = ()
    ) -> None:
        self._make, self._most = make, require_whole("episodes", episodes, 1)
        self._task_ids = tasks_of(make)
        self._episodes: dict[tuple[str, str], _Kept] = {}
        self._requests = deque(requests)
        for request in self._requests:
            require_name("task of a request", request.task_id, self._task_ids)
        self._lock = threading.Lock()

    def list_tasks(self, start: int = 0, stop: int = 20) -> list[str]:
        """Lists the tasks from one place up to another, in a fixed order."""
        return list(self._task_ids[start:stop])

    def start(
        self,
        ctx: Context[Any, Any],
        task_id: str | None = None,
        seed: int | None = None,
        skill: bool = False,
        group_id: int = 0,
    ) -> Answer:
        """Starts an episode and tells its task.

        Args:
            ctx: The request; not an argument of the tool.
            task_id: A task of list_tasks; without it the seed picks one.
            seed: Seed of the environment; another one each time if left out.
            skill: Whether the skill is shown.
            group_id: Number of the group that the episode belongs to.
        """
        try:
            return self._start(ctx, lambda env: env.reset(task_id, seed=seed, condition=int(skill), group_id=group_id))
        except SkillCError as error:
            raise ToolError(str(error)) from error  # the server hides the words of any other exception

    def start_next(self, ctx: Context[Any, Any]) -> Answer:
        """Starts the next episode and tells its task."""
        try:
            # Calls come in threads, and to begin takes a while: a request is taken before anybody else can see it.
            request = self._requests.popleft()
        except IndexError:
            raise ToolError("Every episode has been started: there is none left to start.") from None
        try:
            return self._start(ctx, lambda env: env.begin(request))
        except BaseException:  # its words, which may name the task or the condition, are for the server's log alone
            self._requests.appendleft(request)
            raise

    def _start(self, ctx: Context[Any, Any], begin: Callable[[ChatEnv], list[dict[str, str]]]) -> Answer:
        env = self._make()
        try:
            chat = begin(env)
        finally:
            if env.done:  # it could not begin
                env.close()
        # Whoever knows an id acts in its episode, and not every transport has sessions: only its client can know it.
        episode = secrets.token_urlsafe(16)
        forgotten = None
        with self._lock:
            if len(self._episodes) >= self._most:
                over = (key for key, kept in self._episodes.items() if kept.env.done)
                forgotten = self._episodes.pop(next(over, next(iter(self._episodes))))
            self._episodes[_session(ctx), episode] = _Kept(env, threading.Lock())
        if forgotten is not None:
            forgotten.close()
        return _answer(env, episode=episode, text="\n\n".join(message["content"] for message in chat))

    def act(self, ctx: Context[Any, Any], episode: str, command: str) -> Answer:
        """Carries out one command in an episode and tells what happens.

        Args:
            ctx: The request; not an argument of the tool.
            episode: What start called it.
            command: One of the possible commands, exactly as it is listed.
        """
        with self._lock:
            kept = self._episodes.get((_session(ctx), episode))
        if kept is None:
            raise ToolError(f"There is no episode {episode[:40]!r} under way. Start one with start().")
        with kept.lock:
            env = kept.env
            if env.done:
                return _answer(env, text=EPISODE_OVER)
            step = env.step(command)
            if step.done:
                env.close()
            return _answer(env, text=step.messages[-1]["content"])


def _answer(env: ChatEnv, **told: str) -> CallToolResult:
    """What the agent is told, and whether its episode is over; beside that, for the harness, the record."""
    shown = {**told, "done": env.done}
    text = TextContent(type="text", text=json.dumps(shown, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=shown, meta={RECORD: env.record()})


def _session(ctx: Context[Any, Any]) -> str:
    """The transport's session; "" where it has none, as on standard input and output."""
    return str((ctx.headers or {}).get("mcp-session-id", ""))


def create_server(
    make: Callable[[], ChatEnv], *, requests: Iterable[EpisodeRequest] | None = None, episodes: int = 64
) -> MCPServer:
    """Makes the server; ``server.run()`` serves standard input and output, ``server.run("streamable-http")`` a port.

    The agent reads ``text`` and ``done``, and of ``start`` the ``episode`` to act in; who plays and measures reads the
    record in the result's ``_meta``, under :data:`RECORD`. To measure, give every episode a conversation of its own: an
    agent that has read the skill knows it in the next one too.

    Args:
        make: Makes an environment with bare commands (``ChatEnv(..., tags=False)``), once per episode under way.
        requests: The episodes to play, such as :func:`~skillc_gym.adapters.paired_requests` gives: ``start`` begins the
            next one and takes no arguments. Without them the agent itself chooses task, seed and condition, which is
            for trying things out, not for measuring.
        episodes: Most episodes that are kept; one that has ended is forgotten first, else the oldest.
    """
    tools = EpisodeTools(make, episodes, requests or ())
    server = MCPServer(
        "skillc-gym",
        version=__version__,
        instructions="Start an episode, then act until an answer says that it is done.",
    )
    if requests is None:
        server.add_tool(tools.list_tasks)
    server.add_tool(tools.start if requests is None else tools.start_next, name="start")
    server.add_tool(tools.act)
    return server
