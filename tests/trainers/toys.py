"""A toy environment of the suite (say the word that you are asked for), a scripted engine, and made-up batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from skill_library import Skill, formats
from skillc_gym.episodes import Episode, Turn
from skillc_gym.spaces import Unicode
from trainers.advantages import RolloutBatch
from trainers.base import TokenRow, Trajectory
from trainers.config import TrainConfig
from trainers.engines import Engine, Generation, Request, Sampling
from trainers.rollout import make_chat, make_rollouts, token_policy
from trainers.rollout.collect import GroupRollouts
from trainers.tracking.progress import SilentProgress

if TYPE_CHECKING:
    from trainers.learner import Learner
    from trainers.rollout.batches import MicroBatch

TYPES = ("echo", "other")
COLOURS = ("red", "green", "blue", "black")
SECRET = {"red": "w0", "green": "w1", "blue": "w2", "black": "w3"}
WORDS = [*COLOURS, *SECRET.values(), "say", "done", "wrong", "agent", "skill", "text", "of", *TYPES]
TOY_ID = "skillc-tests/Toy-v0"


class ToyEnv(gymnasium.Env[str, str]):
    """Task ids are ``train/<type>/<colour>-<number>``. Type "echo" wants the colour, "other" its secret word."""

    def __init__(self, split: str = "train", data: str | None = None, tasks: int = 4, turns: int = 1) -> None:
        self.observation_space = Unicode(1000)
        self.action_space = Unicode(1000)
        self.turns = turns
        self.task_ids = tuple(
            sorted(f"{split}/{kind}/{colour}-{i}" for kind in TYPES for colour in COLOURS for i in range(tasks))
        )

    def task_type_of(self, task_id: str) -> str:
        return task_id.split("/")[1]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        task_id = (options or {}).get("task_id") or self.task_ids[int(self.np_random.integers(len(self.task_ids)))]
        self.task_id, self.done, self.right = task_id, 0, 0
        self.colour = task_id.split("/")[2].split("-")[0]
        self.wanted = self.colour if self.task_type_of(task_id) == "echo" else SECRET[self.colour]
        return f"say {self.colour} of {self.task_type_of(task_id)}", self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        right = action.strip() == self.wanted
        self.done += 1
        self.right += right
        over = self.done == self.turns
        won = over and self.right == self.turns
        text = "done" if over else f"say {self.colour}"
        return text, float(won), over, False, self._info(valid=action in WORDS, won=float(won))

    def _info(self, *, valid: bool, won: float = 0.0) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "task_type": self.task_type_of(self.task_id),
            "goal": f"say {self.colour}",
            "admissible_commands": [*COLOURS, *SECRET.values()],
            "won": won,
            "task_score": won,
            "action_valid": valid,
        }


class Graded(gymnasium.Wrapper[str, str, str, str]):
    """Pays by what was said, so that there is something to learn from at once: a random model hardly ever wins."""

    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) + sum(map(ord, action)) % 5 / 5, terminated, truncated, info


GRADED: dict[str, Any] = {"env_wrappers": {f"{__name__}:Graded": {}}, "returns": "reward"}
"""Settings of a run whose first update has a gradient."""

if TOY_ID not in gymnasium.registry:
    gymnasium.register(id=TOY_ID, entry_point=ToyEnv, max_episode_steps=6)


def write_library(folder: Path) -> Path:
    """A skill library with a skill for each type of the toy."""
    own = [Skill(kind, f"The skill of {kind}.", (kind,), f"skill text of {kind}") for kind in TYPES]
    return formats.write_library([Skill("general", "For all.", ("*",), "skill text"), *own], folder)


class ScriptedEngine(Engine):
    """Asks a function for each reply, from the prompt in words; replies end with the end token, if not cut."""

    def __init__(self, policy: Callable[[str], str], tokenizer: Any) -> None:
        self.policy, self.tokenizer = policy, tokenizer

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: Request) -> Generation:
        text = self.policy(self.tokenizer.decode(list(request.prompt_ids), skip_special_tokens=False))
        ids = list(self.tokenizer.encode(text, add_special_tokens=False))
        ids = [*ids, self.tokenizer.eos_token_id][: request.max_tokens]
        return Generation(ids, [0.0] * len(ids))


def toy_config(folder: Path, **changes: Any) -> TrainConfig:
    """A run on the toy that takes a second or so."""
    settings: dict[str, Any] = {
        "model": str(folder / "model"),
        "method": "skillc",
        "env": TOY_ID,
        "library": str(folder / "skills"),
        "run": str(folder / "run"),
        "chat": "compact",
        "chat_options": {"role": "agent"},
        "require_think": False,
        "steps": 4,
        "tasks_per_step": 4,
        "group_size": 4,
        "max_reply_tokens": 4,
        "max_context": 64,
        "learning_rate": 1e-3,
        "micro_batches": 2,
        "validate_every": 2,
        "save_every": 2,
        "panel_per_type": 2,
        "transcripts_every": 1,
    }
    return TrainConfig(**{**settings, **changes})


def timeless(metrics: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Records of a run without what a clock says."""
    return [{name: value for name, value in record.items() if not name.startswith("seconds")} for record in metrics]


def start_learner(config: TrainConfig, *, trains: bool = True) -> Learner:
    """What trains a run, ready for its first update; with optimiser and all, if it ``trains``."""
    from trainers.training import prepare

    with ExitStack() as stack:
        learner = prepare(config, SilentProgress(), stack)[0]
    if trains:
        learner.backend.prepare(None)
    return learner


def next_batches(learner: Learner) -> list[MicroBatch]:
    """Plays the next update; its micro-batches."""
    update = learner.update + 1
    batch, advantages, _ = learner.credit(learner.play(*learner.draw(update), update))
    extra, _ = learner.extra_rows(batch, advantages, update)
    return [each for step in learner.rows.optimiser_steps(batch, advantages, extra, update) for each in step]


def toy_rollouts(config: TrainConfig, tokenizer: Any, engine: Engine) -> GroupRollouts:
    return make_rollouts(config, token_policy(config, make_chat(config, tokenizer), engine))


# Made-up trajectories --------------------------------------------------------------------------------------------


def episode(
    task: str = "t",
    *,
    won: bool = True,
    condition: int = 0,
    kind: str = "heat",
    actions: Sequence[str] = ("go to fridge 1", "take egg 1 from fridge 1"),
    observations: Sequence[str] | None = None,
    skill: str = "",
    text: str = "",
    goal: str = "heat some egg",
) -> Episode:
    seen = observations or [f"after {i}" for i in range(len(actions))]
    last = len(actions) - 1
    turns = tuple(
        Turn(o, a, a, True, True, float(won and i == last)) for i, (o, a) in enumerate(zip(seen, actions, strict=True))
    )
    return Episode(task, kind, goal, condition, skill, "", text, 0, 0, turns, won, float(won), True, False)


def trajectory(played: Episode, tokens_per_turn: int = 2) -> Trajectory:
    """One row: a prompt of one token, then for each turn its tokens, and one of the environment between two."""
    ids: list[int] = []
    mask: list[int] = []
    for number in range(len(played.turns)):
        ids += [5] * bool(number) + [7] * tokens_per_turn
        mask += [0] * bool(number) + [1] * tokens_per_turn
    row = TokenRow([1], ids, mask, [-0.5 * own for own in mask], (tokens_per_turn,) * len(played.turns))
    return Trajectory(played, [row], 0)


def batch_of(episodes: Sequence[Episode], **fields: Any) -> RolloutBatch:
    batch = RolloutBatch.from_trajectories([trajectory(played) for played in episodes])
    return replace(batch, **fields)
