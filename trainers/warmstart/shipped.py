"""The small policies that come with the package: warm-started ones per environment that demonstrates, trained ones."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import MissingDataError, unknown_name

__all__ = [
    "HARD",
    "REAL",
    "SHIPPED",
    "hardest_start",
    "is_shipped",
    "shipped_names",
    "shipped_policy",
    "shipped_trained_policy",
]

SHIPPED = "shipped"
"""The name under which a configuration asks for the policy of its environment."""

HARD = f"{SHIPPED}-hard"
"""The name of an environment's policy that hardly ever succeeds without its skills."""

REAL = f"{SHIPPED}-real"
"""The name of a policy that was cloned on a data set's tasks; "shipped-real-hard" is one that needs its skills."""


def is_shipped(name: str) -> bool:
    """Whether a model's name asks for a policy that comes with its environment: "shipped", "shipped-hard"."""
    return name == SHIPPED or name.startswith(f"{SHIPPED}-")


def shipped_names(env: str = "alfworld") -> tuple[str, ...]:
    """Names of the policies that come with an environment; none where they are still to be made."""
    return tuple(name for name, folder in _folders(env).items() if _is_there(folder))


def shipped_policy(env: str = "alfworld", name: str = SHIPPED) -> Path:
    """The folder of a warm-started policy that comes with an environment.

    Args:
        env: The environment.
        name: "shipped", or "shipped-NAME" for one of its further policies.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment, or it has no policy of that name.
        MissingDataError: None comes with it; one can be made.
    """
    folders = _folders(env)
    if name not in folders:
        raise unknown_name("shipped policy", name, folders)
    folder = folders[name]
    if not _is_there(folder):
        raise MissingDataError(
            f"No policy comes with the environment {env!r}; make one (`skillc make-policy --env {env} --out FOLDER`) "
            f"and name that folder in place of {name!r}."
        )
    return folder


def hardest_start(env: str = "alfworld") -> str:
    """The name of the shipped policy from which methods part: the hard one, where the environment has it."""
    return HARD if HARD in shipped_names(env) else SHIPPED


def shipped_trained_policy(env: str = "alfworld") -> Path | None:
    """The folder of the policy that was trained from :func:`hardest_start`; None where none comes with the package.

    It lies beside its start, under the start's name with ``_trained`` behind it.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment.
        MissingDataError: It has no policy to start from.
    """
    start = shipped_policy(env, hardest_start(env))
    trained = start.with_name(f"{start.name}_trained")
    return trained if _is_there(trained) else None


def _folders(env: str) -> dict[str, Path]:
    start, here = warm_started(env)[1], Path(__file__).parent
    others = {f"{SHIPPED}-{name}": here / folder for name, folder in start.policies.items()}
    return {SHIPPED: here / start.policy, **others}


def _is_there(folder: Path) -> bool:
    return (folder / "config.json").is_file()
