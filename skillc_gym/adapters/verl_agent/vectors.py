"""The vectors behind verl-agent's managers: their signatures, answers and habits, on our engines in one process."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from skillc_gym.adapters.verl_agent.draws import AlfworldGames, game_cycle, web_data
from skillc_gym.envs.base import reset_needed
from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError
from skillc_gym.values import require_whole
from skillc_gym.vector import PairedVectorEnv

Infos = list[dict[str, Any]]
NPlus = int | Callable[[str, int], int]
"""How many members of a group see the skill: a number, or a function of task type and group size."""

_PROVENANCE = ("task_id", "task_type", "group_id", "condition", "skill", "skill_sha256", "skill_text")
_WON = 10.0


class _Answer(NamedTuple):
    observation: str
    reward: float
    done: bool
    info: dict[str, Any]


class _Envs(ABC):
    """Groups of one task each, answered in lists; a member that is done answers its last answer again.

    Attributes:
        groups: The vector of ours that plays.
        n_plus: How many members of each group see the skill, from the next reset on.
        num_processes: Members in all; there are no processes.
    """

    multi_modal = False

    def __init__(self, groups: PairedVectorEnv, n_plus: NPlus) -> None:
        self.groups, self.n_plus = groups, n_plus
        self.env_num, self.group_n, self.num_processes = groups.num_groups, groups.group_size, groups.num_envs
        self._answers: list[_Answer] = []

    @abstractmethod
    def _tasks(self) -> list[str]:
        """Draws the next task of every group."""

    def _seeds(self) -> list[int]:
        """Draws the seed of every group, for what an environment draws beyond its task; nothing, unless overridden."""
        return [0] * self.env_num

    @abstractmethod
    def _answer(self, observation: str, info: dict[str, Any], done: bool) -> _Answer:
        """One member's answer in their words; ``info`` is ours."""

    def records(self) -> Infos:
        """Every member's episode so far, as :meth:`ChatEnv.record` has it: for the advantages of `trainers.interop`."""
        if not self._answers:
            raise reset_needed()
        lengths, returns = self.groups.episode_lengths.tolist(), self.groups.episode_returns.tolist()
        return [
            {
                **{name: info.get(name, "") for name in _PROVENANCE if name != "skill_text"},
                **{name: float(info[name]) for name in ("won", "task_score")},
                "episode_return": returns[member],
                "steps": lengths[member],
            }
            for member, info in enumerate(map(self.groups.member_info, range(self.num_processes)))
        ]

    def close(self) -> None:
        """Closes the environments; closing twice is fine."""
        self.groups.close()

    def _begin(self) -> tuple[list[str], Infos]:
        tasks = self._tasks()
        env: Any = self.groups.envs[0].unwrapped
        n_plus = self.n_plus
        shown = [n_plus(env.task_type_of(task), self.group_n) if callable(n_plus) else n_plus for task in tasks]
        self.groups.reset(seed=self._seeds(), options={"task_ids": tasks, "n_plus": shown})
        self._answers = [self._told(member, done=False) for member in range(self.num_processes)]
        return [answer.observation for answer in self._answers], [answer.info for answer in self._answers]

    def _advance(self, actions: Sequence[str]) -> tuple[list[str], list[float], list[bool], Infos]:
        if len(actions) != self.num_processes:
            raise ConfigError(f"Expected {self.num_processes} actions, one per member, got {len(actions)}")
        _, _, won, cut, _ = self.groups.step(list(actions))
        for member, (answer, done) in enumerate(zip(self._answers, (won | cut).tolist(), strict=True)):
            # Their managers write into infos, so that a repeated answer needs a dict of its own.
            again = answer._replace(info=dict(answer.info))
            self._answers[member] = again if answer.done else self._told(member, done)
        observations, rewards, dones, infos = map(list, zip(*self._answers, strict=True))
        return observations, rewards, dones, infos

    def _told(self, member: int, done: bool) -> _Answer:
        info = self.groups.member_info(member)
        told = self._answer(self.groups.observations[member], info, done)
        told.info.update({name: info[name] for name in _PROVENANCE if name in info})
        return told


class AlfworldEnvs(_Envs):
    """What ``build_alfworld_envs`` gives."""

    def __init__(self, groups: PairedVectorEnv, n_plus: NPlus, games: AlfworldGames, seed: int) -> None:
        super().__init__(groups, n_plus)
        self._games = games
        env: Any = groups.envs[0].unwrapped
        listed = games.listed(env.task_ids)
        seed = require_whole("seed", seed, 0, (1 << 32) - 1 - self.env_num)
        self._cycles = [game_cycle(listed, seed + group) for group in range(self.env_num)]
        self._draws = [np.random.default_rng(seed + group) for group in range(self.env_num)]

    @property
    def get_admissible_commands(self) -> list[list[str] | None]:
        """The commands of every member's last answer; a property, as theirs is."""
        told = [answer.info["admissible_commands"] for answer in self._answers]
        return told or [None] * self.num_processes

    def reset(self) -> tuple[list[str], None, Infos]:
        """Starts the next game of every group; returns text observations, None for pictures, infos."""
        observations, infos = self._begin()
        return observations, None, infos

    def step(self, actions: Sequence[str]) -> tuple[list[str], None, list[float], list[bool], Infos]:
        """Carries out one command per member; 10.0 is the reward of every answer that is won.

        Returns:
            text observations, None for pictures, rewards, dones, infos.
        """
        observations, rewards, dones, infos = self._advance(actions)
        return observations, None, rewards, dones, infos

    def _tasks(self) -> list[str]:
        return [next(cycle) for cycle in self._cycles]

    def _seeds(self) -> list[int]:
        return [int(draw.integers(2**31)) for draw in self._draws]  # how things are numbered in domain_randomization

    def _answer(self, observation: str, info: dict[str, Any], done: bool) -> _Answer:
        won = bool(info["won"])
        told = {
            "won": won,
            "admissible_commands": info["admissible_commands"],
            "extra.gamefile": self._games.file_of(info["task_id"]),
            "observation_text": observation,
        }
        return _Answer(observation, _WON * won, done, told)


class WebshopEnvs(_Envs):
    """What ``build_webshop_envs`` gives."""

    def __init__(self, groups: PairedVectorEnv, n_plus: NPlus, seed: int, is_train: bool) -> None:
        super().__init__(groups, n_plus)
        env: Any = groups.envs[0].unwrapped
        self.goal_idxs = range(500, len(env.goals)) if is_train else range(min(500, len(env.goals)))
        if self.env_num > len(self.goal_idxs):
            raise ConfigError(
                f"{self.env_num} different goals are drawn at each reset, from {self.goal_idxs} of the catalogue's "
                f"{len(env.goals)}: use a larger catalogue, or fewer groups"
            )
        self._kind, self._seed = env.goals.kind, require_whole("seed", seed, 0, (1 << 32) - 1)
        self._draw = np.random.RandomState(seed)

    def records(self) -> Infos:
        """As of all; the seed of a group's order stands with the task, since a number is another goal in each."""
        seeds = np.repeat(self._seed + np.arange(self.env_num), self.group_n).tolist()
        told = zip(super().records(), seeds, strict=True)
        return [{**record, "task_id": f"{record['task_id']}@{seed}"} for record, seed in told]

    def reset(self) -> tuple[list[str], Infos]:
        """Draws a goal for every group, without repetition, and starts it; returns observations, infos."""
        return self._begin()

    def step(self, actions: Sequence[str]) -> tuple[list[str], list[float], list[bool], Infos]:
        """Carries out one action per member; 10.0 is the reward of a purchase with a score of 1, else 0.

        Returns:
            observations, rewards, dones, infos.
        """
        return self._advance(actions)

    def render(self, mode: str = "text", env_idx: int | None = None) -> Any:
        """Returns the last observation of a member, or of all."""
        told = [answer.observation for answer in self._answers]
        return told if env_idx is None else told[env_idx]

    def _tasks(self) -> list[str]:
        drawn = self._draw.choice(self.goal_idxs, size=self.env_num, replace=False)
        return [f"{self._kind}/{index}" for index in drawn]

    def _answer(self, observation: str, info: dict[str, Any], done: bool) -> _Answer:
        # With the purchase their shop has begun another session, whose first page is what can be clicked.
        page = (True, ["search"]) if done else (info["has_search_bar"], info["clickables"])
        won = done and info["task_score"] == 1.0
        told = {
            "available_actions": dict(zip(("has_search_bar", "clickables"), page, strict=True)),
            "task_score": info["task_score"],
            "won": won,
        }
        return _Answer(observation, _WON * won, done, told)


def build_alfworld_envs(  # noqa: PLR0917 - the signature is theirs
    alf_config_path: str | os.PathLike[str] | None,
    seed: int,
    env_num: int,
    group_n: int,
    resources_per_worker: Any = None,
    is_train: bool = True,
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    skills: str | None = None,
    n_plus: NPlus | None = None,
    **options: Any,
) -> AlfworldEnvs:
    """Stands in for verl-agent's builder of the same name.

    Args:
        alf_config_path: The YAML file with ``dataset.data_path`` and the rest; None for what theirs says.
        seed: Group g plays the cycle of games of ``seed + g``.
        env_num: Groups.
        group_n: Members per group.
        resources_per_worker: Not used: there are no workers.
        is_train: Whether the training games are played.
        env_kwargs: ``eval_dataset``: "eval_in_distribution" (valid_seen) or "eval_out_of_distribution" (valid_unseen).
        skills: A skill library by name or path, whose texts infos carry (``skill_text``); None for none.
        n_plus: How many members of a training group see the skill, half of them by default; validation plays without
            the skill until ``n_plus`` of the result is set.
        **options: Arguments of ``skillc/ALFWorld-v0`` that go before the file's: ``data="generated"``.

    Raises:
        SkillCError: As the environment: missing data, unknown names, a configuration that cannot be read.
    """
    dataset = "train" if is_train else (env_kwargs or {}).get("eval_dataset", "eval_in_distribution")
    games = AlfworldGames.read(alf_config_path, dataset, **options)
    groups = PairedVectorEnv(
        env_spec("alfworld").id, env_num, group_n, library=skills, where="info", **games.env_kwargs
    )
    return AlfworldEnvs(groups, _share(skills, n_plus, group_n, is_train), games, seed)


def build_webshop_envs(  # noqa: PLR0917 - the signature is theirs
    seed: int,
    env_num: int,
    group_n: int,
    resources_per_worker: Any = None,
    is_train: bool = True,
    env_kwargs: Mapping[str, Any] | None = None,
    *,
    skills: str | None = None,
    n_plus: NPlus | None = None,
    **options: Any,
) -> WebshopEnvs:
    """Stands in for verl-agent's builder of the same name; what is not named here is as in :func:`build_alfworld_envs`.

    Group g has the order of goals, and the prices, of ``seed + g``; training plays goals from 500 on, validation the
    500 before. ``env_kwargs`` has ``file_path``, ``attr_path``, ``human_goals``, ``num_products``, and other names of
    upstream's, ``options`` are arguments of ``skillc/WebShop-v0``: ``data="generated"``, ``noun_tagger="spacy"``.
    """
    asked = dict(env_kwargs or {})
    data = options.pop("data", None) or web_data(asked)
    theirs = {name: value for name, value in asked.items() if name not in ("file_path", "attr_path", "seed")}
    kwargs = {"compat": "upstream", "data": data, **theirs, **options}
    if fixed := sorted({"split", "goal_order", "max_episode_steps"} & kwargs.keys()):
        raise ConfigError(
            f"A vector of verl-agent's has its own {', '.join(fixed)}, by is_train and seed, and its manager counts "
            "the steps; leave them out"
        )

    def members() -> Iterator[gymnasium.Env[Any, Any]]:
        for group in range(env_num):
            order = f"verl-agent:{seed + group}"
            for _ in range(group_n):
                # No limit of steps: theirs has none, the manager counts.
                yield gymnasium.make(env_spec("webshop").id, goal_order=order, max_episode_steps=-1, **kwargs)

    groups = PairedVectorEnv(partial(next, members()), env_num, group_n, library=skills, where="info")
    return WebshopEnvs(groups, _share(skills, n_plus, group_n, is_train), seed, is_train)


def _share(skills: str | None, n_plus: NPlus | None, group_n: int, is_train: bool) -> NPlus:
    if skills is None and n_plus is not None:
        raise ConfigError(f"{n_plus=} members see a skill, and there is none: pass skills='alfworld', or a folder")
    if skills is None or not is_train:
        return 0
    return group_n // 2 if n_plus is None else n_plus


class ShowSkills:
    """Puts the skills of `infos` before the prompts that a manager builds: ``class Mine(ShowSkills, TheirManager)``.

    ``anchor`` stays what the environment said, so that GiGPO groups states of both conditions.
    """

    def reset(self, kwargs: Any) -> Any:
        """The manager's, with skills."""
        theirs: Any = super()
        return self._shown(*theirs.reset(kwargs))

    def step(self, text_actions: list[str]) -> Any:
        """The manager's, with skills."""
        theirs: Any = super()
        observations, rewards, dones, infos = theirs.step(text_actions)
        return self._shown(observations, infos)[0], rewards, dones, infos

    def _shown(self, observations: dict[str, Any], infos: Infos) -> tuple[dict[str, Any], Infos]:
        skills = (info.get("skill_text", "") for info in infos)
        pairs = zip(skills, observations["text"], strict=True)
        return {**observations, "text": [f"{skill}\n{text}" if skill else text for skill, text in pairs]}, infos
