"""What a machine without GPUs fakes of verl's run: weights and servers. An external module of verl, after the page's.

All else is verl's: its command, Ray's processes, TransferQueue, the data set, agent loops, updates' order, metrics.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transfer_queue
from scripted import expert_reply
from tensordict import TensorDict
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.workers.rollout.replica import TokenOutput


class Servers:
    """Decodes the prompt, asks the expert, and answers as verl's client does, by newer weights each time."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.step = tokenizer, 2

    async def generate(self, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> TokenOutput:
        assert "temperature" in sampling_params
        turns = self.tokenizer.decode(prompt_ids).split("<|im_start|>")[1:-1]
        chat = [turn.split("<|im_end|>")[0].partition("\n") for turn in turns]
        reply = expert_reply([{"role": role, "content": said} for role, _, said in chat])
        tokens = [*self.tokenizer.encode(reply), self.tokenizer.eos_token_id]
        self.step += 1
        steps = dict.fromkeys(("global_steps", "min_global_steps", "max_global_steps"), self.step)
        told = {**steps, "num_cached_tokens": None, "spec_num_draft_tokens": 5}
        return TokenOutput(token_ids=tokens, log_probs=[-0.5] * len(tokens), stop_reason="completed", extra_fields=told)


class Faked(TRAINER_REGISTRY["sync"]):
    """The page's trainer, that of the command, without weights; it writes down what it would learn from."""

    def _setup(self) -> None:
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        self.global_steps = 0
        self.checkpoint_manager = SimpleNamespace(update_weights=lambda *_: None, sleep_replicas=lambda: None)
        self.actor_rollout_wg = SimpleNamespace(_dispatch_info={"actor": [0]})
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        self.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 1)

    def get_llm_client(self) -> Servers:
        return Servers(self.tokenizer)

    def _compute_old_log_prob(self, batch: Any, metrics: dict[str, Any]) -> Any:
        where = {"keys": batch.keys, "partition_id": batch.partition_id}
        told = transfer_queue.kv_batch_get(**where, select_fields=["rollout_log_probs"])
        fields = TensorDict({"old_log_probs": told["rollout_log_probs"]}, len(batch))
        return transfer_queue.kv_batch_put(**where, fields=fields)

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        data = transfer_queue.kv_batch_get(
            keys=batch.keys,
            partition_id=batch.partition_id,
            select_fields=["advantages", "response_mask", "extra_fields"],
        )
        columns = list(data["extra_fields"]), data["advantages"].unbind(), data["response_mask"].unbind()
        episodes = [
            {**told["episode"], "advantage": float(values[mask.bool()].mean())}
            for told, values, mask in zip(*columns, strict=True)
        ]
        update = {"episodes": episodes, "contrast": {name: metrics[name] for name in metrics if "contrast" in name}}
        with Path(os.environ["LEARNED"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(update) + "\n")
        return batch


if "LEARNED" in os.environ:
    TRAINER_REGISTRY["sync"] = Faked
