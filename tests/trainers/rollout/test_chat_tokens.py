from __future__ import annotations

from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import TEMPLATE, make_tokenizer
from trainers.config import TrainConfig
from trainers.engines import Generation
from trainers.models import load_tokenizer
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.rows import ConversationRows, WindowRows

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


def test_reply_text_leaves_special_tokens_out() -> None:
    tokenizer = make_tokenizer(WORDS)
    chat = ChatTokens(tokenizer)
    ids = [*tokenizer.encode("<think> w1 </think> <action> w2 </action>", add_special_tokens=False), chat.end_id]
    assert chat.reply_text(ids) == "<think> w1 </think> <action> w2 </action>"


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


def test_rows_hold_generated_tokens_verbatim_and_mask_the_environment() -> None:
    chat = ChatTokens(make_tokenizer(WORDS))
    rows = ConversationRows(chat, OPENING)
    start = rows.prompt()
    first, second = Generation([12, 13, chat.end_id], [-0.1, -0.2, -0.3]), Generation([14], [-0.4])
    rows.reply(first)
    rows.observe({"new_messages": [{"role": "user", "content": "w4 w5"}]})
    between = rows.prompt()[len(start) + 3 :]
    rows.reply(second)
    rows.observe({"new_messages": [{"role": "user", "content": "w6"}]})
    (row,) = rows.rows()
    assert row.prompt_ids == start
    assert row.completion_ids == [12, 13, chat.end_id, *between, 14]
    assert row.loss_mask == [1, 1, 1, *[0] * len(between), 1]
    assert row.logprobs == [-0.1, -0.2, -0.3, *[0.0] * len(between), -0.4]


def test_window_rows_are_one_per_turn() -> None:
    chat = ChatTokens(make_tokenizer(WORDS))
    rows = WindowRows(chat, OPENING)
    rows.reply(Generation([12], [-0.1]))
    rows.observe({"new_messages": [{"role": "user", "content": "w4 w5"}]})
    rows.reply(Generation([13, 14], [-0.1, -0.2]))
    first, second = rows.rows()
    assert (first.prompt_ids, first.completion_ids) == (chat.prompt(OPENING), [12])
    assert second.prompt_ids == chat.prompt([{"role": "user", "content": "w4 w5"}])
    assert second.model_tokens == 2


def test_an_episode_without_a_reply_has_no_rows() -> None:
    assert ConversationRows(ChatTokens(make_tokenizer(WORDS)), OPENING).rows() == []
