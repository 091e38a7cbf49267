"""The optional dependencies as the package declares them, and which of them are installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import skillc_gym

PURPOSES: Mapping[str, str] = {
    "report": "pictures and pages of runs",
    "train": "train, evaluate, demo, make-policy; holds report",
    "tensorboard": "report_to=tensorboard",
    "wandb": "report_to=wandb",
    "trackio": "report_to=trackio",
    "vllm": "engine=vllm",
    "openai": "engine=openai",
    "serve": "transformers serve",
    "textworld": "upstream's ALFWorld engine",
    "spacy": "upstream's noun tagger in WebShop",
    "browser": "WebShop in a browser",
    "render": "films of text environments",
    "ray": "work on several machines",
}
"""What the extras are for that a user of the commands may want; the others are adapters and tools of developers."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_MARKER = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_BROUGHT_ALONG = {"tokenizers": "train", "safetensors": "train", "huggingface_hub": "train", "en_core_web_sm": "spacy"}
"""Modules that come with what an extra declares."""


def checkout() -> Path | None:
    """The checkout that the package runs from; None if it is installed without one."""
    root = Path(skillc_gym.__file__).parent.parent
    return root if (root / "pyproject.toml").is_file() else None


@cache
def declared_extras() -> Mapping[str, tuple[str, ...]]:
    """Each extra with the names of its distributions, this package's own left out."""
    root = checkout()
    if root:
        table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        pairs = [(extra, requirement) for extra, requirements in table.items() for requirement in requirements]
    else:
        known = metadata.requires("skillc-gym") or ()
        pairs = [(marker[1], requirement) for requirement in known if (marker := _MARKER.search(requirement))]
    found: dict[str, tuple[str, ...]] = {}
    for extra, requirement in pairs:
        name = _NAME.match(requirement)
        if name and name[0] != "skillc-gym":
            found[extra] = (*found.get(extra, ()), name[0])
    return found


def version_of(distribution: str) -> str | None:
    """The installed version; None if there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def extra_of(module: str) -> str | None:
    """The extra that brings a module, those first that users of the commands want; None if none does."""
    top = module.split(".", maxsplit=1)[0]
    if top in _BROUGHT_ALONG:
        return _BROUGHT_ALONG[top]
    declared = declared_extras()
    return next((extra for extra in [*PURPOSES, *declared] if top.replace("_", "-") in declared.get(extra, ())), None)
