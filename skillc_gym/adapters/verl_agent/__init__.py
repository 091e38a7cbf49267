"""verl-agent and its forks: our environments behind their managers, their prompts on our environments.

``from skillc_gym.adapters.verl_agent import build_alfworld_envs, build_webshop_envs`` stands in for the builders of
``agent_system.environments.env_package``; ``python -m skillc_gym.adapters.verl_agent patch CHECKOUT`` writes these
lines. Nothing of theirs is imported, nor is Ray, Java or torch.
"""

from skillc_gym.adapters.verl_agent.draws import alfworld_panel, game_cycle
from skillc_gym.adapters.verl_agent.prompts import read_chat
from skillc_gym.adapters.verl_agent.vectors import (
    AlfworldEnvs,
    ShowSkills,
    WebshopEnvs,
    build_alfworld_envs,
    build_webshop_envs,
)

__all__ = [
    "AlfworldEnvs",
    "ShowSkills",
    "WebshopEnvs",
    "alfworld_panel",
    "build_alfworld_envs",
    "build_webshop_envs",
    "game_cycle",
    "read_chat",
]
