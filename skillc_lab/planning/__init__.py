"""What a run needs before it is started: memory per GPU, and which setting mends what does not fit."""

from skillc_lab.planning.machine import Machine
from skillc_lab.planning.plan import Plan, make_plan
from skillc_lab.planning.setups import Setup, load_setup, setup_names

__all__ = ["Machine", "Plan", "Setup", "load_setup", "make_plan", "setup_names"]
