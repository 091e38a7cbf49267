"""Where a model is: in a folder, or under a hub's name. What is no hub's name never reaches the network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skill_library.errors import brief
from skillc_gym.errors import CheckpointError, MissingDataError
from trainers.tracking.integrity import damage
from trainers.tracking.json_files import read_object
from trainers.tracking.run_folder import POLICY_FILES

__all__ = ["check_model", "hub_access", "is_hub_name"]

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def is_hub_name(model: str) -> bool:
    """Whether a model is named as hubs do, ``organisation/model``, and means no folder here.

    A folder of that name is one; so is a missing folder within one that exists, such as ``runs/missing``.
    """
    if not _HUB_NAME.fullmatch(model) or ".." in model:
        return False
    return not _is_folder(model) and not _is_folder(model.partition("/")[0])


def check_model(model: str) -> None:
    """Checks what can be known of a model before anything is loaded.

    Args:
        model: A folder or a hub's name.

    Raises:
        MissingDataError: It is neither.
        CheckpointError: It is a policy that a run wrote, and is damaged.
    """
    folder = Path(model)
    if is_hub_name(model):
        return
    if not model.strip() or not _is_folder(model):
        raise MissingDataError(
            f"No checkpoint at model={brief(model)}: neither a folder with a transformers checkpoint nor a hub's name "
            "of the form organisation/model."
        )
    fault = _fault(folder)
    if fault:
        raise CheckpointError(
            f"The policy {folder} is damaged: {fault}. The run that wrote it writes it again with the same command; if "
            f"you changed it on purpose, delete {POLICY_FILES}."
        )


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # a name that is too long
        return False


def _fault(folder: Path) -> str | None:
    try:
        return damage(folder, read_object(folder / POLICY_FILES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{POLICY_FILES} cannot be read ({error})"


@contextmanager
def hub_access(model: str) -> Iterator[None]:
    """Allows a hub to be asked within, if the model is named after one's manner; denies it otherwise.

    ``HF_HUB_OFFLINE=1`` in the environment denies it in any case.
    """
    try:
        from huggingface_hub import constants
    except ImportError:  # then nothing can ask one
        yield
        return
    if is_hub_name(model):
        yield
        return
    before, said = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE = True
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        if said is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = said
