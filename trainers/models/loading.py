"""Where a model is, what is loaded from there (checkpoints of transformers, tokenizers), and in which precision."""

from __future__ import annotations

import os
import re
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_library.errors import brief
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, needs_extra
from trainers.base import Registry, Wanted
from trainers.config import TrainConfig
from trainers.tracking.files import damage, read_object
from trainers.tracking.policy_settings import SETTINGS_FILE
from trainers.tracking.run_folder import POLICY_FILES, RunFolder

if TYPE_CHECKING:
    import torch

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def is_hub_name(model: str) -> bool:
    """Whether a model is named as hubs do, ``organisation/model``, and neither it nor its beginning is a folder."""
    if not _HUB_NAME.fullmatch(model) or ".." in model:
        return False
    return not _is_folder(model) and not _is_folder(model.partition("/")[0])


def check_model(model: str) -> None:
    """Checks, before anything is loaded, that a model is a folder or a hub's name, and undamaged if a run wrote it."""
    folder = Path(model)
    if is_hub_name(model):
        return
    if not model.strip() or not _is_folder(model):
        raise MissingDataError(
            f"No checkpoint at model={brief(model)}: neither a folder with a transformers checkpoint, nor a hub's name "
            "of the form organisation/model, nor a policy that comes with the environment (`skillc starts` lists them)."
        )
    _refuse_run(folder)
    if (folder / "adapter_config.json").is_file():  # transformers would add them, to weights that may hold them already
        raise ConfigError(
            f"The folder {folder} holds adapters; merge them into their model (merge_and_unload of peft), and save "
            "that into a folder of its own."
        )
    fault = _fault(folder)
    if fault:
        raise CheckpointError(
            f"The policy {folder} is damaged: {fault}. The run that wrote it writes it again with the same command; if "
            f"you changed it on purpose, delete {POLICY_FILES}."
        )


def _refuse_run(folder: Path) -> None:
    """Says (MissingDataError) of a run's folder where its policy is."""
    own = (folder / "config.json").is_file()
    if not ((folder / "metrics.jsonl").is_file() or (not own and (folder / "policy").is_dir())):
        return
    found = RunFolder(folder).loadable
    if found is None:
        raise MissingDataError(f"{folder} is a run's folder, and has no policy yet: run the same command to its end.")
    what = "its policy is" if found.name == "policy" else "it has no policy yet, and its newest checkpoint is"
    raise MissingDataError(f"{folder} is a run's folder; {what} {found}: name that as the model.")


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # a name that is too long
        return False


def _fault(folder: Path) -> str | None:
    try:
        # Settings are read and held against their ranges by themselves, and may be looked through before one publishes.
        listed = read_object(folder / POLICY_FILES)
        return damage(folder, {name: digest for name, digest in listed.items() if name != SETTINGS_FILE})
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{POLICY_FILES} cannot be read ({error})"


@contextmanager
def hub_access(*models: str) -> Iterator[bool]:
    """Lets a hub be asked within, and says whether, if a model is named as one's, it answers, and none forbids it."""
    try:
        from huggingface_hub import constants
    except ImportError:  # then nothing can ask one
        yield False
        return
    if any(map(is_hub_name, models)) and _is_reachable(constants.ENDPOINT):
        yield True
        return
    before, said = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE = True
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield False
    finally:
        constants.HF_HUB_OFFLINE = before
        if said is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = said


# A BackendSpec by what it has: its room lies above this one.
_BACKEND = Wanted(
    "a trainers.backends.BackendSpec",
    lambda found: all(hasattr(found, name) for name in ("require", "make", "chat_template")),
)
BACKENDS = Registry("backend", "trainers.backends", "BACKEND", "skillc_gym.backends", _BACKEND)
"""Who trains models, and may give their tokenizers a template: built-in ones, entry points, and ``module:BACKEND``.

Here and not beside the backends, which load models: ``chat_template=trl`` asks one for its template."""

_FLASH: Mapping[str, str] = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}
"""Where each kind of flash attention is imported from."""


@cache
def _is_reachable(endpoint: str) -> bool:
    """Whether a hub can be asked at all: its own client tries five times, 25 s, before it says that it cannot."""
    from huggingface_hub import get_session

    try:
        get_session().head(endpoint, timeout=10)
    except Exception:  # noqa: BLE001 - offline mode, or whichever errors the client's transport has
        return False
    return True


def load_model(config: TrainConfig) -> Any:
    """The policy to start from, in the configured precision; errors say what is missing or unusable."""
    with needs_extra("torch and transformers", "train"):
        import torch
        from transformers import AutoModelForCausalLM
    needed = _FLASH.get(config.attention)
    if needed is not None and find_spec(needed) is None:
        raise ConfigError(
            f"attention={config.attention} needs the module {needed} of flash-attn, which is not installed; install it "
            "for this CUDA and torch, or take attention=sdpa."
        )
    attend_without_plans()
    pure = config.precision == "pure_bfloat16"
    return _pretrained(
        AutoModelForCausalLM.from_pretrained,
        config,
        dtype=torch.bfloat16 if pure else torch.float32,
        attn_implementation=config.attention,
    )


_LAST_NORMS = ("norm", "final_layernorm", "final_layer_norm")
"""What families call the norm behind the last layer."""


def train_upper(model: Any, count: int) -> None:
    """Leaves only the last layers of a model, and its last norm, to be trained; a ConfigError if there are fewer."""
    decoder = model.get_decoder()
    layers = getattr(decoder, "layers", None)
    norm = next((found for name in _LAST_NORMS if (found := getattr(decoder, name, None)) is not None), None)
    if layers is None or len(layers) < count:
        known = "whose layers this model does not name" if layers is None else f"and the model has {len(layers)} layers"
        raise ConfigError(f"trained_layers=upper:{count}, {known}; take fewer, or trained_layers=all.")
    if norm is None:
        raise ConfigError(f"trained_layers=upper:{count}, whose last norm this model does not name; take all.")
    model.requires_grad_(False)
    for part in (*layers[-count:], norm):
        part.requires_grad_(True)


def load_plain_tokenizer(config: TrainConfig) -> Any:
    """The model's tokenizer, with its own chat template; errors as of :func:`load_model`."""
    with needs_extra("transformers", "train"):
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    # Auto classes prefer the model family's tokenizer to the one in the folder, also where that is of another kind.
    own = _declared_class(config.model_path) in ("TokenizersBackend", "PreTrainedTokenizerFast")
    tokenizer = _pretrained((PreTrainedTokenizerFast if own else AutoTokenizer).from_pretrained, config)
    if tokenizer.pad_token is None:  # as of many base models; padding is masked, so that any token will do
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_tokenizer(config: TrainConfig) -> Any:
    """The model's tokenizer, with the configured chat template; errors as of :func:`load_model`."""
    tokenizer = load_plain_tokenizer(config)
    if tokenizer.pad_token is None:
        raise ConfigError(
            f"The tokenizer of {config.model} names neither a pad_token nor an eos_token; name one in its "
            "tokenizer_config.json."
        )
    source = config.chat_template
    if source in BACKENDS.names() and (give := BACKENDS.get(source).chat_template):
        give(tokenizer)
    elif source:
        tokenizer.chat_template = _template_in(Path(source))
    return tokenizer


def _template_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"chat_template={str(path)!r} cannot be read as UTF-8 ({error}).") from error
    except (OSError, ValueError) as error:  # of a name that is too long, or none that there can be
        said = f"{str(path)!r:.200} is neither a file nor 'trl' ({getattr(error, 'strerror', error)})"
        raise ConfigError(f"chat_template={said}.") from error


def context_limit(config: TrainConfig) -> int | None:
    """The longest row that the model was made for, by its configuration; None if nothing says so."""
    return limit_of(load_plain_config(config))


def limit_of(config: Any) -> int | None:
    """The same by a configuration of transformers."""
    text = config.get_text_config()
    limit, rope = getattr(text, "max_position_embeddings", None), getattr(text, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        # Beyond, a pass turns all its positions otherwise, by its longest row: cached keys would be another model's.
        limit = rope.get("original_max_position_embeddings") or getattr(text, "original_max_position_embeddings", limit)
    return None if limit is None else int(limit)


def load_plain_config(config: TrainConfig) -> Any:
    """The model's transformers configuration; errors as of :func:`load_model`."""
    with needs_extra("transformers", "train"):
        from transformers import AutoConfig
    return _pretrained(AutoConfig.from_pretrained, config)


def within_model(config: TrainConfig) -> TrainConfig:
    """The configuration with ``max_context`` lowered to what the model takes, where that is less; errors as above."""
    limit = context_limit(config)
    return config if limit is None or config.max_context <= limit else config.with_(max_context=limit)


def _declared_class(model: str) -> Any:
    path = Path(model) / "tokenizer_config.json"
    try:
        return read_object(path).get("tokenizer_class") if path.is_file() else None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); copy the checkpoint again.") from error


def _pretrained(load: Callable[..., Any], config: TrainConfig, **options: Any) -> Any:
    check_model(config.model_path)
    if config.revision and is_hub_name(config.model_path):
        options["revision"] = config.revision
    elif config.revision:
        raise ConfigError(f"revision={config.revision!r} is for models of a hub; model={config.model!r} is a folder.")
    try:
        with hub_access(config.model_path) as asked:
            return load(config.model_path, local_files_only=not asked, trust_remote_code=False, **options)
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "does not support an attention implementation" in said:
            raise ConfigError(
                f"The model {config.model!r} has no attention={config.attention} in transformers; take attention=eager."
            ) from error
        if Path(config.model_path).is_dir():
            raise CheckpointError(
                f"The folder model={config.model!r} holds no usable transformers checkpoint ({said}). It needs "
                "config.json, weights and tokenizer files; copy it again, or make one with `skillc tools make-policy`."
            ) from error
        if not isinstance(error, OSError):
            raise
        raise MissingDataError(
            f"No checkpoint at model={config.model!r}: it is no folder here, and could not be fetched ({said})."
        ) from error


@contextmanager
def without_bars() -> Iterator[None]:
    """Hides transformers' own progress bars, which would tear the display apart."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def attend_without_plans() -> None:
    """Keeps this process off cuDNN's attention, which plans anew for each shape; a rollout's is another at each token.

    Torch prefers it on some GPUs. For all passes alike: a checkpointed one is computed again, in the backward pass.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


# Precision -----------------------------------------------------------------------------------------------------------


def cast(parameters: Iterable[torch.nn.Parameter], dtype: torch.dtype) -> None:
    """Casts parameters where they are, and not what else a model computes with, as its rotary frequencies."""
    for parameter in parameters:
        parameter.data = parameter.data.to(dtype)


def bfloat16_slowdown() -> float:
    """How many times as long a linear layer takes here in bfloat16 as in float32; measured, in some milliseconds."""
    import torch

    def shortest(dtype: torch.dtype) -> float:
        rows, weights = (torch.ones((size, 512), dtype=dtype) for size in (128, 512))
        layer = partial(torch.nn.functional.linear, rows, weights)
        return min(timeit.repeat(layer, timer=time.process_time, number=1, repeat=3))

    return shortest(torch.bfloat16) / shortest(torch.float32)


def bfloat16_warning(precision: str) -> str:
    """A sentence where a precision makes this processor slower, and on what to do; "" on a GPU and where it pays."""
    if "bfloat16" not in precision:
        return ""
    import torch

    if torch.cuda.is_available() or (slowdown := bfloat16_slowdown()) < 2:
        return ""
    return (
        f"precision={precision}: a layer takes {slowdown:.0f} times as long in bfloat16 as in float32 on this "
        "processor, which has no instructions for it; take precision=float32."
    )


@contextmanager
def exchanged(owner: Any, name: str, value: object) -> Iterator[None]:
    """Gives an attribute another value for a while."""
    plain = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, plain)


@contextmanager
def only_at(output_layer: torch.nn.Module, positions: torch.Tensor) -> Iterator[list[torch.Tensor]]:
    """Lets the output layer see the hidden states of some positions only, as (positions, width); keeps them too."""
    seen: list[torch.Tensor] = []

    def pick(_: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        seen[:] = [args[0][positions]]
        return (seen[0], *args[1:])

    hook = output_layer.register_forward_pre_hook(pick)
    try:
        yield seen
    finally:
        hook.remove()
