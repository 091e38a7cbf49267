"""A tiny random Qwen2-shaped model and a word tokenizer with a chat template, made in the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|> ' + m['content'] + ' <|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|> ' }}{% endif %}"
)
SPECIAL = ["<|pad|>", "<|end|>", "<|unk|>", "<|system|>", "<|user|>", "<|assistant|>"]
TAGS = ["<think>", "</think>", "<action>", "</action>"]


def make_tokenizer(words: list[str], template: str = TEMPLATE) -> Any:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *TAGS, *words])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unk|>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    core.add_tokens([AddedToken(token, normalized=False) for token in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unk|>",
        chat_template=template,
        model_max_length=2048,
        clean_up_tokenization_spaces=False,
    )


def make_model(vocabulary: int, *, layers: int = 2, kv_heads: int = 2, seed: int = 0, **changes: Any) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape: dict[str, Any] = {
        **{"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "max_position_embeddings": 2048},
        **{"tie_word_embeddings": False, "initializer_range": 0.3},
        **{"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None},
    }
    sizes = {"vocab_size": vocabulary, "num_hidden_layers": layers, "num_key_value_heads": kv_heads}
    config = Qwen2Config(**sizes, **{**shape, **changes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config).eval()


@pytest.fixture(scope="session")
def tiny_model() -> Any:
    return make_model(40)


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with a tiny model, its tokenizer and a skill library for the toy environment; copy what you change."""
    from tests.trainers.toys import WORDS, write_library

    folder = tmp_path_factory.mktemp("toy")
    tokenizer = make_tokenizer(WORDS)
    make_model(len(tokenizer), layers=1).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    write_library(folder / "skills")
    return folder


@pytest.fixture
def cudnn() -> Iterator[Any]:
    """Torch's choice of attention on GPUs, cuDNN's allowed as at first; it is as before afterwards."""
    import torch

    chosen = torch.backends.cuda
    before = chosen.cudnn_sdp_enabled()
    chosen.enable_cudnn_sdp(True)
    yield chosen
    chosen.enable_cudnn_sdp(before)


@pytest.fixture
def toy(toy_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Makes the settings of a short run on the toy, in a folder of its own, with some of them changed."""
    from tests.trainers.toys import toy_config

    return lambda **changes: toy_config(toy_folder, **{"run": str(tmp_path_factory.mktemp("run")), **changes})
