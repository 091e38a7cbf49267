"""A growing chat as one row of tokens: only what is new is ever tokenised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_gym.chat import Message
from skillc_gym.errors import ConfigError
from trainers.base import Thoughts
from trainers.rollout.chat_encoder import REPLY, ChatEncoder

_REMEDY = (
    "A growing conversation needs a template that never rewrites earlier turns. Pass chat_template=trl for TRL's "
    "training template of the model's family if it has one, chat_template=FILE for your own, thoughts=keep to keep "
    "replies as they were generated whatever the template makes of them, thoughts=drop to prompt each turn without "
    "earlier thoughts, or prompt the model turn by turn with form=window:5."
)
_COMMAND = "<action> reply </action>"
_OPENING: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
_SAID: list[Message] = [*_OPENING, {"role": "assistant", "content": REPLY}]
_ANSWER: list[Message] = [{"role": "user", "content": "v"}]


class ChatTokens:
    """Turns messages into tokens by the tokenizer's chat template, past turns untouched.

    What messages say never becomes a control token: see :class:`~trainers.rollout.chat_encoder.ChatEncoder`.

    The reply's own tokens, as generated, stay in the row; what follows them up to the next reply is rendered by
    difference: the template with a reply and the new messages, minus its part up to the reply's end.

    ``thoughts`` is what ``growing`` conversations show of earlier ones. "template": what the template shows, which must
    be all; "keep": everything as generated; "drop": none, and each turn is a row of its own. A ConfigError if there is
    no template, it does not close the assistant's turns, or rewrites them where conversations grow as it has it.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        growing: bool = True,
        thoughts: Thoughts = "template",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.tokenizer, self.growing, self.thoughts = tokenizer, growing, thoughts
        self._encoder = ChatEncoder(tokenizer, options)
        self._asked = self._encoder.render(_OPENING, prompt=True)
        self._longer = self._encoder.render([*_SAID, *_ANSWER], prompt=True)
        self._reply_end = self._longer.rfind(_COMMAND) + len(_COMMAND)
        closing = self._encoder.encode(self._longer[self._reply_end :]) if _COMMAND in self._longer else []
        if not closing:
            raise ConfigError(
                "The chat template does not show or does not close the assistant's turns; pass chat_template=FILE with "
                "one that does."
            )
        self.end_id: int = closing[0]
        """The token that closes the assistant's turn."""
        self.opens_thought = self._asked.rstrip().endswith("<think>")
        """Whether the template begins the assistant's thought, so that replies lack the opening tag."""
        if growing and thoughts != "drop":
            self._check()

    @property
    def eos_ids(self) -> list[int]:
        """Tokens at which a reply ends."""
        return sorted({self.end_id, self.tokenizer.eos_token_id} - {None})

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a whole chat, up to where the assistant's next reply begins."""
        return self._encoder.ids(messages, prompt=True)

    def after_reply(self, new_messages: Sequence[Message], reply_ids: Sequence[int]) -> list[int]:
        """Tokens between a reply as generated and the next one, of the messages that were added to the chat."""
        # If the reply was cut, the token that closes its turn is supplied.
        ids = self._encoder.ids(new_messages, prompt=True, known=_SAID, after=self._longer[: self._reply_end])
        return ids[1:] if len(reply_ids) and reply_ids[-1] == self.end_id else ids

    def reply_ids(self, text: str) -> list[int]:
        """Tokens of a reply in words, with the token that closes the turn and the end of a thought that it begins."""
        return [*self._encoder.words(f"</think>{text}" if self.opens_thought else text), self.end_id]

    def reply_text(self, reply_ids: Sequence[int]) -> str:
        """The reply in words, without special tokens, with the opening tag of a thought that the template began."""
        text: str = self.tokenizer.decode(list(reply_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        begun = self.opens_thought and "<think>" not in text.partition("</think>")[0]
        return f"<think>{text}".strip() if begun else text.strip()

    def _check(self) -> None:
        if self.thoughts == "template":
            said = self._asked + self._generated()
            turn = self._longer
            if self._generated() == _COMMAND:
                command = {"role": "assistant", "content": _COMMAND}
                turn = self._encoder.render([*_OPENING, command, *_ANSWER], prompt=True)
            # Templates of thinking models lay white space afresh around a thought.
            if not "".join(turn.split()).startswith("".join(said.split())):
                raise ConfigError(f"The chat template rewrites earlier turns when a message is added. {_REMEDY}")
        before = self._encoder.encode(self._longer[: self._reply_end])
        if before + self.after_reply(_ANSWER, []) != self._encoder.encode(self._longer):
            raise ConfigError(f"The tokenizer does not split this chat template's text between turns. {_REMEDY}")

    def _generated(self) -> str:
        """What a model would generate behind the prompt: it may begin within or behind a thought."""
        if self.opens_thought:
            return REPLY.removeprefix("<think>")
        return _COMMAND if self._asked.rstrip().endswith("</think>") else REPLY


def without_thoughts(reply: str) -> str:
    """A reply in words without its thoughts; "" if the thought never ends."""
    _, closed, rest = reply.rpartition("</think>")
    return rest.strip() if closed or "<think>" not in reply else ""
