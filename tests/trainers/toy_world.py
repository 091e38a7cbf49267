"""A world in one file: lamps behind fuses, with a skill library, an expert, and all that training asks for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_library import Skill, formats
from skillc_gym.envs.base import Outcome, TextTaskEnv
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import DemoTasks, WarmStart
from skillc_gym.errors import unknown_name
from skillc_gym.spaces import Unicode

LAMPS = ("red", "green", "blue")
SKILLS = {
    "general": ("*", "Press the switch of the lamp that is asked for."),
    "blown": ("blown", "Mend the fuse before you press a switch."),
    "sound": ("sound", "The fuse is sound: press the switch at once."),
}
KINDS = ("blown", "sound")


class LampsEnv(TextTaskEnv):
    """Light a lamp; where the fuse is blown, a switch does nothing until it is mended."""

    def __init__(
        self, *, split: str = "train", data: str | None = None, generator: Mapping[str, Any] | None = None
    ) -> None:
        self.observation_space, self.action_space = Unicode(200), Unicode(200)
        rooms = (generator or {}).get("rooms", 4)
        names = (f"{split}/{kind}/{lamp}-{i}" for kind in KINDS for lamp in LAMPS for i in range(rooms))
        self._tasks = tuple(sorted(names))
        self._mended, self._lit = False, False

    @property
    def task_ids(self) -> tuple[str, ...]:
        return self._tasks

    def task_type_of(self, task_id: str) -> str:
        if task_id not in self._tasks:
            raise unknown_name("task id", task_id, self._tasks)
        return task_id.split("/")[1]

    def _start(self, task_id: str) -> str:
        self.goal = f"light {task_id.split('/')[2].split('-', maxsplit=1)[0]} lamp"
        self._mended, self._lit = self.task_type_of(task_id) == "sound", False
        return f"dark room . your task is to {self.goal}"

    def _act(self, action: str) -> Outcome:
        if action not in self._commands():
            return "nothing happens", 0.0, False, False
        if action == "mend fuse":
            self._mended = True
            return "fuse is mended", 0.0, False, True
        self._lit = self._mended and action.removeprefix("press ") in self.goal
        return ("lamp shines" if self._lit else "still dark"), float(self._lit), self._lit, True

    def _commands(self) -> list[str]:
        return [*(f"press {lamp}" for lamp in LAMPS), "mend fuse"]

    def _score(self) -> float:
        return float(self._lit)

    def _state(self) -> Any:
        return self._mended, self._lit

    def _restore_state(self, state: Any) -> None:
        self._mended, self._lit = state


class Electrician:
    """The expert: mends the fuse where there is need, unless it errs, and presses the right switch."""

    def __init__(self, info: Mapping[str, Any], errs: bool) -> None:
        self.thought = ""
        self._plan = ["mend fuse"] if info["task_type"] == "blown" and not errs else []
        self._plan.append(f"press {info['goal'].split()[1]}")

    def act(self, observation: str, commands: Sequence[str], /) -> str:
        self.thought = self._plan[0].split()[0] if len(self._plan) > 1 else "press"
        return self._plan.pop(0) if len(self._plan) > 1 else self._plan[0]


def write_library(folder: Path) -> Path:
    """Writes the skills as a library of ``SKILL.md`` folders."""
    skills = [Skill(name, "Lamps and fuses.", (kind,), text) for name, (kind, text) in SKILLS.items()]
    return formats.write_library(skills, folder)


def spec(library: Path) -> EnvSpec:
    """What the suite must know of it."""
    demo = DemoTasks("test", 3, 2, 12, 4, 4)
    return EnvSpec(
        name="lamps",
        id="skillc-tests/Lamps-v0",
        entry_point=f"{__name__}:LampsEnv",
        max_episode_steps=4,
        library=str(library),
        task_types={"blown": "blown", "sound": "sound"},
        warm_start=WarmStart(
            expert=f"{__name__}:Electrician",
            error_rates={"blown": 1.0, "sound": 0.0},
            demo=demo,
        ),
    )
