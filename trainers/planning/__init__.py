"""What a run needs before it is started: memory per GPU, and which setting mends what does not fit."""

from trainers.planning.machine import Machine
from trainers.planning.plan import Plan, make_plan
from trainers.planning.setups import Setup, load_setup, setup_names

__all__ = ["Machine", "Plan", "Setup", "load_setup", "make_plan", "setup_names"]
