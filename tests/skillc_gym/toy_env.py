"""A small deterministic text environment (find the key, open the door), and the suite's own in small families."""

import copy

import gymnasium

from skill_library import Skill
from skill_library.formats import write_library
from skillc_gym.envs.base import TextTaskEnv
from skillc_gym.envs.registry import env_specs
from skillc_gym.errors import unknown_name
from skillc_gym.spaces import Unicode

TYPES = ("fetch", "open", "paint")
GENERATED = [spec for spec in env_specs() if spec.warm_start]
SMALL = {"alfworld": {"games_per_type": 3, "size": "small"}, "coins": {"tasks_per_type": 6}, "webshop": {"size": 60}}


def made(spec, **options):
    """One of the suite's environments, generated and small."""
    return gymnasium.make(spec.id, data="generated", generator=SMALL[spec.name], **options)


class ToyEnv(TextTaskEnv):
    """Three types of tasks, four tasks each. A task is won by its type's verb after ``take key``."""

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, per_type=4, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = Unicode(400)
        self.action_space = Unicode(100)
        self.task_ids = tuple(sorted(f"toy/{kind}/{n}" for kind in TYPES for n in range(per_type)))
        self._now = {}

    def task_type_of(self, task_id):
        if task_id not in self.task_ids:
            raise unknown_name("task id", task_id, self.task_ids)
        return task_id.split("/")[1]

    def render(self):
        return self._observation

    def _start(self, task_id):
        kind, number = task_id.split("/")[1:]
        self.goal = f"{kind} thing {number}."
        self._now = {"kind": kind, "key": False, "won": False}
        return f"Room {self.np_random.integers(1000)}: café with a key. Your task is to: {self.goal}"

    def _act(self, action):
        now, action, feedback = self._now, action.strip(), "Nothing happens."
        valid = action in self._commands()
        if valid and action == "wait":
            feedback = f"You wait for {self.np_random.integers(100)} seconds."
        elif valid:
            done, feedback = ("key", "You take the key.") if action == "take key" else ("won", "You won.")
            now[done] = True
        return feedback, float(now["won"]), now["won"], valid

    def _commands(self):
        return sorted(["wait", f"{self._now['kind']} it" if self._now["key"] else "take key"])

    def _score(self):
        return float(self._now["won"])

    def _state(self):
        return dict(self._now), copy.deepcopy(self.np_random.bit_generator.state)

    def _restore_state(self, state):
        self._now = dict(state[0])
        self.np_random.bit_generator.state = copy.deepcopy(state[1])


def faulty(**methods):
    """A class of toys with other methods."""
    return type("Faulty", (ToyEnv,), methods)


def toys_with(**attributes):
    """A class of toys with other attributes."""

    def start(env):
        ToyEnv.__init__(env)
        vars(env).update(attributes)

    return faulty(__init__=start)


def write_skills(root, types=TYPES, general=True):
    """Writes a skill library for the toy's types and returns its path."""
    skills = [Skill(kind, "d", (kind,), f"Take the key, then {kind} it.") for kind in types]
    if general:
        skills.append(Skill("general", "d", ("*",), "Read the room."))
    return str(write_library(skills, root))
