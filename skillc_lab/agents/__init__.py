"""Agents by name: ways to use a policy whose weights stay as they are, one small file each."""

from __future__ import annotations

from typing import Any

from skillc_lab.agents.base import ActingAgent, Agent, AgentTools
from trainers.base import Registry, instance_of, override

__all__ = ["AGENTS", "ActingAgent", "Agent", "AgentTools", "get_agent"]

AGENTS = Registry("agent", __name__, "AGENT", "skillc_gym.agents", instance_of(Agent))
"""Built-in agents, entry points, and ``module:AGENT``."""


def get_agent(name: str, **options: Any) -> Agent:
    """Looks an agent up by name or ``module:NAME``, some options changed; a ConfigError for what is none.

    Example:
        >>> get_agent("reflexion", trials=2).trials
        2
    """
    agent: Agent = AGENTS.get(name)
    return override(agent, options) if options else agent
