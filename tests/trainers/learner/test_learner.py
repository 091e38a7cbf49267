"""A learner: methods, memories, wrappers, loggers and a backend from outside train by the same call."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import ConfigError
from tests.trainers.toy_extras import Kept
from tests.trainers.toys import GRADED, next_batches, start_learner, timeless, toy_config
from trainers import TrainConfig, get_recipe, train
from trainers.advantages import Grpo
from trainers.tracking.progress import SilentProgress

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.rollouts_of import batch_of, episode
from trainers.engines.lockstep import LockstepEngine
from trainers.learner import Learner, Objective, make_objective
from trainers.learner.redrawing import check_redrawing
from trainers.learner.setup import SharedMemory
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, TokenLoss
from trainers.losses.distillation import Relabelling
from trainers.memory import D2SkillMemory
from trainers.rollout.batches import TrainingRow, collate, make_training_rows, padding_row
from trainers.rollout.collect import SharedRollouts
from trainers.rollout.policies import TokenPolicy
from trainers.training import run


@pytest.fixture
def config(toy_folder: Path, tmp_path: Path) -> TrainConfig:
    return toy_config(
        toy_folder, run=str(tmp_path / "run"), steps=2, env_options={"turns": 2}, max_context=96, group_size=2
    )


def updates(config: TrainConfig, **changes: Any) -> list[dict[str, Any]]:
    result = train(config.with_(**changes))
    assert result.finished
    return timeless(record for record in result.metrics if record["event"] == "train")


def resumed(config: TrainConfig, **changes: Any) -> list[dict[str, Any]]:
    """The same run, killed in its second update and gone on with."""
    config = config.with_(run=f"{config.run}-killed", save_every=1, **changes)

    class Dies(SilentProgress):
        def record(self, record: Any) -> None:
            if record["step"] == 2:
                raise KeyboardInterrupt

    assert not train(config, progress=Dies()).finished
    return updates(config)


def test_a_scheme_sees_observations_and_gives_one_value_per_token(config: TrainConfig) -> None:
    records = updates(config, method="tests.trainers.toy_methods:NOVELTY", method_options={"fee": 0.5})
    # The second turn of the toy repeats the first observation's words or it does not; the figure is the scheme's own.
    assert all(0.0 <= record["repeated_observations"] <= 0.5 for record in records)
    assert get_recipe("tests.trainers.toy_methods:NOVELTY", fee=0.5).options["fee"] == 0.5


@pytest.mark.parametrize("form", ["conversation", "window:1"])
def test_a_teacher_scores_the_same_tokens_behind_another_prompt(config: TrainConfig, form: str) -> None:
    config = config.with_(form=form, method="tests.trainers.toy_methods:PULL", kl_coef=0.0)
    (apart, _) = updates(config)
    assert apart["teacher_gap"] > 1e-3
    assert set(apart["losses"]) == {"policy", "pull"}
    # Rollouts without the skill behind a prompt without it are what they were.
    (same, _) = updates(config, method_options={"prompt": "without_skill"}, run=f"{config.run}-same")
    assert same["teacher_gap"] == pytest.approx(0.0, abs=1e-5)


def test_losses_are_means_over_the_optimiser_steps_as_their_sum_is(config: TrainConfig) -> None:
    for record in updates(config.with_(method="sdar", num_minibatches=2, **GRADED)):
        assert record["loss"] == pytest.approx(
            record["losses"]["policy"] + 0.01 * record["losses"]["distillation"], rel=1e-4
        )


def test_what_is_imitated_behind_another_prompt_says_nothing_of_the_engine() -> None:
    batch = batch_of([episode(condition=1), episode(won=False)])
    objective = Objective((ClippedPolicyGradient(), Relabelling()), 0, exact_sampling=False)
    rows = make_training_rows(batch.trajectories, [1.0, 1.0], range(2), "token", total=2, tokens=8)
    moved = replace(rows[0], weights={"relabelling": 1.0}, row=replace(rows[0].row, logprobs=[-9.0] * 5))
    for part in (rows, [*rows, moved]):
        log = log_of(objective, part)
        assert (log["engine_kl"], log["engine_capped"], log["entropy"]) == (0.0, 0.0, 0.5)


def log_of(objective: Any, rows: list[TrainingRow]) -> dict[str, Any]:
    """What an objective says of some rows whose log-probabilities are those that were drawn with, at least -0.5."""
    batch = collate(rows, 0, torch.device("cpu"), [loss.name for loss in objective.losses])
    drawn = batch.figures["sampling_logprobs"]
    objective(None, batch, {"logprobs": drawn.clamp(min=-0.5), "entropies": -drawn}, 1)
    return objective.take_log(SimpleNamespace(all_reduce_sum=lambda figures: figures))


@dataclass(frozen=True)
class Measuring(Loss):
    """Costs nothing and logs a number under a name that another loss may have, too."""

    name: str
    size: float
    coefficient: float = 1.0

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        return TokenLoss(0.0 * inputs.logprobs, {"size": torch.full_like(inputs.logprobs, self.size)})


def test_figures_of_one_name_are_one_mean_and_none_where_nothing_was_counted() -> None:
    objective = Objective((Measuring("a", 1.0), Measuring("b", 4.0)), 0, exact_sampling=True)
    trajectories = batch_of([episode(), episode()]).trajectories
    acting = [{"a": 1.0, "b": 1.0}, {"a": 1.0}]
    rows = make_training_rows(trajectories, [1.0, 1.0], range(2), "token", total=2, tokens=8, factors=acting)
    logs = [log_of(objective, part) for part in (rows, [padding_row()])]
    assert [(log["size"], log["entropy"], log["loss"]) for log in logs] == [(2.0, 0.5, 0.0), (None, None, 0.0)]


@dataclass(frozen=True)
class NearReference(Grpo):
    """Reads how likely the starting policy found each token."""

    name: ClassVar[str] = "near_reference"
    inputs: ClassVar[frozenset[str]] = frozenset({"ref_logprobs"})


def test_a_scheme_that_reads_the_reference_has_one_without_a_penalty(config: TrainConfig) -> None:
    recipe = replace(get_recipe("grpo"), advantage=NearReference())
    assert make_objective(config.with_(kl_coef=0.0), recipe, 0).needs_reference


@pytest.mark.parametrize(
    ("method", "changes", "says"),
    [
        ("opsd", {"kl_coef": 0.5, "clip_high": 0.4}, "clip_high=0.4, kl_coef=0.5 has no effect"),
        ("raft", {"loss_type": "gspo"}, "ratio=sequence has no effect"),
        ("fixed_gate+forward_distillation", {}, "which is 0 with gate=0.5"),
        ("contrastive_relabelling", {"group_size": 1}, "every advantage is 0"),
        ("raft", {"group_size": 1, "kl_coef": 0.0}, ""),
        ("ppo", {"group_size": 1, "kl_coef": 0.5}, ""),
    ],
)
def test_settings_without_effect_are_told(config: TrainConfig, method: str, changes: dict[str, Any], says: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        make_objective(config.with_(**changes), get_recipe(method), 0)
    assert [says in str(warning.message) for warning in told] == [True] * bool(says)


@pytest.mark.parametrize(("room", "share"), [(96, 0.0), (1, 1.0)])
def test_a_teacher_that_lost_the_beginning_of_its_prompt_is_counted(
    config: TrainConfig, room: int, share: float
) -> None:
    learner = start_learner(config.with_(method="sdar", kl_coef=0.0))
    learner.setup.prompts.max_length = room
    for batch in next_batches(learner):
        learner.loss(batch, 1)
    assert learner.objective.take_log(learner.backend)["teacher_cut"] == share


def test_teachers_may_have_other_weights(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_methods:PULL", kl_coef=0.0, learning_rate=1e-2)
    runs = {
        weights: updates(config, method_options={"weights": weights}, run=f"{config.run}-{weights}")
        for weights in ("policy", "reference", "average")
    }
    # All three are the same until the weights have moved.
    first, second = ({round(run[i]["teacher_gap"], 7) for run in runs.values()} for i in (0, 1))
    assert (len(first), len(second)) == (1, 3)
    assert resumed(config, method_options={"weights": "average"}) == runs["average"]


def test_a_loss_owns_a_critic_that_is_trained_and_resumed(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_methods:CRITIC", learning_rate=1e-2, steps=3)
    records = updates(config)
    assert all(record["value_error"] > 0 for record in records)
    assert resumed(config) == records


def test_a_memory_shows_what_it_wrote_and_goes_on_with_it(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_methods:DIARY", transcripts_every=1)
    records = updates(config)
    assert records[1]["diary_lines"] > records[0]["diary_lines"]
    played = read_jsonl(Path(config.run) / "transcripts" / "train-000002.jsonl")
    noted = [each for each in played if each.skill.startswith("diary-")]
    assert noted
    for each in noted:
        assert f"goal was {each.goal}" in each.skill_text
        assert each.skill_text in each.messages[0]["content"]
    assert all(not each.skill_text for each in played if not each.condition)
    assert resumed(config) == records


def test_shaping_reaches_the_return_and_loggers_and_metrics_are_told(config: TrainConfig) -> None:
    here = "tests.trainers.toy_extras"
    records = updates(
        config,
        env_wrappers={f"{here}:Allowance": {"amount": 3.0}},
        returns="reward",
        metrics=(f"{here}:mean_reward",),
        report_to=(f"{here}:Kept",),
    )
    assert all(record["mean_reward"] >= 3.0 for record in records)
    assert all(record["success"] <= 1.0 for record in records)
    assert [record["event"] for record in Kept.records[:-1]] == ["validation", "train", "train", "validation"]
    assert Kept.records[-1] == "closed"


def test_another_backend_trains_the_same_method(config: TrainConfig) -> None:
    config = config.with_(kl_coef=0.1, **GRADED)
    by_trl = updates(config)
    assert all(record["grad_norm"] > 0 for record in by_trl)
    plain = updates(config, backend="tests.trainers.plain_backend:BACKEND", run=f"{config.run}-plain")
    for name in ("loss", "success", "entropy", "kl", "tokens_generated", "grad_norm"):
        assert [record[name] for record in plain] == pytest.approx(
            [record[name] for record in by_trl], rel=1e-3, abs=1e-5
        )


def test_what_the_policy_writes_counts_toward_the_budget(config: TrainConfig) -> None:
    config = config.with_(method="retroagent", method_options={"writer": "policy"}, max_context=1024, budget_tokens=1)
    (record,) = updates(config)
    assert record["tokens_written"] > 0
    assert record["tokens_total"] == record["tokens_generated"] + record["tokens_written"]


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        *((method, {"share_prefixes": True}) for method in ("half_skill_grpo", "opsd_jsd", "ppo")),
        ("half_skill_grpo", {"engine_options": {"draft_tokens": 3}}),
        ("half_skill_grpo", {"engine_options": {"draft_tokens": 3}, "share_prefixes": True}),
    ],
)
def test_shared_prefixes_and_drafts_train_alike_up_to_rounding(
    config: TrainConfig, method: str, changes: dict[str, Any]
) -> None:
    # Replies of so low a temperature are often as drafted.
    temperature = 0.3 if "engine_options" in changes else 1.0
    config = config.with_(method=method, temperature=temperature, group_size=4, kl_coef=0.0, **GRADED)
    plain, other = updates(config), updates(config, run=f"{config.run}-other", **changes)
    assert plain[0]["grad_norm"] > 0
    for one, again in zip(plain, other, strict=True):
        assert again["tokens_generated"] == one["tokens_generated"]
        assert again["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-3)
        assert again["loss"] == pytest.approx(one["loss"], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("preset", ["ppo", "opsd_jsd", "skillc+forward_distillation"])
def test_passes_may_have_no_rows(config: TrainConfig, preset: str, share: bool) -> None:
    config = config.with_(method=preset, micro_batches=64, share_prefixes=share, learning_rate=1e-3, **GRADED)
    assert all(math.isfinite(record["loss"]) for record in updates(config))


def test_sharing_is_refused_where_it_cannot_be_exact(config: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="lora_dropout=0"):
        config.with_(share_prefixes=True, lora_rank=2, lora_dropout=0.1)
    with pytest.raises(ConfigError, match="attention=sdpa"):
        config.with_(share_prefixes=True, attention="flash_attention_2")


def started(folder: Path, run_folder: Path, **changes: Any) -> Learner:
    # One draw in eight wins: some groups of four have differences, and most have none.
    settings = {"engine": "choosing", "max_reply_tokens": 8, "method": "grpo", "kl_coef": 0.0, **changes}
    return start_learner(toy_config(folder, run=str(run_folder), **settings))


def test_groups_are_drawn_again_until_they_differ_or_the_bound_is_reached(toy_folder: Path, tmp_path: Path) -> None:
    plain, bounded = (started(toy_folder, tmp_path / str(n), redraw_groups=n) for n in (0, 3))
    for update in range(1, 6):
        drawn = plain.draw(update)
        before, after = plain.play(*drawn, update), bounded.play(*drawn, update)
        wins = {group: {e.episode.won for e in before.trajectories if e.group == group} for group in range(4)}
        kept = {group for group, seen in wins.items() if len(seen) == 2}
        groups = Counter(each.group for each in after.trajectories)
        assert kept <= set(groups)
        assert set(groups.values()) == {4}
        assert len(groups) <= 4
        for group in groups:
            assert len({e.episode.won for e in after.trajectories if e.group == group}) == 2
        assert len({e.episode.task_id for e in after.trajectories}) == len(groups)
        _, advantages, figures = bounded.credit(after)
        assert np.asarray(advantages.values).all()
        # What was played in vain was generated, too, and says how often the policy wins.
        assert figures["env_steps"] == len(after.trajectories) + 4 * figures["groups_left_out"]
        assert len(figures["tasks"]) == len(groups) + figures["groups_left_out"]
        every = [*after.trajectories, *(each for each, _ in bounded._left_out)]
        assert figures["success"] == pytest.approx(np.mean([each.episode.won for each in every]))
        assert figures["prompt_tokens"] == sum(row.length - row.model_tokens for each in every for row in each.rows)


def test_a_run_with_redrawing_is_the_same_each_time_and_counts_what_it_played(toy_folder: Path, tmp_path: Path) -> None:
    settings = {"method": "grpo", "engine": "choosing", "max_reply_tokens": 8, "kl_coef": 0.0, "redraw_groups": 2}
    whole = run(toy_config(toy_folder, run=str(tmp_path / "whole"), **settings)).metrics
    again = run(toy_config(toy_folder, run=str(tmp_path / "again"), **settings)).metrics

    assert timeless(whole) == timeless(again)
    trained = [record for record in whole if record["event"] == "train"]
    assert any(record["groups_left_out"] for record in trained)
    assert trained[-1]["tokens_total"] == sum(record["tokens_generated"] for record in trained)


@pytest.mark.parametrize("method", ["contrastive_relabelling", "skillc", "raft", "evolver", "ppo", "sdar", "opsd"])
def test_methods_that_learn_from_all_groups_refuse_it(method: str) -> None:
    with pytest.raises(ConfigError, match="learns from those too"):
        check_redrawing(TrainConfig(model="m", redraw_groups=1), get_recipe(method))


def test_groups_that_cannot_differ_refuse_it_and_regularisers_do_not(toy_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        started(toy_folder, tmp_path, redraw_groups=1, group_size=1)
    for method in ("gigpo", "grpo+entropy", "rlsd"):
        check_redrawing(TrainConfig(model="m", redraw_groups=1, kl_coef=0.1), get_recipe(method))


class Recording:
    """An engine that answers every request alike."""

    def __init__(self) -> None:
        self.requests = []
        self.resets = 0

    def generate(self, requests, sampling):
        assert sampling.greedy
        self.requests += requests
        return [SimpleNamespace(token_ids=[1]) for _ in requests]

    def release(self, keys):
        pass

    def reset(self):
        self.resets += 1


@pytest.mark.parametrize(
    ("preset", "grade", "shared"), [("d2skill", "full", False), ("skillc", "full", True), ("skillc", "none", False)]
)
def test_what_may_show_nothing_leaves_no_member_the_copy_of_another(
    preset: str, grade: Any, shared: bool, toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a bank is empty, both halves of d2skill's groups are asked the same."""
    seen: list[bool] = []
    collect = SharedRollouts.collect_own

    def recorded(self: SharedRollouts, *args: Any, **options: Any) -> Any:
        seen.append(options.get("shared_draws", True))
        return collect(self, *args, **options)

    monkeypatch.setattr(SharedRollouts, "collect_own", recorded)
    run(toy_config(toy_folder, method=preset, skill_grade=grade, steps=1, run=str(tmp_path)))
    assert seen.count(False) == (not shared)  # validations stay paired
    assert len(seen) > 1


@pytest.mark.parametrize(("max_context", "asked"), [(10**6, 1), (100, 0)])
def test_a_question_that_leaves_no_room_is_a_bad_reply(max_context, asked, tmp_path):
    chat = SimpleNamespace(
        prompt=lambda messages: [0] * sum(len(message["content"]) for message in messages),
        reply_text=lambda ids: '{"skills": ["Heat it."]}',
    )
    engine = Recording()
    policy = TokenPolicy(engine, chat, max_reply_tokens=8, max_context=max_context)
    rollouts = SimpleNamespace(policy=policy)
    setup = SimpleNamespace(
        rollouts=rollouts,
        config=SimpleNamespace(seed=0),
        folder=SimpleNamespace(path=tmp_path),
        prompts=SimpleNamespace(library=None),
    )
    memory = SharedMemory(D2SkillMemory(writer="policy"), setup)
    poor = batch_of([episode(won=False, condition=1), episode(won=True)])
    record = memory.observe(SimpleNamespace(num_processes=1), poor)
    log = record["memory"]
    assert (len(engine.requests), log["size"], log["bad_replies"]) == (asked, asked, 1 - asked)
    assert record.get("tokens_written", 0) == asked
    assert engine.resets == 2


def test_a_policy_that_cannot_be_asked_alone_is_refused_as_a_writer() -> None:
    policy = TokenPolicy(LockstepEngine(None, None, print), None, max_reply_tokens=8, max_context=64)
    setup = SimpleNamespace(rollouts=SimpleNamespace(policy=policy), config=SimpleNamespace(seed=0))
    with pytest.raises(ConfigError, match="vllm_tensor_parallel=1"):
        SharedMemory(D2SkillMemory(writer="policy"), setup)
