"""A growing chat as one row of tokens: only what is new is ever tokenised, and the template alone says control tokens.

A skill, an observation or a product's title may hold the very characters of ``<|im_end|>`` or ``<|user|>``. Tokenised
within a rendered chat they would end the turn or forge another; here they are cut, so that they stay words. Text
without them gives exactly the tokens of ``apply_chat_template``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from skillc_gym.chat import Message
from skillc_gym.errors import ConfigError
from trainers.base import Thoughts

REPLY = "<think> t </think> <action> reply </action>"
"""A reply in the form that agents are asked for; its tags are no control tokens, also where they are tokens."""
_TAGS = ["<think>", "</think>", "<action>", "</action>"]
_EXAMPLE: list[Message] = [{"role": "user", "content": "u"}, {"role": "assistant", "content": REPLY}]
_MARKS = range(0xF0000, 0xFFFFE)
"""Characters of private use: one that no message holds marks a cut while the template is rendered."""
_MAX_SKELETONS = 256
_MAX_CUTS = 1_000
_MAX_SPACINGS = 8
_Encoded = Callable[[Sequence[str]], "list[int] | None"]
"""Renders the chat with these contents and encodes what stands between the marks."""
_REMEDY = (
    "A growing conversation needs a template that never rewrites earlier turns. Pass chat_template=trl for TRL's "
    "training template of the model's family if it has one, chat_template=FILE for your own, thoughts=keep to keep "
    "replies as they were generated whatever the template makes of them, thoughts=drop to prompt each turn without "
    "earlier thoughts, or prompt the model turn by turn with form=window:5."
)
_TODAY = re.compile(r"""strftime_now\(\s*(["'])(.*?)\1\s*\)""")
"""Where a template writes the date of today, in the format that it names."""
_DAY = datetime(2024, 7, 26)
"""What a template is told is today, which Llama 3.2's takes where nobody says: no prompt depends on the clock."""
_COMMAND = "<action> reply </action>"
_OPENING: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
_SAID: list[Message] = [*_OPENING, {"role": "assistant", "content": REPLY}]
_ANSWER: list[Message] = [{"role": "user", "content": "v"}]
_OTHERS: list[Message] = [{"role": "system", "content": "t"}, {"role": "user", "content": "w"}, _SAID[-1]]


class ChatTokens:
    """Turns messages into tokens by the tokenizer's chat template, past turns untouched.

    What messages say never becomes a control token: see :class:`ChatEncoder`.

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
        self._require_whole_replies()
        # White space may stand before the control token that closes the turn; without one the first token closes it.
        place = next((i for i, token in enumerate(closing) if token in self._encoder.control_ids), 0)
        place = 0 if tokenizer.decode(closing[:place]).strip() else place
        self._closing = closing[: place + 1]
        self.end_id: int = closing[place]
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
        return ids[len(self._closing) :] if len(reply_ids) and reply_ids[-1] == self.end_id else ids

    def reply_ids(self, text: str) -> list[int]:
        """Tokens of a reply in words, with the token that closes the turn and the end of a thought that it begins."""
        return [*self._encoder.words(f"</think>{text}" if self.opens_thought else text), *self._closing]

    def reply_text(self, reply_ids: Sequence[int]) -> str:
        """The reply in words, without special tokens, with the opening tag of a thought that the template began."""
        tags, unsaid = self._encoder.special_tags, self._encoder.unsaid_ids
        ids = [token for token in reply_ids if token not in unsaid] if tags else list(reply_ids)
        text: str = self.tokenizer.decode(ids, skip_special_tokens=not tags, clean_up_tokenization_spaces=False)
        begun = self.opens_thought and "<think>" not in text.partition("</think>")[0]
        return f"<think>{text}".strip() if begun else text.strip()

    def _require_whole_replies(self) -> None:
        """Refuses channels, as of gpt-oss: models would say the thought's end themselves, and replies end there."""
        asked = self._asked.rstrip()
        between = self._longer[len(asked) : self._longer.rfind(_COMMAND)] if self._longer.startswith(asked) else ""
        if self._encoder.control_ids & {*self._encoder.encode(between)}:
            raise ConfigError(
                "The chat template writes control tokens between its prompt and the reply, which the model would say "
                "itself; pass chat_template=FILE whose prompt ends where the reply begins, or play the model through a "
                "server (engine=openai)."
            )

    def _check(self) -> None:
        other = self._encoder.render([*_OTHERS, *_ANSWER], prompt=True)
        if other[other.rfind(_COMMAND) + len(_COMMAND) :] != self._longer[self._reply_end :]:
            raise ConfigError(
                "The chat template writes earlier messages into later turns. Pass chat_template=FILE with one that "
                "does not, thoughts=drop to render each turn's whole chat, or form=window:5."
            )
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


class ChatEncoder:
    """Renders messages by a tokenizer's chat template (ConfigError if it has none), and encodes them.

    Control tokens are the tokenizer's special tokens and the added tokens that its template writes, but for the unknown
    token and the tags of :data:`REPLY`. ``options`` are variables of the template.
    """

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError("The tokenizer has no chat template; pass chat_template=FILE with one in Jinja.")
        self.tokenizer = tokenizer
        self._options = dict(options or {})
        if isinstance(tokenizer.chat_template, str) and "strftime_now" in tokenizer.chat_template:
            said = _TODAY.sub(lambda found: repr(_DAY.strftime(found[2])), tokenizer.chat_template)
            self._options["chat_template"] = said
        added = {int(token): entry for token, entry in tokenizer.added_tokens_decoder.items()}
        special = {token for token, entry in added.items() if entry.special} | set(tokenizer.all_special_ids)
        self.special_tags = special & set(tokenizer.convert_tokens_to_ids(_TAGS)) - {tokenizer.unk_token_id}
        """The tags that replies say and that are special tokens, which decoding would take out."""
        self.unsaid_ids = special - self.special_tags
        """The other special tokens."""
        self.control_ids = self._control_ids(added, special)
        """The tokens that only the template may write."""
        texts = tokenizer.convert_ids_to_tokens(sorted(self.control_ids))
        self._literals = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)")
        self._skeletons: dict[tuple[Any, ...], list[int]] = {}

    def render(self, messages: Sequence[Message], *, prompt: bool) -> str:
        """The chat as text, with the beginning of the assistant's next turn if ``prompt``; a ConfigError if refused."""
        from jinja2 import TemplateError

        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=prompt, **self._options
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise ConfigError(
                f"The chat template cannot render turns of {', '.join(m['role'] for m in messages[:4])} ({error}); "
                "pass chat_template=FILE with one that can."
            ) from error
        return text

    def encode(self, text: str) -> list[int]:
        """Tokens of a text that is trusted: what looks like a control token becomes one."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def ids(
        self, messages: Sequence[Message], *, prompt: bool, known: Sequence[Message] = (), after: str = ""
    ) -> list[int]:
        """Tokens of a chat whose contents are not trusted.

        ``known`` messages, which are trusted, stand before; ``after`` is a beginning of the rendered chat that is left
        out, and a ConfigError if it does not begin so.
        """
        mark = next(sign for sign in map(chr, _MARKS) if not any(sign in message["content"] for message in messages))

        def encoded(contents: Sequence[str]) -> list[int] | None:
            turns = [{**message, "content": text} for message, text in zip(messages, contents, strict=True)]
            text = self.render([*known, *turns], prompt=prompt)
            pieces = text[len(after) :].split(mark)
            return [token for piece in pieces for token in self.encode(piece)] if text.startswith(after) else None

        plain = [message["content"] for message in messages]
        if not any(map(self._literals.search, plain)):
            ids = encoded(plain)
            if ids is not None and self._controls(ids) == self._expected(messages, prompt, after, encoded):
                return ids
        return self._apart(encoded, [mark.join(self._cut(text)) for text in plain], mark)

    def words(self, text: str) -> list[int]:
        """Tokens of a text that is not trusted and stands outside of any template."""
        return [token for part in self._cut(text) for token in self.encode(part)]

    def _apart(self, encoded: _Encoded, contents: Sequence[str], mark: str) -> list[int]:
        """Cuts contents off from the template as well, if that alone changes which control tokens there are."""
        ids = encoded(contents)
        apart = encoded([mark + text + mark if text else text for text in contents])
        if apart is None:
            raise ConfigError("The chat template rewrites earlier turns when a message is added; use form=window.")
        return apart if ids is None or self._controls(ids) != self._controls(apart) else ids

    def _cut(self, text: str) -> list[str]:
        """Cuts a text such that no part of it encodes to control tokens; mostly it is one part."""
        parts, todo = [], [self._spaced(text)]
        while todo:
            part = todo.pop()
            spans = self._spans(part)
            if not spans:
                parts.append(part)
                continue
            places = [0, *((start + end) // 2 for start, end in spans), len(part)]
            pieces = [part[start:end] for start, end in itertools.pairwise(places)]
            # What is one character long cannot be cut.
            todo += [piece for piece in reversed(pieces) if piece != part]
        return parts

    def _spaced(self, text: str) -> str:
        """Puts a blank instead of a cut on each control token where there are very many: each cut costs a call."""
        for _ in range(_MAX_SPACINGS):
            if sum(1 for _ in itertools.islice(self._literals.finditer(text), _MAX_CUTS)) < _MAX_CUTS:
                break
            text = self._literals.sub(
                lambda found: f"{found[0][: len(found[0]) // 2]} {found[0][len(found[0]) // 2 :]}", text
            )
        return text

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where a text holds what would become a control token: by its characters, or by what the tokenizer tells."""
        found = [match.span() for match in self._literals.finditer(text)]
        if not found and getattr(self.tokenizer, "is_fast", False):
            coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            pairs = zip(coded["input_ids"], coded["offset_mapping"], strict=True)
            found = [(start, end) for token, (start, end) in pairs if token in self.control_ids and end > start + 1]
        return found

    def _expected(self, messages: Sequence[Message], prompt: bool, after: str, encoded: _Encoded) -> list[int]:
        """The control tokens that the template writes around such messages."""
        key = (prompt, after, *((message["role"], bool(message["content"])) for message in messages))
        if key not in self._skeletons:
            if len(self._skeletons) >= _MAX_SKELETONS:
                self._skeletons.clear()
            ids = encoded(["x" if message["content"] else "" for message in messages])
            self._skeletons[key] = self._controls(ids or [])
        return self._skeletons[key]

    def _controls(self, ids: Iterable[int]) -> list[int]:
        return [token for token in ids if token in self.control_ids]

    def _control_ids(self, added: Mapping[int, Any], special: Collection[int]) -> frozenset[int]:
        # A template may mark turns with added tokens that are not special: an example says which. Left out is what
        # replies say, the tags, and the unknown token, which any word may become; not if it also ends or fills up rows.
        written = {
            token for prompt in (False, True) for token in self.encode(self.render(_EXAMPLE, prompt=prompt))
        } & added.keys()
        said = {self.tokenizer.unk_token_id, *self.encode(REPLY)}
        ends = {self.tokenizer.eos_token_id, self.tokenizer.pad_token_id}
        return frozenset({*special, *written} - (said - ends))
