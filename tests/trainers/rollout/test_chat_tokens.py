from __future__ import annotations

from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import TEMPLATE, make_tokenizer
from trainers.config import TrainConfig
from trainers.models import load_tokenizer
from trainers.rollout.chat_tokens import ChatTokens

WORDS = [f"w{i}" for i in range(20)] + ["s", "u", "v", "t", "reply"]
OPENING = [{"role": "system", "content": "w0 w1"}, {"role": "user", "content": "w2 w3"}]
QWEN = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize("template", [TEMPLATE, QWEN])
def test_a_conversation_by_difference_equals_the_whole_rendered_at_once(template: str) -> None:
    tokenizer = make_tokenizer(WORDS, template)
    chat = ChatTokens(tokenizer)
    messages, ids = list(OPENING), chat.prompt(OPENING)
    for turn in range(3):
        reply = f"<think> w{turn} </think> <action> w9 </action>"
        reply_ids = [*tokenizer.encode(reply, add_special_tokens=False), chat.end_id]
        new = [{"role": "user", "content": f"w{turn + 5} w4"}]
        ids += reply_ids + chat.after_reply(new, reply_ids)
        messages += [said(reply), *new]
    assert ids == chat.prompt(messages)


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


def test_reply_text_leaves_special_tokens_out() -> None:
    tokenizer = make_tokenizer(WORDS)
    chat = ChatTokens(tokenizer)
    ids = [*tokenizer.encode("<think> w1 </think> <action> w2 </action>", add_special_tokens=False), chat.end_id]
    assert chat.reply_text(ids) == "<think> w1 </think> <action> w2 </action>"
