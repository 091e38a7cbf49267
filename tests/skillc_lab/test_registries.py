"""What can be named ``module:NAME`` is held against what it must be, of whichever kind."""

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.agents import AGENTS
from skillc_lab.commands.write_skills import FORMATS
from trainers.backends import BACKENDS
from trainers.base import Registry, load_object
from trainers.recipes import ALLOCATIONS, RECIPES, SCHEMES
from trainers.retrieval import RETRIEVALS
from trainers.tracking.loggers import LOGGERS

ALL = [AGENTS, ALLOCATIONS, BACKENDS, FORMATS, LOGGERS, RECIPES, RETRIEVALS, SCHEMES]


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.kind)
def test_an_object_of_another_kind_is_told_in_one_line(registry: Registry) -> None:
    assert all(registry.wanted.fits(registry.get(name)) for name in registry.names())
    with pytest.raises(ConfigError, match=rf"The {registry.kind} 'math:pi' must be .*; got 3\.14"):
        registry.get("math:pi")


def test_a_wrapper_or_a_metric_can_be_called() -> None:
    with pytest.raises(ConfigError, match="The metric 'math:pi' must be something to call"):
        load_object("math:pi", "metric")
