"""A growing chat as one row of tokens: only what is new is ever tokenised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.rollout.chat_encoder import REPLY, ChatEncoder, Message

__all__ = ["ChatTokens", "load_chat_template"]

_REMEDY = (
    "Training on growing conversations needs a template that never rewrites earlier turns. Pass chat_template=trl for "
    "TRL's training template of a known model family, chat_template=FILE for your own, or prompt the model turn by "
    "turn with form=window."
)
_OPENING: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
_SAID: list[Message] = [*_OPENING, {"role": "assistant", "content": REPLY}]


class ChatTokens:
    """Turns messages into tokens by the tokenizer's chat template, past turns untouched.

    What messages say never becomes a control token: see :class:`~trainers.rollout.chat_encoder.ChatEncoder`.

    The reply's own tokens, as generated, stay in the row; what follows them up to the next reply is rendered by
    difference: the template with the new messages, minus the template without.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        growing: Whether conversations will grow (:meth:`after_reply`); only then must the template be stable.

    Raises:
        ConfigError: If there is no template, or it changes earlier turns when later ones are added.
    """

    def __init__(self, tokenizer: Any, *, growing: bool = True) -> None:
        self.tokenizer = tokenizer
        self._encoder = ChatEncoder(tokenizer)
        self._said = self._encoder.render(_SAID, prompt=False)
        self._reply_end = self._said.rfind(REPLY) + len(REPLY)
        closing = self._encoder.encode(self._said[self._reply_end :]) if REPLY in self._said else []
        if not closing:
            raise ConfigError(f"The chat template does not show or does not close the assistant's turns. {_REMEDY}")
        self.end_id: int = closing[0]
        """The token that closes the assistant's turn."""
        if growing:
            self._check()

    @property
    def eos_ids(self) -> list[int]:
        """Tokens at which a reply ends."""
        return sorted({self.end_id, self.tokenizer.eos_token_id} - {None})

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a whole chat, up to where the assistant's next reply begins."""
        return self._encoder.ids(messages, prompt=True)

    def after_reply(self, new_messages: Sequence[Message], reply_ids: Sequence[int]) -> list[int]:
        """Tokens between a reply and the next one.

        Args:
            new_messages: What was added to the chat since the reply.
            reply_ids: The reply as generated; if it was cut, the token that closes the turn is supplied.
        """
        ids = self._encoder.ids(new_messages, prompt=True, known=_SAID, after=self._said[: self._reply_end])
        return ids[1:] if len(reply_ids) and reply_ids[-1] == self.end_id else ids

    def reply_text(self, reply_ids: Sequence[int]) -> str:
        """The reply in words, without special tokens."""
        text: str = self.tokenizer.decode(list(reply_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    def _check(self) -> None:
        asked = self._encoder.render(_OPENING, prompt=True)
        answer = [{"role": "user", "content": "v"}]
        longer = self._encoder.render([*_SAID, *answer], prompt=True)
        if not self._said.startswith(asked + REPLY):
            raise ConfigError(f"The chat template adds to the assistant's turn or changes it. {_REMEDY}")
        if not longer.startswith(self._said):
            raise ConfigError(f"The chat template rewrites earlier turns when a message is added. {_REMEDY}")
        reply = self._encoder.encode(asked + REPLY)
        if reply + self.after_reply(answer, reply) != self._encoder.encode(longer):
            raise ConfigError(f"The tokenizer does not split this chat template's text between turns. {_REMEDY}")


def load_chat_template(tokenizer: Any, source: str) -> None:
    """Gives a tokenizer another chat template.

    Args:
        tokenizer: Changed in place.
        source: A file with a Jinja template.

    Raises:
        ConfigError: If there is no such file.
    """
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"chat_template={source!r} is neither a file nor 'trl'.")
    tokenizer.chat_template = path.read_text(encoding="utf-8")
