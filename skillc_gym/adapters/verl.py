"""verl: an agent loop, by name ``skillc``, that plays one episode per row of the training set."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from uuid import uuid4

from skillc_gym.adapters.chat_env import ChatEnv
from skillc_gym.chat import Message, assistant
from skillc_gym.errors import ConfigError, needs_extra

with needs_extra("verl", "verl"):
    from verl.experimental.agent_loop.agent_loop import (
        AgentLoopBase,
        AgentLoopMetrics,
        AgentLoopOutput,
        _agent_loop_registry,
        register,
    )
    from verl.experimental.agent_loop.tool_agent_loop import SPEC_DECODE_EXTRA_KEYS


class SkillAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays an episode with verl's token-exact building of conversations; verl makes a loop for each.

    A row needs the columns of :meth:`~skillc_gym.adapters.EpisodeRequest.to_row` (and verl's own: ``raw_prompt``, which
    is not read, and ``agent_name``). ``reward_score`` is the episode's return; the record is in
    ``extra_fields["episode"]``, its numbers in ``extra_fields["reward_extra_info"]``. Besides verl's own it takes the
    arguments of :class:`~skillc_gym.adapters.ChatEnv`, those of the environment as ``env_kwargs``.
    """

    def __init__(
        self,
        *args: Any,
        env: str = "alfworld",
        env_kwargs: Mapping[str, Any] | None = None,
        library: str | None = None,
        chat: str = "default",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._chat = ChatEnv(env, library=library, chat=chat, **_plain(env_kwargs))
        self._room = int(self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Plays a row's episode; one that outgrows ``response_length`` ends and counts as truncated.

        Raises:
            ConfigError: The row lacks a column, or its prompt outgrows ``prompt_length``.
        """
        with closing(self._chat):
            return await self._play(sampling_params, row)

    async def _prompt(self, messages: list[Message]) -> list[int]:
        """The prompt's tokens; verl's own method drops the first ones of a long prompt."""
        build, limit = self.continuous_token_builder.build_initial_tokens, int(self.rollout_config.prompt_length)
        tokens: list[int] = await self.loop.run_in_executor(None, build, messages)
        if len(tokens) > limit:
            raise ConfigError(
                f"Expected a prompt of at most {limit} tokens (rollout.prompt_length), got {len(tokens)}: verl would "
                f"drop the first ones, and with them the skill. Set data.max_prompt_length={len(tokens)} or more"
            )
        return tokens

    async def _play(self, sampling_params: dict[str, Any], row: Mapping[str, Any]) -> AgentLoopOutput:
        messages = list(self._chat.begin(row))
        tokens = await self._prompt(messages)
        mask: list[int] = []
        logprobs: list[float] | None = None
        request_id, scores = uuid4().hex, []
        told: dict[str, Any] = {}
        while not self._chat.done:
            output = await self.server_manager.generate(
                request_id=request_id, prompt_ids=tokens, sampling_params=sampling_params
            )
            told = _together(told, output.extra_fields)
            logprobs = [] if logprobs is None and output.log_probs else logprobs
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                tokens, output.token_ids, mask, logprobs, assistant_logprobs=output.log_probs
            )
            tokens = merged.token_ids
            if len(mask) >= self._room:
                break
            reply = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
            step = self._chat.step(reply)
            scores.append(step.reward)
            before, messages = [*messages, assistant(reply)], [*messages, assistant(reply), *step.messages]
            if step.done:
                break
            merged, mask_, logprobs_ = await self.ct_merge_context_msg(before, messages, tokens, mask, logprobs)
            if len(mask_) >= self._room:
                break
            tokens, mask, logprobs = merged.token_ids, mask_, logprobs_
        self._chat.cut()
        told |= {"turn_scores": scores, "tool_rewards": []}
        return self._output(tokens, mask, logprobs, told)

    def _output(
        self, tokens: list[int], mask: list[int], logprobs: list[float] | None, told: dict[str, Any]
    ) -> AgentLoopOutput:
        record, numbers, prompt = self._chat.record(), self._chat.numbers(), len(tokens) - len(mask)
        return AgentLoopOutput(
            prompt_ids=tokens[:prompt],
            response_ids=tokens[prompt:][: self._room],
            response_mask=mask[: self._room],
            response_logprobs=logprobs[: self._room] if logprobs else None,
            reward_score=record["episode_return"],
            num_turns=2 * record["steps"] + 1,
            metrics=AgentLoopMetrics(),
            extra_fields={**told, "episode": record, "reward_extra_info": numbers},
        )


# verl reads agent_loops.yaml, with the loop's arguments, before it imports this file: they stay.
if "skillc" not in _agent_loop_registry:
    register("skillc")(SkillAgentLoop)


def _together(told: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """What servers say of an episode's replies, put together as verl's own loops do: its trainers read weights' age."""
    if not told:
        return dict(reply)
    sums = {key: told[key] + reply[key] for key in SPEC_DECODE_EXTRA_KEYS if key in told and key in reply}
    return {**told, **sums, "max_global_steps": reply.get("max_global_steps") or told.get("max_global_steps")}


def _plain(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Hydra's mappings and lists as Python's own."""
    from omegaconf import DictConfig, OmegaConf

    plain: dict[str, Any] = OmegaConf.to_container(values) if isinstance(values, DictConfig) else dict(values or {})
    return plain
