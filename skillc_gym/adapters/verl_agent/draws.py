"""What verl-agent plays and in which order: games of its configuration, cycles of games, panels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import yaml

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError, require_name
from skillc_gym.values import require_whole

_FOLDERS = {
    "train": "data_path",
    "eval_in_distribution": "eval_id_data_path",
    "eval_out_of_distribution": "eval_ood_data_path",
}
_METHODS = {"dqn": "rl", "dagger": "dagger"}
_USUAL: Mapping[str, Any] = {
    "dataset": {
        "data_path": "$ALFWORLD_DATA/json_2.1.1/train",
        "eval_id_data_path": "$ALFWORLD_DATA/json_2.1.1/valid_seen",
        "eval_ood_data_path": "$ALFWORLD_DATA/json_2.1.1/valid_unseen",
        "num_train_games": -1,
        "num_eval_games": -1,
    },
    "env": {"type": "AlfredTWEnv", "task_types": [1, 2, 3, 4, 5, 6], "domain_randomization": False},
    "general": {"training_method": "dagger"},
    "dagger": {"training": {"max_nb_steps_per_episode": 50}},
}


def game_cycle(games: Sequence[str], seed: int) -> Iterator[str]:
    """The games that a member seeded so plays, one per reset: shuffled, all of them, shuffled again, and so on.

    It is TextWorld's draw, over the list that it was given. That list follows the file system there; here it is sorted.
    """
    order, draw = list(games), np.random.RandomState(require_whole("seed", seed, 0, (1 << 32) - 1))
    if not order:
        raise ConfigError("There is no game to draw from: got an empty list")
    while True:
        draw.shuffle(order)
        yield from order


@dataclass(frozen=True)
class AlfworldGames:
    """A configuration file's games: its split's folder, our arguments, and how many, the first ones (None for all)."""

    folder: str
    env_kwargs: Mapping[str, Any]
    limit: int | None

    @classmethod
    def read(cls, path: str | os.PathLike[str] | None, dataset: str = "train", **options: Any) -> AlfworldGames:
        """Reads a configuration.

        Args:
            path: The YAML file; None for what verl-agent's own says: all games of ALFWORLD_DATA, 50 steps.
            dataset: "train", "eval_in_distribution" or "eval_out_of_distribution".
            **options: Arguments of the environment that go before the file's, such as ``data``.

        Raises:
            ConfigError: The file cannot be read, lacks an entry, or asks for pictures.
            UnknownNameError: There is no such data set.
        """
        require_name("data set", dataset, _FOLDERS)
        try:
            config = _USUAL if path is None else yaml.safe_load(Path(path).read_text(encoding="utf-8"))
            folder = _expanded(str(config["dataset"][_FOLDERS[dataset]]))
            method = _METHODS[config["general"]["training_method"]]
            steps = int(config[method]["training"]["max_nb_steps_per_episode"])
            count = int(config["dataset"]["num_train_games" if dataset == "train" else "num_eval_games"])
            kind, types = config["env"]["type"], list(env_spec("alfworld").task_types)
            wanted = [types[number - 1] for number in config["env"]["task_types"] if 0 < number <= len(types)]
            shuffled = bool(config["env"]["domain_randomization"]) and dataset == "train"
        except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{path} is not a configuration of ALFWorld such as verl-agent's config_tw.yaml "
                f"({type(error).__name__}: {error})"
            ) from error
        if kind != "AlfredTWEnv":
            raise ConfigError(f"{path} asks for env.type {kind!r}; text is played here: AlfredTWEnv")
        splits = env_spec("alfworld").splits
        if "split" not in options and Path(folder).name not in splits:
            raise ConfigError(f"{path} names {folder}; rename it, as one of {', '.join(splits)}, to play it here.")
        kwargs = {"task_types": wanted, "domain_randomization": shuffled, "max_episode_steps": steps}
        return cls(folder, {**_place(Path(folder)), **kwargs, **options}, count if count > 0 else None)

    def listed(self, task_ids: Sequence[str]) -> list[str]:
        """The games in the order of a sorted listing of folders, as many as the file asks for."""
        return sorted(task_ids, key=lambda task: task.split("/"))[: self.limit]

    def file_of(self, task_id: str) -> str:
        """Where a game lies by the file's account: what ``extra.gamefile`` says."""
        return "/".join((self.folder, *task_id.split("/")[1:], "game.tw-pddl"))


_OURS = re.compile(r"\$(ALFWORLD_DATA\b|\{ALFWORLD_DATA\})")


def _expanded(folder: str) -> str:
    """A folder with its variables and ``~`` in full; an empty ALFWORLD_DATA, as one that is not set, stays as it is."""
    ours = None if os.environ.get("ALFWORLD_DATA") else _OURS.match(folder)
    rest = os.path.expandvars(folder[ours.end() :] if ours else folder)
    if ours:
        return f"$ALFWORLD_DATA{rest}"
    return str(Path(rest).expanduser()) if rest.startswith("~/") else rest


def _place(folder: Path) -> dict[str, Any]:
    """Our arguments for a split's folder; where it is not there, an archive that its path leads into."""
    archive = next((part for part in folder.parents if part.is_file()), None)
    # A variable that is not set stays as it is: then the usual places are looked at.
    data = None if folder.parts[:1] == ("$ALFWORLD_DATA",) else archive or folder.parent
    return {"data": data, "split": folder.name}


def alfworld_panel(
    config: str | os.PathLike[str] | None = None,
    seed: int = 0,
    members: int = 128,
    dataset: str = "eval_in_distribution",
    reset: int = 0,
    **options: Any,
) -> list[str]:
    """The task ids that a validation plays, member by member.

    Every member draws for itself, so tasks come several times, and others not at all.

    Args:
        config: The YAML file, or None, as in :meth:`AlfworldGames.read`.
        seed: ``env.seed`` of the run: validation adds 1000 to it.
        members: ``data.val_batch_size``.
        dataset: As in :meth:`AlfworldGames.read`.
        reset: Which validation: each plays the next game of every member's cycle.
        **options: Arguments of the environment.

    Raises:
        ConfigError: There is no such validation, or one without members; or as :meth:`AlfworldGames.read`.
    """
    if members < 1 or reset < 0:
        raise ConfigError(
            f"A validation has 1 member or more, and the first is 0; got {members} members, number {reset}"
        )
    games = AlfworldGames.read(config, dataset, **options)
    with closing(gymnasium.make(env_spec("alfworld").id, **games.env_kwargs)) as env:
        task_ids: Sequence[str] = env.get_wrapper_attr("task_ids")
    listed = games.listed(task_ids)
    starts = range(seed + 1000, seed + 1000 + members)
    return [next(islice(game_cycle(listed, start), reset, None)) for start in starts]


def web_data(asked: Mapping[str, Any]) -> Any:
    """Our ``data`` for the files of ``env_kwargs``, there or in WEBSHOP_DATA.

    Raises:
        ConfigError: One of the two files is not named.
        MissingDataError: One is in neither place.
    """
    if not asked.get("file_path"):
        return None
    if not asked.get("attr_path"):
        raise ConfigError(f"env_kwargs names file_path={asked['file_path']!r} without attr_path: name both, or neither")
    named = {"products": asked["file_path"], "attributes": asked["attr_path"]}
    files = {part: _found(Path(path)) for part, path in named.items()}
    human = files["products"].with_name("items_human_ins.json")
    return files | ({"human_goals": human} if human.is_file() else {})


def _found(path: Path) -> Path:
    elsewhere = Path(os.environ.get("WEBSHOP_DATA", ".")) / path.name
    for place in (path, elsewhere):
        if place.is_file():
            return place
    raise MissingDataError(
        f"WebShop's {path.name} is neither at {path} nor in WEBSHOP_DATA. Their setup.sh fetches it; or point "
        "WEBSHOP_DATA at the folder that holds it"
    )
