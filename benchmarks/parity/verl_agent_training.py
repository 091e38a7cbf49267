"""Stands in for ``python3`` in a fork's training script: everything runs but the model, up to the actor's first update.

The script prepares its data with ``-m examples.data_preprocess.prepare`` (a download, made here) and trains with
``-m verl.trainer.main_ppo``: that module's own task, trainer, collector, managers and advantages run in this process,
with a model whose replies are drawn from the commands that the prompt lists. It ends where weights would change, and
writes what was played to ``$RECORD``. With ``$PAIRED`` the lines of the documentation for paired advantages go first.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import runpy
import sys
import time
import types
from pathlib import Path
from typing import Any

HOME = Path(os.environ["HOME"])
DATA = HOME / "data/verl-agent/text"
MODEL = HOME / "model"
OVERRIDES = (f"actor_rollout_ref.model.path={MODEL}", "trainer.logger=[console]")


class Finished(Exception):  # noqa: N818 - nothing went wrong
    """The first update is asked for."""


def prepare(words: list[str]) -> None:
    """Writes rows that say no more than the fork's do: how many there are, and that they are text."""
    pandas: Any = importlib.import_module("pandas")
    sizes = {name: int(words[words.index(f"--{name}_data_size") + 1]) for name in ("train", "val")}
    DATA.mkdir(parents=True, exist_ok=True)
    for name, split in (("train", "train"), ("val", "test")):
        rows = [
            {
                "data_source": "text",
                "prompt": [{"role": "user", "content": ""}],
                "ability": "agent",
                "extra_info": {"split": split, "index": index},
            }
            for index in range(sizes[name])
        ]
        pandas.DataFrame(rows).to_parquet(DATA / f"{split}.parquet")
    make_tokenizer()


def make_tokenizer() -> None:
    """Makes a model's folder without weights: a lossless tokenizer that knows the prompts' words, and a type."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = [path.read_text("utf-8") for path in Path("agent_system/environments/prompts").glob("*.py")]
    core.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, initial_alphabet=alphabet))
    core.add_special_tokens([AddedToken(name, special=True) for name in ("<|im_start|>", "<|im_end|>")])
    template = (
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    ends = {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "chat_template": template}
    PreTrainedTokenizerFast(tokenizer_object=core, **ends).save_pretrained(MODEL)
    (MODEL / "config.json").write_text(json.dumps({"model_type": "qwen2"}), encoding="utf-8")


class StandInModel:
    """What a worker group answers, without weights."""

    world_size = 2

    def __init__(self, tokenizer: Any, response_length: int) -> None:
        self.tokenizer, self.response_length = tokenizer, response_length
        self.draw, self.calls, self.replies = random.Random(0), 0, 0

    def generate_sequences(self, prompts: Any) -> Any:
        """A well-formed reply to each prompt, with a command that the prompt lists."""
        import torch
        from verl import DataProto

        self.calls += 1
        rows = []
        for chat in prompts.non_tensor_batch["raw_prompt"]:
            listed = re.findall(r"'([^'\n]+)'(?:\n|\])", chat[0]["content"].rpartition("situation are: [")[2])
            reply = f"<think>Why not.</think><action>{self.draw.choice(listed)}</action>"
            rows.append([*self.tokenizer.encode(reply, add_special_tokens=False), self.tokenizer.eos_token_id])
        self.replies += len(rows)
        responses = torch.full((len(rows), self.response_length), self.tokenizer.pad_token_id)
        said = torch.zeros_like(responses)
        for place, row in enumerate(rows):
            responses[place, : len(row)], said[place, : len(row)] = torch.tensor(row), 1
        given = prompts.batch
        whole = {
            "prompts": given["input_ids"],
            "responses": responses,
            "input_ids": torch.cat([given["input_ids"], responses], 1),
            "attention_mask": torch.cat([given["attention_mask"], said], 1),
            "position_ids": torch.cat([given["position_ids"], given["position_ids"][:, -1:] + said.cumsum(1)], 1),
        }
        return DataProto.from_single_dict(whole)

    def compute_log_prob(self, batch: Any) -> Any:
        """Zeros of the right shape."""
        return self._zeros(batch, "old_log_probs", "entropys")

    def compute_ref_log_prob(self, batch: Any) -> Any:
        """Zeros of the right shape."""
        return self._zeros(batch, "ref_log_prob")

    def _zeros(self, batch: Any, *names: str) -> Any:
        import torch
        from verl import DataProto

        shape = batch.batch["responses"].shape
        return DataProto.from_single_dict({name: torch.zeros(shape) for name in names})

    def update_actor(self, batch: Any) -> None:
        """Ends the run, with what the update would have got."""
        raise Finished(batch)


def train(words: list[str]) -> None:
    """Runs the fork's task."""
    workers: Any = types.ModuleType("verl.workers.fsdp_workers")
    names = ("ActorRolloutRefWorker", "AsyncActorRolloutRefWorker", "CriticWorker", "RewardModelWorker")
    workers.__dict__.update({name: type(name, (), {}) for name in names})
    engine: Any = types.ModuleType("verl.utils.vllm_utils")
    engine.is_version_ge = lambda **_: True
    sys.modules |= {module.__name__: module for module in (workers, engine)}
    if os.environ.get("PAIRED"):
        runpy.run_path(os.environ["PAIRED"])
    from verl.trainer import main_ppo

    hydra: Any = importlib.import_module("hydra")

    began = time.perf_counter()
    task = main_ppo.TaskRunner.__ray_metadata__.modified_class()
    seen: dict[str, Any] = {}

    class Trainer(main_ppo.RayPPOTrainer):  # type: ignore[misc]  # the fork's own
        def init_workers(self) -> None:
            seen["trainer"], seen["built"] = self, time.perf_counter() - began
            model = StandInModel(self.tokenizer, self.config.data.max_response_length)
            self.actor_rollout_wg = self.ref_policy_wg = seen["model"] = model

    main_ppo.RayPPOTrainer = Trainer
    with hydra.initialize_config_dir(str(Path("verl/trainer/config").resolve()), version_base=None):
        config = hydra.compose("ppo_trainer", [*words, *OVERRIDES])
    try:
        task.run(config)
    except Finished as finished:
        write(finished.args[0], seen, config)


def write(batch: Any, seen: dict[str, Any], config: Any) -> None:
    """Writes what was played, and that advantages were made of it."""
    trainer, advantages = seen["trainer"], batch.batch["advantages"]
    record = {
        "estimator": str(config.algorithm.adv_estimator),
        "vector": type(trainer.envs.envs).__module__,
        "training_members": trainer.envs.envs.num_processes,
        "validation_members": trainer.val_envs.envs.num_processes,
        "turns": seen["model"].calls,
        "replies": seen["model"].replies,
        "rows": len(batch),
        "rows_with_advantage": int((advantages != 0).any(1).sum()),
        "seconds_to_build": round(seen["built"], 1),
    }
    if "episode" in batch.non_tensor_batch:
        record["conditions"] = sorted({row["condition"] for row in batch.non_tensor_batch["episode"]})
    Path(os.environ["RECORD"]).write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, "")
    module, *rest = sys.argv[2:]
    {"examples.data_preprocess.prepare": prepare, "verl.trainer.main_ppo": train}[module](rest)
