"""Where `skillc_gym.wrappers.PlanShaping` was before it served every environment with a planner."""

from skillc_gym.wrappers import PlanShaping
