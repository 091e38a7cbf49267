"""What a run needs before it is started: memory per GPU, and which setting makes it fit."""

from skillc_lab.planning.plan import Plan, make_plan
from skillc_lab.planning.setups import (
    Machine,
    Setup,
    Sharding,
    launch_command,
    launcher_file,
    load_setup,
    setup_names,
    typed_words,
)
from skillc_lab.planning.shapes import EpisodeLength, episode_length

__all__ = ["EpisodeLength", "Machine", "Plan", "Setup", "Sharding", "episode_length", "launch_command", "launcher_file"]
__all__ += ["load_setup", "make_plan", "setup_names", "typed_words"]
