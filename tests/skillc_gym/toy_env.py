"""A small deterministic text environment: find the key, then open the door of the task's colour."""

from __future__ import annotations

import copy

import gymnasium

from skillc_gym.errors import unknown_name
from skillc_gym.spaces import Unicode

TYPES = ("fetch", "open", "paint")


class ToyEnv(gymnasium.Env):
    """Three types of tasks, four tasks each. A task is won by its type's verb after ``take key``."""

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012
    loads = 0

    def __init__(self, per_type=4, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = Unicode(400)
        self.action_space = Unicode(100)
        self.task_ids = tuple(sorted(f"toy/{kind}/{n}" for kind in TYPES for n in range(per_type)))
        self._state = None

    def task_type_of(self, task_id):
        return task_id.split("/")[1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        options = dict(options or {})
        task_id = options.pop("task_id", None) or self.task_ids[int(self.np_random.integers(len(self.task_ids)))]
        if options:
            raise unknown_name("reset option", next(iter(options)), ["task_id"])
        if task_id not in self.task_ids:
            raise unknown_name("task id", task_id, self.task_ids)
        noise = int(self.np_random.integers(1000))
        self._state = {"task_id": task_id, "key": False, "won": False, "steps": 0, "noise": noise}
        return self._say(f"Room {noise}: café with a key. Your task is to: {self._goal()}"), self._info(True)

    def step(self, action):
        state = self._state
        state["steps"] += 1
        action = action.strip()
        valid = action in self._commands()
        feedback = "Nothing happens."
        if valid and action == "take key":
            state["key"], feedback = True, "You take the key."
        elif valid and action != "wait":
            state["won"], feedback = True, "You won."
        elif valid:
            feedback = f"You wait for {self.np_random.integers(100)} seconds."
        return self._say(feedback), float(state["won"]), state["won"], False, self._info(valid)

    def snapshot(self):
        return {"state": dict(self._state), "rng": copy.deepcopy(self.np_random.bit_generator.state)}

    def restore(self, state):
        self._state = dict(state["state"])
        self.np_random.bit_generator.state = copy.deepcopy(state["rng"])

    def render(self):
        return self._said

    def _say(self, text):
        self._said = text
        return text

    def _goal(self):
        kind, number = self._state["task_id"].split("/")[1:]
        return f"{kind} thing {number}."

    def _commands(self):
        kind = self._state["task_id"].split("/")[1]
        return sorted(["wait", f"{kind} it" if self._state["key"] else "take key"])

    def _info(self, valid):
        state = self._state
        return {
            "task_id": state["task_id"],
            "task_type": self.task_type_of(state["task_id"]),
            "goal": self._goal(),
            "admissible_commands": self._commands(),
            "won": float(state["won"]),
            "task_score": float(state["won"]),
            "action_valid": valid,
        }


def write_skills(root, types=TYPES, general=True):
    """Writes a skill library for the toy's types and returns its path."""
    entries = [(kind, f"[{kind}]", f"Take the key, then {kind} it.") for kind in types]
    if general:
        entries.append(("general", '["*"]', "Read the room."))
    for name, kinds, text in entries:
        file = root / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: {name}\ndescription: d\ntask_types: {kinds}\n---\n{text}\n", encoding="utf-8")
    return str(root)


__all__ = ["TYPES", "ToyEnv", "write_skills"]
