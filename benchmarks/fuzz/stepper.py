"""Any text among admissible commands of ALFWorld's engine."""

from __future__ import annotations

from typing import Any

from benchmarks.fuzz.games import fuzzed_games
from benchmarks.fuzz.target import FuzzTarget, Run
from skillc_gym.envs.alfworld.engine import NOTHING_HAPPENS, World

__all__ = ["TARGET", "step_checked"]


def stepper_target(atheris: Any) -> Run:
    """Plays fuzzed commands among admissible ones, and goes back to earlier moments."""
    games = fuzzed_games()
    loaded = [games.load(task_id, naming) for task_id in games.task_ids for naming in (None, 1)]

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        world = World(loaded[provider.ConsumeIntInRange(0, len(loaded) - 1)])
        world.reset()
        moments = [(world.snapshot(), world.admissible)]
        while provider.remaining_bytes() > 1:
            step_checked(world, _command(provider, world))
            if provider.ConsumeIntInRange(0, 15) == 0:
                moments.append((world.snapshot(), world.admissible))
                state, admissible = moments[provider.ConsumeIntInRange(0, len(moments) - 1)]
                world.restore(state)
                assert world.admissible == admissible, "a snapshot led elsewhere"

    return target


def _command(provider: Any, world: World) -> str:
    commands = world.game.commands if provider.ConsumeBool() else tuple(world.admissible)
    command: str = commands[provider.ConsumeIntInRange(0, len(commands) - 1)]
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return str(provider.ConsumeUnicode(60))
    if way == 1:
        cut = provider.ConsumeIntInRange(0, len(command))
        return command[:cut] + str(provider.ConsumeUnicode(10)) + command[cut:]
    return command


def step_checked(world: World, command: str) -> None:
    """Makes a step and checks what must hold of any answer.

    Raises:
        AssertionError: Something does not.
    """
    before, possible = world.state, world.is_admissible(command)
    answer, admissible = world.step(command)
    assert admissible is possible, "admissible and answered differently"
    if not admissible:
        assert answer == NOTHING_HAPPENS, "an impossible command got another answer"
        assert world.state == before, "an impossible command changed the state"
    assert answer, "an empty answer"
    assert world.admissible == sorted(world.admissible), "the commands are not sorted"


TARGET = FuzzTarget(
    "The stepper plays any text among admissible commands and goes back to earlier moments; it may never raise, and "
    "what it answers must agree with what it offers.",
    stepper_target,
)
