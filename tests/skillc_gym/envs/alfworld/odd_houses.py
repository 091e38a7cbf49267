"""Games for tests: generated ones, and small houses with everything that real games rarely show."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from skillc_gym.envs.alfworld.generate.games import GameSpec
from skillc_gym.envs.alfworld.generate.knobs import Knobs, read_knobs
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, TASK_TYPES, resolve_task_types

OBJECT_TYPES = ("Mug", "Apple", "Knife", "ButterKnife", "Box", "DeskLamp", "Plate")
RECEPTACLE_TYPES = ("SinkBasin", "Microwave", "Fridge", "Cabinet", "CounterTop", "Sink", "Drawer")
ABILITIES = ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable")
STATES = ("isClean", "isHot", "isCool", "isSliced", "isToggled", "isOn")
WON_AT_ONCE = "(exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) (objectType ?o {0}Type))))"
GOALS = (
    "(exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) (objectType ?o {0}Type)"
    " (receptacleType ?r {2}Type))))",
    "(exists (?r - receptacle) (exists (?o - object) (and (heatable ?o) (objectType ?o {0}Type)"
    " (receptacleType ?r {2}Type) (isHot ?o) (inReceptacle ?o ?r))))",
    "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot DeskLampType)"
    " (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))"
    " (exists (?o - object ?a - agent) (and (objectType ?o {0}Type) (holds ?a ?o))))",
    "(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 {0}Type) (inReceptacle ?o1 ?r)"
    " (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {1}Type) (inReceptacle ?o2 ?r))))))",
    "(exists (?o - object) (and (isClean ?o) (not (isCool ?o)) (objectType ?o {1}Type)))",
    "(forall (?r - receptacle) (imply (openable ?r) (opened ?r)))",
    WON_AT_ONCE,
)


def odd_house(seed: int, template: dict[str, Any], *, goal: str | None = None) -> dict[str, Any]:
    """Makes a small random house, in the words and the domain of another game."""
    rng = np.random.default_rng(seed)
    places = [f"loc_bar__minus_{index}_bar_{index}_bar_0" for index in range(int(rng.integers(2, 6)))]
    kinds = {"agent1": "agent"} | dict.fromkeys(places, "location")
    kinds |= {f"{name}Type": "otype" for name in OBJECT_TYPES} | {f"{name}Type": "rtype" for name in RECEPTACLE_TYPES}
    facts = [f"(atLocation agent1 {_pick(rng, places)})"]
    receptacles = _receptacles(rng, places, kinds, facts)
    things = _objects(rng, receptacles, places, kinds, facts)
    # A goal that could never hold makes upstream refuse the game: let it be about things that are there.
    first, second, holder = _pick(rng, things), _pick(rng, things), _pick(rng, receptacles)
    facts += [f"({able} {thing})" for able in ("pickupable", "heatable", "cleanable") for thing in (first, second)]
    facts += [f"(inReceptacle {thing} {_pick(rng, receptacles)})" for thing in (first, second)]
    place = "SinkBasin" if holder.endswith("Basin") else holder.split("_")[0]
    names = [*(name.split("_")[0] for name in (first, second)), place]
    facts += [f"(canContain {names[2]}Type {name}Type)" for name in names[:2]]
    goal = (goal or _pick(rng, GOALS)).format(*names)
    objects = "\n".join(f"{name} - {kind}" for name, kind in kinds.items())
    facts = [facts[index] for index in rng.permutation(len(facts))]
    problem = f"(define (problem odd)\n(:domain alfred)\n(:objects\n{objects}\n)\n(:init\n" + "\n".join(facts)
    return {**template, "pddl_problem": f"{problem}\n(= (total-cost) 0)\n)\n(:goal {goal})\n)", "walkthrough": []}


def _receptacles(rng: np.random.Generator, places: list[str], kinds: dict[str, str], facts: list[str]) -> list[str]:
    names = []
    for index in range(int(rng.integers(2, 8))):
        # The first is a sink or such, so that something can be done to things in most houses.
        kind = _pick(rng, RECEPTACLE_TYPES[: 3 if index == 0 else None])
        name = f"{kind.removesuffix('Basin')}_bar__plus_0{index}_dot_5" + "_bar_SinkBasin" * (kind == "SinkBasin")
        name = f"{kind}_{index}" if rng.random() < 0.05 else name
        names.append(name)
        kinds[name] = "receptacle"
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {_pick(rng, places)})"]
        if rng.random() < 0.25:
            facts.append(f"(receptacleAtLocation {name} {_pick(rng, places)})")
        if rng.random() < 0.5:
            facts.append(f"(openable {name})")
        if rng.random() < 0.3:
            facts.append(f"(opened {name})")
        facts += [f"(canContain {kind}Type {other}Type)" for other in OBJECT_TYPES if rng.random() < 0.8]
    return names


def _objects(
    rng: np.random.Generator, receptacles: list[str], places: list[str], kinds: dict[str, str], facts: list[str]
) -> list[str]:
    names: list[str] = []
    for index in range(int(rng.integers(2, 8))):
        kind = _pick(rng, OBJECT_TYPES)
        name = f"{kind}_bar__minus_00_dot_{index}" if rng.random() < 0.95 else f"{kind}_{index}"
        kinds[name] = "object"
        facts.append(f"(objectType {name} {kind}Type)")
        facts += [f"({able} {name})" for able in ABILITIES if rng.random() < 0.7]
        facts += [f"({state} {name})" for state in STATES if rng.random() < 0.08]
        facts += [f"(inReceptacle {name} {_pick(rng, receptacles)})" for _ in range(int(rng.choice([0, 1, 1, 1, 2])))]
        facts += [f"(objectAtLocation {name} {_pick(rng, places)})" for _ in range(int(rng.choice([0, 1, 1, 2])))]
        if rng.random() < 0.2:
            facts.append(f"(isReceptacleObject {name})")
            facts += [f"(inReceptacleObject {other} {name})" for other in names if rng.random() < 0.5]
        names.append(name)
    return names


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def write_folder(root: Path, template: dict[str, Any]) -> Path:
    """Writes small games in upstream's layout: six that can be played in each of two splits, and some that cannot."""
    folders = [f"{name}-Mug-None-Cabinet-{index}" for index, name in enumerate(TASK_TYPES)]
    for split in ("valid_seen", "valid_unseen"):
        for seed, folder in enumerate(folders):
            write_game(root, f"{split}/{folder}/trial_T{seed}", odd_house(seed, template))
        write_game(root, f"{split}/pick_and_place_simple-AppleSliced-None-Cabinet-1/trial_T0", template)
        write_game(root, f"{split}/pick_and_place_with_movable_recep-Mug-Cup-Cabinet-1/trial_T0", template)
        silent = {name: value for name, value in template.items() if name != "solvable"}
        for seed, raw in enumerate(({**silent, "solvable": False}, {**silent, "solvable": None}, silent)):
            write_game(root, f"{split}/pick_and_place_simple-Mug-None-Cabinet-9/trial_T{seed}", raw)
    return root


def write_game(root: Path, task_id: str, raw: dict[str, Any]) -> None:
    """Writes one game file in upstream's layout."""
    path = root / "json_2.1.1" / task_id / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(raw), encoding="utf-8")


def replaced(key: str, old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A change of a game's content: another text at the first place of one."""

    def change(raw: dict[str, Any]) -> dict[str, Any]:
        assert old in raw[key]
        return {**raw, key: raw[key].replace(old, new, 1)}

    return change


def generate_game(task_type: str, *, seed: int, **options: Any) -> tuple[str, dict[str, Any]]:
    """Makes one generated game, without the set that it belongs to: (task id, content)."""
    knobs = read_knobs(**{name: options.pop(name) for name in Knobs.__annotations__ if name in options})
    spec = GameSpec(SHORT_NAMES[resolve_task_types(task_type)[0]], seed, knobs=knobs, **options)
    return spec.task_id(spec.house()[0]), spec.content()
