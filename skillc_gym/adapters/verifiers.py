"""verifiers: a taskset of tasks to be played in pairs, and the environment that plays them.

An id of verifiers is the name of a top-level module: export the classes from one of your own (see the page).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from statistics import fmean
from typing import Any

from skillc_gym.adapters.chat_env import ChatEnv, EpisodeRequest, paired_requests, tasks_of
from skillc_gym.errors import needs_extra
from skillc_gym.values import require_whole
from skillc_gym.wrappers.action_format import with_thoughts

with needs_extra("verifiers", "verifiers"):
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire


class SkillTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which tasks of which environment; ``--env.taskset.*`` on the command line."""

    env: str = "alfworld"
    """Short name or id of the environment."""
    env_kwargs: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies defaults
    """Its arguments."""
    library: str | None = None
    """Skill library; the environment's own by default."""
    chat: str = "default"
    """Wording of the prompts by name."""
    tasks: int | None = None
    """How many tasks, the first by name; all by default."""
    seed: int = 0
    """Seed of the groups' seeds."""
    group_size: int = 2
    """Episodes of a task."""
    n_plus: int | None = None
    """How many of them see the skill; half by default."""

    def make(self) -> ChatEnv:
        """Makes the environment."""
        return ChatEnv(self.env, library=self.library, chat=self.chat, **self.env_kwargs)


class SkillData(vf.TaskData):  # type: ignore[misc]
    """One group of episodes, or one of its members as a player sees it: then ``conditions`` has one entry."""

    task_id: str
    seed: int
    group_id: int
    conditions: list[int]
    """1 with the skill, 0 without, per episode."""


class SkillTask(vf.Task[SkillData]):  # type: ignore[misc]
    """A task; what it earns is recorded by :class:`SkillEnv`."""


class SkillTaskset(vf.Taskset[SkillTask, SkillTasksetConfig]):  # type: ignore[misc]
    """The tasks of an environment, each one group of episodes."""

    def load(self) -> Iterator[SkillTask]:
        """Yields the tasks in the environment's order."""
        config = self.config
        count = None if config.tasks is None else require_whole("tasks", config.tasks, 1)
        names = tasks_of(config.make)[:count]
        size = config.group_size
        requests = paired_requests(names, seed=config.seed, group_size=size, n_plus=config.n_plus)
        for start in range(0, len(requests), size):
            first, conditions = requests[start], [member.condition for member in requests[start : start + size]]
            named = {"task_id": first.task_id, "seed": first.seed, "group_id": first.group_id}
            yield SkillTask(SkillData(id=first.task_id, conditions=conditions, **named), config.task)


class SkillEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """One seat, ``player``."""

    player: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})
    """Who plays. Nothing that a model says is executed outside the environment, so no container is needed."""


class SkillEnv(vf.Env[SkillEnvConfig]):  # type: ignore[misc]
    """Plays each task with the skill and without, and writes the gap of the task onto its traces.

    Every trace has the reward ``episode_return``, the metrics ``condition``, ``won``, ``terminated``, ``truncated``,
    ``steps`` and ``gap``, and in ``info`` the whole :meth:`~skillc_gym.adapters.ChatEnv.record`.
    """

    async def run(self, task: SkillTask, agents: Any) -> None:
        """Plays the members of a group; how many at once is verifiers' ``max_concurrent_agents``."""
        async with asyncio.TaskGroup() as group:
            for condition in task.data.conditions:
                group.create_task(self._play(task, agents.player, condition))

    async def finalize(self, task: SkillTask, episode: Any) -> None:
        """Compares the members that verifiers counts: mean success with the skill minus mean success without."""
        played = [trace.info for trace in episode.traces if trace.ok]
        won = {shown: [info["won"] for info in played if info.get("condition") == shown] for shown in (1, 0)}
        if all(won.values()):
            for trace in episode.traces:
                trace.record_metric("gap", fmean(won[1]) - fmean(won[0]))

    async def _play(self, task: SkillTask, player: Any, condition: int) -> None:
        data = task.data
        with closing(self.config.taskset.make()) as chat:
            *system, first = chat.begin(EpisodeRequest(data.task_id, data.seed, condition, data.group_id))
            seen = {"conditions": [condition], "prompt": first["content"]}
            if system:
                seen["system_prompt"] = system[0]["content"]
            async with player.interaction(type(task)(data.model_copy(update=seen), task.config)) as interaction:
                segment = await interaction.turn()
                while not segment.terminated:
                    step = chat.step(_reply(segment))
                    if step.done:
                        break
                    segment = await interaction.turn(step.messages[-1]["content"])
        chat.cut()
        trace, record = interaction.trace, chat.record()
        trace.record_reward("episode_return", record["episode_return"])
        trace.record_metrics(chat.numbers())
        trace.info.update(record)


def _reply(segment: Any) -> str:
    """In one text; servers and renderers that parse thoughts take them out of the content."""
    thoughts = (message.reasoning_content for message in reversed(segment.messages) if message.role == "assistant")
    return with_thoughts(segment.last_reply, next(thoughts, None))


class ChatHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Asks the model for one reply per turn, in this process; verifiers' own starts a process for each."""

    APPENDS_SYSTEM_PROMPT = SUPPORTS_RESUME = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(  # noqa: PLR0917 - verifiers calls it by position
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> vf.ProgramResult:
        """Sends the chat to verifiers' endpoint, which records what comes back on the trace."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        said = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt
        body = {"model": ctx.model, "messages": messages + [message_to_wire(message) for message in said]}
        async with httpx.AsyncClient(timeout=None) as client:
            headers = {"Authorization": f"Bearer {secret}"}
            reply = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        return vf.ProgramResult(exit_code=int(reply.is_error), stdout="", stderr=reply.text if reply.is_error else "")
