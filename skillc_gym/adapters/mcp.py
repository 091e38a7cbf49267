"""A server of the Model Context Protocol: an agent lists tasks, starts an episode and acts in it, by tools."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from skillc_gym.adapters.chat_env import EPISODE_OVER, ChatEnv
from skillc_gym.errors import SkillCError, missing_extra, unknown_name

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError as error:
    raise missing_extra("mcp", "mcp") from error

__all__ = ["EpisodeTools", "create_server"]


class EpisodeTools:
    """The three tools.

    Args:
        make: Makes an environment with bare commands (``ChatEnv(..., tags=False)``), once per episode under way.
        episodes: Most episodes under way; the oldest is forgotten.
    """

    def __init__(self, make: Callable[[], ChatEnv], episodes: int = 64) -> None:
        self._make, self._most = make, episodes
        self._task_ids = make().task_ids
        self._episodes: OrderedDict[str, ChatEnv] = OrderedDict()
        self._started = 0

    def list_tasks(self, start: int = 0, stop: int = 20) -> list[str]:
        """Lists the tasks from one place up to another, in a fixed order."""
        return list(self._task_ids[start:stop])

    def start(
        self, task_id: str | None = None, seed: int = 0, skill: bool = False, group_id: int = 0
    ) -> dict[str, Any]:
        """Starts an episode and tells its task.

        Args:
            task_id: A task of list_tasks; without it the seed picks one.
            seed: Seed of the environment.
            skill: Whether the skill is shown.
            group_id: Number of the group that the episode belongs to.
        """
        env = self._make()
        try:
            chat = env.reset(task_id, seed=seed, condition=int(skill), group_id=group_id)
        except SkillCError as error:
            raise ToolError(str(error)) from error  # the server hides the words of any other exception
        self._started += 1
        episode = str(self._started)
        self._episodes[episode] = env
        if len(self._episodes) > self._most:
            self._episodes.popitem(last=False)
        return {"episode": episode, "text": "\n\n".join(message["content"] for message in chat), "record": env.record()}

    def act(self, episode: str, command: str) -> dict[str, Any]:
        """Carries out one command in an episode and tells what happens.

        Args:
            episode: What start called it.
            command: One of the possible commands, exactly as it is listed.
        """
        if episode not in self._episodes:
            raise ToolError(str(unknown_name("episode", episode, self._episodes, "Start one with start().")))
        env = self._episodes[episode]
        if env.done:
            return {"text": EPISODE_OVER, "reward": 0.0, "record": env.record()}
        step = env.step(command)
        return {"text": step.messages[-1]["content"], "reward": step.reward, "record": env.record()}


def create_server(make: Callable[[], ChatEnv], *, episodes: int = 64) -> MCPServer:
    """Makes the server; ``server.run()`` serves standard input and output, ``server.run("streamable-http")`` a port."""
    tools = EpisodeTools(make, episodes)
    server = MCPServer("skillc-gym", instructions="Start an episode, then act until its record says that it ended.")
    for tool in (tools.list_tasks, tools.start, tools.act):
        server.add_tool(tool)
    return server
