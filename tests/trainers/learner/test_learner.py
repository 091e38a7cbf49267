"""A learner: methods, memories, wrappers, loggers and a backend from outside train by the same call."""

import json
import math
import os
import shutil
import signal
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from tests.trainers.evaluation.test_reports import Player
from tests.trainers.test_train import Dies
from tests.trainers.toy_extras import Kept
from tests.trainers.toys import GRADED, TOY_ID, next_batches, start_learner, timeless
from trainers import TrainConfig, get_recipe, train
from trainers.advantages import Grpo, RolloutBatch

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.toys import batch_of, episode, trajectory
from trainers.engines.lockstep import LockstepEngine
from trainers.learner import Objective, make_objective
from trainers.learner.ahead import Ahead, Drawn, WeightsCopy, check_ahead
from trainers.learner.redrawing import check_redrawing, other_tasks, split_by_difference
from trainers.learner.setup import SharedMemory
from trainers.losses import ClippedPolicyGradient, Loss, LossInputs, TokenLoss
from trainers.losses.distillation import Relabelling
from trainers.memory import D2SkillMemory
from trainers.models import load_model
from trainers.recipes import recipe_in
from trainers.rollout.batches import TrainingRow, collate, make_training_rows, padding_row
from trainers.rollout.collect import SharedRollouts
from trainers.rollout.opening import TaskSplit
from trainers.rollout.policies import TokenPolicy
from trainers.training import run

Make = Callable[..., TrainConfig]
EXTRAS = "tests.trainers.toy_extras"


@pytest.fixture
def config(toy: Make) -> TrainConfig:
    return toy(steps=2, env_options={"turns": 2}, max_context=96, group_size=2)


def updates(config: TrainConfig, **changes: Any) -> list[dict[str, Any]]:
    result = train(config.with_(**changes))
    assert result.finished
    return timeless(record for record in result.metrics if record["event"] == "train")


def resumed(config: TrainConfig, **changes: Any) -> list[dict[str, Any]]:
    """The same run, killed in its second update and gone on with."""
    config = config.with_(run=f"{config.run}-killed", save_every=1, **changes)
    assert not train(config, progress=Dies(3, error=KeyboardInterrupt)).finished
    return updates(config)


def test_a_scheme_sees_observations_and_gives_one_value_per_token(config: TrainConfig) -> None:
    records = updates(config, method=f"{EXTRAS}:NOVELTY", method_options={"fee": 0.5})
    # The second turn of the toy repeats the first observation's words or it does not; the figure is the scheme's own.
    assert all(0.0 <= record["repeated_observations"] <= 0.5 for record in records)
    assert get_recipe(f"{EXTRAS}:NOVELTY", fee=0.5).options["fee"] == 0.5


@pytest.mark.parametrize("form", ["conversation", "window:1"])
def test_a_teacher_scores_the_same_tokens_behind_another_prompt(config: TrainConfig, form: str) -> None:
    config = config.with_(form=form, method=f"{EXTRAS}:PULL", kl_coef=0.0)
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
    objective = Objective((ClippedPolicyGradient(), Relabelling()), 0, exact_sampling=False)
    rows = rows_of(batch_of([episode(condition=1), episode(won=False)]))
    moved = replace(rows[0], weights={"relabelling": 1.0}, row=replace(rows[0].row, logprobs=[-9.0] * 5))
    for part in (rows, [*rows, moved]):
        log = log_of(objective, part)
        assert (log["engine_kl"], log["engine_capped"], log["entropy"]) == (0.0, 0.0, 0.5)


def rows_of(batch: RolloutBatch, **options: Any) -> list[TrainingRow]:
    return make_training_rows(batch.trajectories, [1.0, 1.0], range(2), "token", total=2, tokens=8, **options)


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
    figure: str = "size"
    coefficient: float = 1.0

    def __call__(self, inputs: LossInputs) -> TokenLoss:
        return TokenLoss(0.0 * inputs.logprobs, {self.figure: torch.full_like(inputs.logprobs, self.size)})


def test_figures_of_one_name_are_one_mean_and_none_where_nothing_was_counted() -> None:
    objective = Objective((Measuring("a", 1.0), Measuring("b", 4.0)), 0, exact_sampling=True)
    rows = rows_of(batch_of([episode(), episode()]), factors=[{"a": 1.0, "b": 1.0}, {"a": 1.0}])
    logs = [log_of(objective, part) for part in (rows, [padding_row()])]
    assert [(log["size"], log["entropy"], log["loss"]) for log in logs] == [(2.0, 0.5, 0.0), (None, None, 0.0)]


def test_a_figure_may_not_have_a_name_that_is_taken() -> None:
    objective = Objective((Measuring("a", 1.0, "tokens"),), 0, exact_sampling=True)
    with pytest.raises(ConfigError, match="The loss a logs 'tokens'"):
        log_of(objective, rows_of(batch_of([episode(), episode()]), factors=[{"a": 1.0}, {"a": 1.0}]))


def test_a_scheme_that_reads_the_reference_has_one_without_a_penalty(config: TrainConfig) -> None:
    reading = type("Reading", (Grpo,), {"inputs": frozenset({"ref_logprobs"})})()
    recipe = replace(get_recipe("grpo"), advantage=reading)
    assert make_objective(config.with_(kl_coef=0.0), recipe, 0).needs_reference


@pytest.mark.parametrize(
    ("method", "changes", "says"),
    [
        ("opsd", {"kl_coef": 0.5, "clip_high": 0.4}, "clip_high=0.4, kl_coef=0.5 has no effect"),
        ("raft", {"loss_type": "gspo"}, "ratio=sequence has no effect"),
        ("fixed_gate+forward_distillation", {}, "which is 0 with gate=0.5"),
        ("contrastive_relabelling", {"group_size": 1}, "every advantage is 0"),
        ("contrastive_relabelling", {"group_size": 2}, "group_size of at least 3"),
        ("skill_grpo+distraction", {"group_size": 4}, "shows fewer than two members"),
        ("skill_grpo+distraction", {"group_size": 8}, ""),
        ("raft", {"group_size": 1, "kl_coef": 0.0}, ""),
        ("ppo", {"group_size": 1, "kl_coef": 0.5}, ""),
    ],
)
def test_settings_without_effect_are_told(config: TrainConfig, method: str, changes: dict[str, Any], says: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        make_objective(config.with_(**changes), get_recipe(method), 0)
    assert [says in str(warning.message) for warning in told] == [True] * bool(says)


@pytest.mark.parametrize(("room", "share"), [(96, 0.0), (1, 1.0)])
def test_a_teacher_that_lost_the_beginning_of_its_prompt_is_counted(toy: Make, room: int, share: float) -> None:
    learner = start_learner(toy(method="sdar", kl_coef=0.0))
    learner.setup.prompts.max_length = room
    for batch in next_batches(learner):
        learner.loss(batch, 1)
    assert learner.objective.take_log(learner.backend)["teacher_cut"] == share


def test_teachers_may_have_other_weights(config: TrainConfig) -> None:
    config = config.with_(method=f"{EXTRAS}:PULL", kl_coef=0.0, learning_rate=1e-2)
    runs = {
        weights: updates(config, method_options={"weights": weights}, run=f"{config.run}-{weights}")
        for weights in ("policy", "reference", "average")
    }
    # All three are the same until the weights have moved.
    first, second = ({round(run[i]["teacher_gap"], 7) for run in runs.values()} for i in (0, 1))
    assert (len(first), len(second)) == (1, 3)
    assert resumed(config, method_options={"weights": "average"}) == runs["average"]


def test_a_loss_owns_a_critic_that_is_trained_and_resumed(config: TrainConfig) -> None:
    config = config.with_(method=f"{EXTRAS}:CRITIC", learning_rate=1e-2, steps=3)
    records = updates(config)
    assert all(record["value_error"] > 0 for record in records)
    assert resumed(config) == records


def test_a_memory_shows_what_it_wrote_and_goes_on_with_it(config: TrainConfig) -> None:
    config = config.with_(method=f"{EXTRAS}:DIARY", transcripts_every=1)
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


def test_a_validation_moves_the_curriculum_and_says_so(toy: Make) -> None:
    learner = start_learner(toy(method="skillc", group_size=4, steps=9), trains=False)
    helped, useless = ["echo/0", "echo/1"], ["other/0", "other/1"]
    learner.setup = replace(learner.setup, split=replace(learner.setup.split, panel=[*helped, *useless]))
    learner.shared = Player([*helped, "other/0"], useless)  # type: ignore[assignment]
    learner.validate()
    assert {kind: learner.method.n_plus(kind, 4) for kind in ("echo", "other")} == {"echo": 3, "other": 1}
    learner.update = 4  # the budget holds one skill by now
    learner.validate()
    assert learner.method.n_plus("other", 4) == 0
    lines = learner.setup.folder.metrics_path.read_text().splitlines()
    first, second = (json.loads(line) for line in lines[-2:])
    assert first["gap_smoothed"] == pytest.approx({"echo": 0.3, "other": -0.15})
    assert first["gate"]["echo"] > 0.5 > first["gate"]["other"]
    assert (first["active"], first["retired"]) == (["echo", "other"], [])
    assert (second["active"], [each["type"] for each in second["retired"]]) == (["echo"], ["other"])


def test_shaping_reaches_the_return_and_loggers_and_metrics_are_told(config: TrainConfig) -> None:
    told = {"metrics": (f"{EXTRAS}:mean_reward",), "report_to": (f"{EXTRAS}:Kept",)}
    records = updates(config, env_wrappers={f"{EXTRAS}:Allowance": {"amount": 3.0}}, returns="reward", **told)
    assert all(record["mean_reward"] >= 3.0 for record in records)
    assert all(record["success"] <= 1.0 for record in records)
    assert [record["event"] for record in Kept.records[:-1]] == ["validation", "train", "train", "validation"]
    assert Kept.records[-1] == "closed"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("taken_names", "entropy, tokens_generated, tokens_total"),
        ("no_figures", "got None"),
        ("unwritten", "written as JSON"),
    ],
)
def test_a_metric_that_says_nothing_of_its_own_is_refused(config: TrainConfig, name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"metrics={EXTRAS}:{name}: .*{says}"):
        updates(config, metrics=(f"{EXTRAS}:{name}",))


def test_another_backend_trains_the_same_method(config: TrainConfig) -> None:
    config = config.with_(kl_coef=0.1, **GRADED)
    names = ("loss", "success", "entropy", "kl", "tokens_generated", "grad_norm")
    by_trl = updates(config)
    assert all(record["grad_norm"] > 0 for record in by_trl)
    plain = updates(config, backend=f"{EXTRAS}:BACKEND", run=f"{config.run}-plain")
    for mine, trls in zip(plain, by_trl, strict=True):
        assert [mine[name] for name in names] == pytest.approx([trls[name] for name in names], rel=1e-3, abs=1e-5)


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
def test_shared_prefixes_and_drafts_train_alike_up_to_rounding(config, method, changes) -> None:
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


@pytest.fixture
def winning(toy: Make) -> Make:
    """Makes settings of which one draw in eight wins: some groups of four have differences, and most have none."""
    return lambda **changes: toy(engine="choosing", max_reply_tokens=8, method="grpo", kl_coef=0.0, **changes)


def test_groups_are_drawn_again_until_they_differ_or_the_bound_is_reached(winning: Make) -> None:
    plain, bounded = (start_learner(winning(redraw_groups=n)) for n in (0, 3))
    for update in range(1, 6):
        drawn = plain.draw(update)
        before, after = (learner.play(*drawn, update) for learner in (plain, bounded))
        groups = wins_by_group(after)
        assert {group for group, wins in wins_by_group(before).items() if len(set(wins)) == 2} <= set(groups)
        assert {(len(wins), len(set(wins))) for wins in groups.values()} == {(4, 2)}
        assert len({each.episode.task_id for each in after.trajectories}) == len(groups) <= 4
        _, advantages, figures = bounded.credit(after)
        assert np.asarray(advantages.values).all()
        # What was played in vain was generated, too, and says how often the policy wins.
        every = [*after.trajectories, *(each for each, _ in bounded._left_out)]
        assert figures["env_steps"] == len(after.trajectories) + 4 * figures["groups_left_out"]
        assert len(figures["tasks"]) == len(groups) + figures["groups_left_out"]
        assert figures["success"] == pytest.approx(np.mean([each.episode.won for each in every]))
        assert figures["prompt_tokens"] == sum(row.length - row.model_tokens for each in every for row in each.rows)


def test_other_tasks_are_different_ones_while_there_are_some() -> None:
    tasks = ("a0", "a1", *(f"b{i}" for i in range(6)))
    split = TaskSplit(tasks, (), {task: task[0] for task in tasks})
    config = TrainConfig(model="m", task_sampling="types")
    for step in range(9):
        for count, found in ((4, 4), (6, 6), (9, 6)):
            drawn = other_tasks(split, config, ["a0", "b0"], count, step)
            assert len(set(drawn)) == len(drawn) == found
            assert not {"a0", "b0"} & set(drawn)
    assert other_tasks(split, config, tasks, 2, 0) == []


def wins_by_group(batch: RolloutBatch) -> dict[int, list[bool]]:
    trajectories = batch.trajectories
    return {each.group: [e.episode.won for e in trajectories if e.group == each.group] for each in trajectories}


def test_a_run_with_redrawing_is_the_same_each_time_and_counts_what_it_played(winning: Make) -> None:
    config = winning(redraw_groups=2)
    whole, again = (run(each).metrics for each in (config, config.with_(run=f"{config.run}-again")))
    assert timeless(whole) == timeless(again)
    trained = [record for record in whole if record["event"] == "train"]
    assert any(record["groups_left_out"] for record in trained)
    assert trained[-1]["tokens_total"] == sum(record["tokens_generated"] for record in trained)


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        # These learn from all groups, an update that is compared as a whole among them.
        *((name, {}, "learns from those too") for name in ("contrastive_relabelling", "skillc", "raft", "evolver")),
        *((name, {}, "learns from those too") for name in ("ppo", "gigpo", "sdar", "opsd")),
        ("grpo", {"advantage": "csca"}, "learns from those too"),
        # These do not: penalty and entropy bonus regularise.
        *((name, {}, "") for name in ("grpo", "grpo+entropy", "rlsd")),
        ("grpo", {"advantage": "csca", "scope": "group"}, ""),
    ],
)
def test_methods_that_learn_from_all_groups_refuse_redrawing(method: str, options: dict[str, Any], says: str) -> None:
    config = TrainConfig(model="m", redraw_groups=1, kl_coef=0.1)
    with pytest.raises(ConfigError, match=says) if says else nullcontext():
        check_redrawing(config, get_recipe(method, **options))
    with pytest.raises(ConfigError, match="at least 2"):
        check_redrawing(config.with_(group_size=1), get_recipe(method, **options))


def test_two_groups_of_one_task_are_compared() -> None:
    played = [(replace(trajectory(episode("t", won=group == 0)), group=group), {}) for group in (0, 1)]
    assert split_by_difference(played, "won") == (played, [])


@pytest.mark.parametrize(
    ("preset", "grade", "shared"), [("d2skill", "full", False), ("skillc", "full", True), ("skillc", "none", False)]
)
def test_what_may_show_nothing_leaves_no_member_the_copy_of_another(preset, grade, shared, toy, monkeypatch) -> None:
    """As long as a bank is empty, both halves of d2skill's groups are asked the same."""
    seen: list[bool] = []
    collect = SharedRollouts.collect_own

    def recorded(self: SharedRollouts, *args: Any, **options: Any) -> Any:
        seen.append(options.get("shared_draws", True))
        return collect(self, *args, **options)

    monkeypatch.setattr(SharedRollouts, "collect_own", recorded)
    run(toy(method=preset, skill_grade=grade, steps=1))
    assert seen.count(False) == (not shared)  # validations stay paired
    assert len(seen) > 1


def writing(
    engine: Any, chat: Any = None, folder: Path | None = None, max_context: int = 64, bank: Any = None, **options: Any
) -> SharedMemory:
    """A memory for which the policy writes."""
    policy = TokenPolicy(engine, chat, max_reply_tokens=8, max_context=max_context)
    setup: Any = SimpleNamespace(
        rollouts=SimpleNamespace(policy=policy),
        config=SimpleNamespace(seed=0),
        folder=SimpleNamespace(path=folder),
        prompts=SimpleNamespace(library=None),
    )
    return SharedMemory(D2SkillMemory(writer="policy", bank=bank), setup, **options)


def test_a_bank_that_the_checkpoint_holds_need_not_be_there_any_more(tmp_path):
    gone = str(tmp_path / "gone.jsonl")
    with pytest.raises(MissingDataError, match="gone"):
        writing(MagicMock(), folder=tmp_path, bank=gone)
    assert not list(writing(MagicMock(), folder=tmp_path, bank=gone, resumed=True).memory.bank)


@pytest.mark.parametrize(("max_context", "asked"), [(10**6, 1), (100, 0)])
def test_a_question_that_leaves_no_room_is_a_bad_reply(max_context, asked, tmp_path):
    chat = SimpleNamespace(
        prompt=lambda messages: [0] * sum(len(message["content"]) for message in messages),
        reply_text=lambda ids: '{"skills": ["Heat it."]}',
    )
    engine = MagicMock()
    engine.generate.side_effect = lambda requests, sampling: [SimpleNamespace(token_ids=[1]) for _ in requests]
    memory = writing(engine, chat, tmp_path, max_context)
    poor = batch_of([*[episode(won=False, condition=1)] * 2, episode(won=True)])
    record = memory.observe(SimpleNamespace(num_processes=1), poor)
    calls, log = [call.args for call in engine.generate.call_args_list], record["memory"]
    assert all(sampling.greedy for _, sampling in calls)
    found = sum(len(requests) for requests, _ in calls), log["size"], log["bad_replies"]
    assert found == (asked, asked, 1 - asked)
    assert record.get("tokens_written", 0) == asked
    assert engine.reset.call_count == 2


def test_a_policy_that_cannot_be_asked_alone_is_refused_as_a_writer() -> None:
    with pytest.raises(ConfigError, match="vllm_tensor_parallel=1"):
        writing(LockstepEngine(None, None, print))


# The next update's groups are played in a process of their own, with weights one step behind.

NAMED = {"env": f"tests.trainers.toys:{TOY_ID}", "method": "grpo", "kl_coef": 0.0, **GRADED}
"""The other process finds an environment by its module."""
AHEAD = {"rollouts_ahead": True}


@pytest.fixture
def named(toy: Make) -> Make:
    return lambda **changes: toy(**{**NAMED, **changes})


def replies(found: TrainConfig, update: int) -> list[Any]:
    """What the rollouts of an update said."""
    lines = (Path(found.run_folder) / "transcripts" / f"train-{update:06d}.jsonl").read_text().splitlines()
    return [json.loads(line)["turns"] for line in lines]


@pytest.mark.parametrize("method", ["grpo", "static_withdrawal"])
def test_without_a_learning_rate_it_is_what_it_is_without_it(named: Make, method: str) -> None:
    asked = {"method": method, "learning_rate": 0.0}
    still, ahead = (run(named(**asked, rollouts_ahead=flag)).metrics for flag in (False, True))
    for one, other in zip(timeless(still), timeless(ahead), strict=True):
        assert other.pop("engine_kl", 0.0) == pytest.approx(0.0, abs=1e-5)
        other.pop("engine_capped", None)
        assert one.keys() == other.keys()
        assert all(other[name] == value for name, value in one.items() if isinstance(value, int | str))
        assert other.get("loss") == pytest.approx(one.get("loss"), abs=1e-6)
        assert other.get("grad_norm") == pytest.approx(one.get("grad_norm"), abs=1e-5)


def test_a_cut_that_ranks_the_types_waits_for_a_validation_that_is_due(toy: Make) -> None:
    learner = start_learner(toy(method="skill0", steps=9, validate_every=3), trains=False)
    withdrawn: list[int] = []
    learner.method.advance = withdrawn.append
    for done, drawn in [(2, 4), (3, 4), (3, 5), (5, 7)]:
        learner.update = done
        learner.draw(drawn)
    assert withdrawn == [3, 4, 6], "K(6) is 0, and ranks nothing"


def test_the_weights_that_play_are_one_step_behind(named: Make) -> None:
    """A step so long that every rollout tells which weights played it."""
    still, moved, ahead = named(learning_rate=0.0), named(learning_rate=0.05), named(learning_rate=0.05, **AHEAD)
    _, _, found = (run(each).metrics for each in (still, moved, ahead))
    assert replies(ahead, 1) == replies(still, 1) == replies(moved, 1)
    assert replies(ahead, 2) == replies(still, 2) != replies(moved, 2), "played before the first step"
    assert replies(ahead, 3) != replies(still, 3)
    mismatch = [record["engine_kl"] for record in found if record["event"] == "train"]
    assert mismatch[0] == pytest.approx(0.0, abs=1e-5)
    assert abs(mismatch[1]) > 1e-3


def test_an_interrupted_run_goes_on_exactly(named: Make) -> None:
    whole = named(save_every=1, keep_checkpoints=9, **AHEAD)
    metrics, folder = timeless(run(whole).metrics), Path(whole.run_folder)
    weights = (folder / "policy" / "model.safetensors").read_bytes()
    # Of the third one the weights that were playing are damaged: it is passed over, as any damaged checkpoint is.
    (folder / "checkpoints" / "step-000003" / "ahead.pt").write_bytes(b"nothing")
    for later in ("checkpoints/step-000004", "policy"):
        shutil.rmtree(folder / later)
    progress = Dies(99)
    assert timeless(run(whole, progress=progress).metrics) == metrics
    assert any("step-000003, which is damaged: ahead.pt" in note for note in progress.notes)
    assert (folder / "policy" / "model.safetensors").read_bytes() == weights


def test_the_process_that_plays_outlives_a_signal_to_stop_and_its_end_is_told(named: Make) -> None:
    # An environment that can be made only where no attention is planned for each shape.
    asked = named(**AHEAD, env_wrappers={f"{EXTRAS}:WithoutPlans": {}})
    ahead, drawn = Ahead(asked, WeightsCopy(load_model(asked), lambda: None)), Drawn(1, ("train/echo/red-0",), (0,))
    how: dict[str, Any] = {"group_size": 1, "seed": 0, "sampling": asked.sampling}
    ahead.begin(drawn, **how)
    first = ahead.collect()
    os.kill(ahead._process.pid, signal.SIGTERM)
    ahead.begin(drawn, **how)
    assert [each.rows for each in ahead.collect()] == [each.rows for each in first]
    # Its end before it has read what it is asked, and before it is asked at all.
    os.kill(ahead._process.pid, signal.SIGSTOP)
    ahead.begin(drawn, **how)
    ahead._process.kill()
    for step in (ahead.collect, lambda: ahead.begin(drawn, **how)):
        with pytest.raises(RuntimeError, match="exit code -9"):
            step()
    ahead.close()


def test_a_device_has_written_the_copy_before_another_process_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    model: Any = SimpleNamespace(parameters=lambda: [SimpleNamespace(is_cuda=True)])
    ahead: Any = Ahead(TrainConfig(model="m"), WeightsCopy(model, lambda: done.append("refreshed")))
    ahead._connection = SimpleNamespace(send=lambda _: done.append("asked"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("written"))
    ahead.begin(Drawn(1, (), ()))
    assert done == ["refreshed", "written", "asked"]


@pytest.mark.parametrize(
    ("changes", "processes", "why"),
    [
        ({"engine": "vllm"}, 1, "serves the weights that learn"),
        ({"redraw_groups": 1}, 1, "leave it out"),
        ({"method": "evolver"}, 1, "learns between updates"),
        ({}, 2, "2 processes train"),
    ],
)
def test_what_cannot_be_played_ahead_is_refused(named: Make, changes: Any, processes: int, why: str) -> None:
    asked = named(**AHEAD, **changes)
    with pytest.raises(ConfigError, match=why):
        check_ahead(asked, recipe_in(asked.env, asked.method, asked.method_options), processes)


def test_a_teacher_without_a_lesson_reads_what_the_student_reads(toy: Make) -> None:
    learner = start_learner(toy(method="opid+value", max_context=96))
    batch = learner.play(*learner.draw(1), 1)
    lost = RolloutBatch.from_trajectories(
        [replace(each, episode=replace(each.episode, won=False)) for each in batch.trajectories]
    )
    lost, advantages, _ = learner.credit(lost)
    rows, _ = learner.extra_rows(lost, advantages, 1)
    assert {bool(lost.condition[row.trajectory]) for row in rows} == {True, False}
    assert all(row.teachers["policy"].prompt_ids == row.row.prompt_ids for row in rows)
