"""ChatPrompt: from observations to the chat that a language model reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.chat import ChatFormat, Message, PastStep, assistant, conversation_turn, window_prompt
from skillc_gym.envs.registry import EnvSpec, description_of
from skillc_gym.errors import ConfigError
from skillc_gym.spaces import Unicode, text_space
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper, require_no_autoreset

PROMPT_LENGTH = 1 << 20
"""Longest user message in characters that the observation space promises, skills on or off."""


class ChatPrompt(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Keeps the chat of an episode: role, skills, task, history, observation, possible commands.

    The outermost wrapper, over ``ActionFormat(SkillInjection(env, where="info"))``; works over any text environment.
    The observation is the newest user message. ``info`` gains

    - ``messages``: the chat so far, ready for a chat template (system, user, assistant, user, ...);
    - ``new_messages``: what was added since the agent's last reply; in the window form the whole new prompt;
    - ``observation``: what the wrapped environment said, without the wording of the prompt.

    Replies enter the chat verbatim. In the window form ``messages`` is the system message and one user message that
    shows the last steps, with the commands that were executed.

    Args:
        env: The environment; its action is the model's reply.
        chat_format: The wording: a :class:`~skillc_gym.chat.ChatFormat`, its ``to_dict()``, or a preset's name, in the
            environment's own wording (``env_spec(id).chat_format(name)``).

    Raises:
        ConfigError: A SkillInjection below puts skills into observations, so the prompt would show them twice.
    """

    def __init__(
        self, env: gymnasium.Env[str, str], chat_format: ChatFormat | Mapping[str, Any] | str = "default"
    ) -> None:
        self.chat_format = _as_format(chat_format, env)
        RecordConstructorArgs.__init__(self, chat_format=self.chat_format.to_dict())
        gymnasium.Wrapper.__init__(self, env)
        longest = text_space(env, "observation_space", "ChatPrompt").max_length
        require_no_autoreset(env, "ChatPrompt")
        injection = find_wrapper(env, SkillInjection)
        if injection is not None and injection.where != "info":
            raise ConfigError("ChatPrompt writes skills into the system message; use SkillInjection(env, where='info')")
        pages = self.chat_format.window + 2 if self.chat_format.form == "window" else 1
        self.observation_space = Unicode(PROMPT_LENGTH + pages * longest)
        self._messages: list[Message] = []
        self._past: list[PastStep] = []
        self._observation = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode and its chat."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._past = []
        return self._answer(info, new=self._prompt(info))  # the first prompt is the same in both forms

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Adds the reply and what came of it to the chat."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._past.append(PastStep(self._observation, info.get("executed_action", str(action).strip())))
        self._observation = observation
        new = self._prompt(info) if self.chat_format.form == "window" else self._continue(str(action), info)
        text, info = self._answer(info, new)
        return text, reward, terminated, truncated, info

    def _prompt(self, info: dict[str, Any]) -> list[Message]:
        self._messages = window_prompt(
            self.chat_format, self._past, self._observation, skill_text=info.get("skill_text", ""), **_asked(info)
        )
        return self._messages

    def _continue(self, reply: str, info: dict[str, Any]) -> list[Message]:
        user = conversation_turn(self.chat_format, self._observation, step=len(self._past), **_asked(info))
        self._messages += [assistant(reply), user]
        return [user]

    def _answer(self, info: dict[str, Any], new: list[Message]) -> tuple[str, dict[str, Any]]:
        # Copies: what a player does to them stays with the player.
        messages, new = ([dict(message) for message in part] for part in (self._messages, new))
        chat = {"messages": messages, "new_messages": new, "observation": self._observation}
        return self._messages[-1]["content"], {**info, **chat}


def _as_format(chat_format: ChatFormat | Mapping[str, Any] | str, env: gymnasium.Env[Any, Any]) -> ChatFormat:
    if isinstance(chat_format, ChatFormat):
        return chat_format
    if isinstance(chat_format, str):
        return (description_of(env) or EnvSpec(name="", id="")).chat_format(chat_format)
    return ChatFormat.from_dict(chat_format)


def _asked(info: Mapping[str, Any]) -> dict[str, Any]:
    commands = info.get("admissible_commands") or info.get("available_actions") or []
    return {"goal": info.get("goal", "").strip(), "commands": commands}  # as the parts of a page are
