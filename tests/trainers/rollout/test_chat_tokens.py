"""Growing chats as tokens, with the templates of published model families, as TRL brings them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import TEMPLATE, make_tokenizer
from trainers.config import TrainConfig
from trainers.models import load_tokenizer
from trainers.rollout.chat_tokens import ChatTokens

pytest.importorskip("trl", reason="TRL brings the templates; needs the extra 'train'")

import trl

from trainers.backends import BACKENDS
from trainers.engines import Generation
from trainers.rollout.chat_tokens import without_thoughts
from trainers.rollout.rows import ConversationRows, RowsWithoutThoughts

FOLDER = Path(trl.__file__).parent / "chat_templates"
BAR = "\uff5c"
CONTROL = re.compile(rf"<\|\w+\|>|<{BAR}[^{BAR}]+{BAR}>|</?think>|<(?:start|end)_of_turn>|\[gMASK\]|<sop>")
SENTENCE_END = f"<{BAR}end▁of▁sentence{BAR}>"
OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "You see a door."}]
LATER = [{"role": "user", "content": "It is open."}]
COMMAND = "<action>open door</action>"


@dataclass(frozen=True)
class Family:
    """A family, and what becomes of its template in a conversation: as it is, and as TRL changes it for training."""

    name: str
    eos: str
    end: str
    keeps_thoughts: bool = True
    keeps_with_trl: bool | None = True
    rstrip: bool = False


FAMILIES = [
    Family("qwen2_5", "<|im_end|>", "<|im_end|>"),
    Family("qwen3", "<|im_end|>", "<|im_end|>", keeps_thoughts=False),
    Family("qwen3_instruct_2507", "<|im_end|>", "<|im_end|>"),
    Family("qwen3_5_think", "<|im_end|>", "<|im_end|>", keeps_thoughts=False),
    Family("qwen3_5_nothink", "<|im_end|>", "<|im_end|>", keeps_thoughts=False),
    Family("qwen3_6", "<|im_end|>", "<|im_end|>", keeps_thoughts=False),
    Family("llama3", "<|eot_id|>", "<|eot_id|>"),
    Family("llama3_1", "<|eot_id|>", "<|eot_id|>", keeps_with_trl=None),
    Family("llama3_2", "<|eot_id|>", "<|eot_id|>", keeps_with_trl=None),
    Family("gemma3", "<end_of_turn>", "<end_of_turn>"),
    Family("phi3", "<|endoftext|>", "<|end|>", rstrip=True),
    Family("phi3_5", "<|endoftext|>", "<|end|>", rstrip=True),
    Family("glm4moe", "<|endoftext|>", "<|user|>", keeps_thoughts=False, keeps_with_trl=False),
    Family("deepseek_r1_distill", SENTENCE_END, SENTENCE_END, keeps_thoughts=False),
]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def tokenizer_of(family: Family) -> Any:
    """Bytes, and the family's control tokens; thoughts' tags are added tokens but no special ones, as published."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = FOLDER / f"{family.name}.jinja"
    if not path.is_file():
        pytest.skip(f"this TRL has no {path.name}")
    template = path.read_text(encoding="utf-8")
    control = sorted({*CONTROL.findall(template), family.eos, "<|begin|>"})
    core = Tokenizer(models.BPE({sign: i for i, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_tokens(
        [
            AddedToken(text, normalized=False, special="think" not in text, rstrip=family.rstrip and text != family.eos)
            for text in control
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<|begin|>",
        eos_token=family.eos,
        pad_token=family.eos,
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )


def with_trl(family: Family) -> Any:
    tokenizer = tokenizer_of(family)
    give = BACKENDS.get("trl").chat_template
    assert give is not None
    give(tokenizer)
    return tokenizer


def generated(chat: ChatTokens, reply: str) -> Generation:
    """The reply as a model would continue the prompt, with its end token."""
    own = reply.removeprefix("<think>") if chat.opens_thought else reply
    ids = [*chat.tokenizer.encode(own, add_special_tokens=False), chat.end_id]
    return Generation(ids, [-0.5] * len(ids))


@each_family
def test_the_window_form_takes_it_as_it_is(family: Family) -> None:
    tokenizer = tokenizer_of(family)
    chat = ChatTokens(tokenizer, growing=False)
    assert chat.end_id == tokenizer.convert_tokens_to_ids(family.end)
    text = tokenizer.apply_chat_template(OPENING, tokenize=False, add_generation_prompt=True)
    assert chat.prompt(OPENING) == tokenizer.encode(text, add_special_tokens=False)


@each_family
def test_a_conversation_is_taken_as_it_is_or_refused(family: Family) -> None:
    if family.keeps_thoughts:
        assert ChatTokens(tokenizer_of(family)).prompt(OPENING)
    else:
        with pytest.raises(ConfigError, match=r"rewrites earlier turns.*chat_template=trl.*thoughts=keep.*form=window"):
            ChatTokens(tokenizer_of(family))


@each_family
def test_trls_template_helps_where_it_says_so(family: Family) -> None:
    if family.keeps_with_trl is None:
        with pytest.raises(ConfigError, match="no training template"):
            with_trl(family)
    elif family.keeps_with_trl:
        assert ChatTokens(with_trl(family)).prompt(OPENING)
    else:
        with pytest.raises(ConfigError, match="rewrites earlier turns"):
            ChatTokens(with_trl(family))


@each_family
def test_kept_thoughts_stand_in_the_row_as_they_were_generated(family: Family) -> None:
    chat = ChatTokens(tokenizer_of(family), thoughts="keep")
    rows = ConversationRows(chat, OPENING)
    first, second = (generated(chat, f"<think> hm  {i}\n</think>{COMMAND}") for i in range(2))
    assert chat.reply_text(first.token_ids) == f"<think> hm  0\n</think>{COMMAND}"
    start = rows.prompt()
    rows.reply(first)
    rows.observe({"new_messages": LATER})
    before_second = rows.prompt()
    rows.reply(second)
    (row,) = rows.rows()
    assert row.prompt_ids == start
    assert before_second[: len(start) + len(first.token_ids)] == start + first.token_ids
    own = [token for token, mine in zip(row.completion_ids, row.loss_mask, strict=True) if mine]
    assert own == first.token_ids + second.token_ids
    between = chat.tokenizer.decode(before_second[len(start) + len(first.token_ids) :])
    assert between.count("It is open.") == 1
    assert "You see a door." not in between
    # What the next reply is generated behind is what the template writes behind that message in any chat.
    rendered = chat.tokenizer.apply_chat_template(
        [*OPENING, {"role": "assistant", "content": COMMAND}, *LATER], tokenize=False, add_generation_prompt=True
    )
    tail = chat.tokenizer.encode(rendered[rendered.rindex(COMMAND) + len(COMMAND) :], add_special_tokens=False)
    assert before_second[-len(tail) + 1 :] == tail[1:]


@each_family
def test_dropped_thoughts_are_in_the_replys_own_row_alone(family: Family) -> None:
    chat = ChatTokens(tokenizer_of(family), thoughts="drop")
    rows = RowsWithoutThoughts(chat, OPENING)
    replies, prompts = [], []
    for turn in range(2):
        prompts.append(rows.prompt())
        replies.append(generated(chat, f"<think> secret {turn} </think>{COMMAND}"))
        rows.reply(replies[-1])
        rows.observe({"new_messages": LATER})
    for row, prompt, reply in zip(rows.rows(), prompts, replies, strict=True):
        assert (row.prompt_ids, row.completion_ids) == (prompt, reply.token_ids)
        assert row.loss_mask == [1] * len(reply.token_ids)
        assert prompt == chat.prompt(row.messages)
    seen = chat.tokenizer.decode(prompts[1])
    assert COMMAND in seen
    assert "secret" not in seen


def test_a_template_is_told_its_variables() -> None:
    quiet = ChatTokens(tokenizer_of(FAMILIES[1]), thoughts="drop", options={"enable_thinking": False})
    assert quiet.tokenizer.decode(quiet.prompt(OPENING)).rstrip().endswith("</think>")


@pytest.mark.parametrize(
    ("reply", "rest"),
    [("<think>a</think> b ", "b"), ("b", "b"), ("<think>never ends", ""), ("a</think>b", "b"), ("", "")],
)
def test_what_is_left_of_a_reply_without_its_thoughts(reply: str, rest: str) -> None:
    assert without_thoughts(reply) == rest


WORDS = [f"w{i}" for i in range(20)] + ["s", "u", "v", "t", "reply"]


def test_a_reply_that_was_cut_gets_its_end_from_us() -> None:
    tokenizer = make_tokenizer(WORDS)
    chat = ChatTokens(tokenizer)
    cut = tokenizer.encode("<think> w1", add_special_tokens=False)
    tail = chat.after_reply([{"role": "user", "content": "w4"}], cut)
    assert tail[0] == chat.end_id
    assert tail[1:] == chat.after_reply([{"role": "user", "content": "w4"}], [*cut, chat.end_id])


def test_a_tokenizer_without_a_template_is_refused() -> None:
    tokenizer = make_tokenizer(WORDS)
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="no chat template"):
        ChatTokens(tokenizer)


def test_another_template_from_a_file(toy_folder: Path, tmp_path: Path) -> None:
    config = TrainConfig(model=str(toy_folder / "model"), chat_template=str(tmp_path / "chat.jinja"))
    with pytest.raises(ConfigError, match="neither a file"):
        load_tokenizer(config)
    (tmp_path / "chat.jinja").write_text(TEMPLATE)
    assert load_tokenizer(config).chat_template == TEMPLATE
