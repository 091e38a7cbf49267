"""verl: the registered agent loop plays rows with a fake server manager, which writes replies as tokens."""

import asyncio

import pytest
from byte_tokenizers import byte_tokenizer
from scripted import ENV_KWARGS, check_record, expert_reply, pairs, run_blocks

pytest.importorskip("verl", reason="needs the verl extra, in an environment of its own: make test-adapters")

import hydra
from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, _agent_loop_registry
from verl.workers.rollout.replica import TokenOutput

import skillc_gym.adapters.verl  # noqa: F401 - registers the loop

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(TEMPLATE, ["<|im_start|>", "<|im_end|>"])


class FakeServers:
    """Decodes the prompt, asks the expert, and answers as verl's client does, by newer weights each time."""

    def __init__(self, tokenizer):
        self.tokenizer, self.step = tokenizer, 2

    async def generate(self, *, request_id, prompt_ids, sampling_params, **_):
        assert sampling_params == {"temperature": 0.5}
        turns = self.tokenizer.decode(prompt_ids).split("<|im_start|>")[1:-1]
        chat = [turn.split("<|im_end|>")[0].partition("\n") for turn in turns]
        reply = expert_reply([{"role": role, "content": said} for role, _, said in chat])
        tokens = [*self.tokenizer.encode(reply), self.tokenizer.eos_token_id]
        self.step += 1
        steps = dict.fromkeys(("global_steps", "min_global_steps", "max_global_steps"), self.step)
        told = {**steps, "num_cached_tokens": None, "spec_num_draft_tokens": 5}
        return TokenOutput(token_ids=tokens, log_probs=[-0.5] * len(tokens), stop_reason="completed", extra_fields=told)


def play(tokenizer, row, response_length=20_000):
    rollout = {"prompt_length": 20_000, "response_length": response_length}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})

    async def run():
        loop = hydra.utils.instantiate(
            {**_agent_loop_registry["skillc"], "env": "alfworld", "env_kwargs": ENV_KWARGS},
            trainer_config=DictConfigWrap(config=config),
            server_manager=FakeServers(tokenizer),
            tokenizer=tokenizer,
            processor=None,
            hf_model_type="qwen2",
            dataset_cls=None,
            data_config=DictConfigWrap(config.data),
        )
        return await loop.run({"temperature": 0.5}, raw_prompt=[], **row)

    return asyncio.run(run())


def test_pairs_and_provenance_survive_the_round_trip(tokenizer):
    for request in pairs(seed=2):
        output = play(tokenizer, request.to_row())
        check_record(output.extra_fields["episode"], request)
        numbers = output.extra_fields["reward_extra_info"]
        assert output.reward_score == numbers["condition"] == numbers["won"] == request.condition
        assert ("Skill:" in tokenizer.decode(output.prompt_ids)) == bool(request.condition)


def test_verls_trainers_are_told_by_which_weights_replies_came(tokenizer):
    told = play(tokenizer, pairs()[0].to_row()).extra_fields
    steps = told["episode"]["steps"]
    assert (told["min_global_steps"], told["max_global_steps"]) == (3, 2 + steps)
    assert told["spec_num_draft_tokens"] == 5 * steps
    assert (len(told["turn_scores"]), told["tool_rewards"]) == (steps, [])


def test_only_replies_are_trained_on(tokenizer):
    output = play(tokenizer, pairs()[0].to_row())
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    trained = [token for token, kept in zip(output.response_ids, output.response_mask, strict=True) if kept]
    replies = tokenizer.decode(trained).split("<|im_end|>")[:-1]
    assert len(replies) == output.extra_fields["episode"]["steps"]
    assert all(reply.startswith("<think>") and reply.endswith("</action>") for reply in replies)
    told = [p for p, kept in zip(output.response_logprobs, output.response_mask, strict=True) if kept]
    assert set(told) == {-0.5}


@pytest.mark.parametrize("room", [10, 60, 400])
def test_an_episode_without_room_is_truncated(tokenizer, room):
    output = play(tokenizer, pairs()[0].to_row(), response_length=room)
    assert len(output.response_ids) == len(output.response_mask) <= room
    assert output.extra_fields["episode"]["truncated"]
    assert output.reward_score == 0.0


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_blocks("verl.md")
    assert names["table"]["condition"].tolist() == [1, 0] * 4
    assert OmegaConf.load(tmp_path / "agent_loops.yaml")[0]["_target_"] == "skillc_gym.adapters.verl.SkillAgentLoop"
