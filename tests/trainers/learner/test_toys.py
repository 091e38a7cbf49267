"""Methods, memories, wrappers, loggers and a backend from outside, each in one file, train by the same call."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import ConfigError
from tests.trainers.toy_extras import Kept
from tests.trainers.toys import GRADED, next_batches, timeless, toy_config
from trainers import TrainConfig, get_recipe, train
from trainers.tracking.progress import SilentProgress
from trainers.training import prepare

pytest.importorskip("trl", reason="needs the extra 'train'")


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
    records = updates(config, method="tests.trainers.toy_scheme:RECIPE", method_options={"fee": 0.5})
    # The second turn of the toy repeats the first observation's words or it does not; the figure is the scheme's own.
    assert all(0.0 <= record["repeated_observations"] <= 0.5 for record in records)
    assert get_recipe("tests.trainers.toy_scheme:RECIPE", fee=0.5).options["fee"] == 0.5


@pytest.mark.parametrize("form", ["conversation", "window:1"])
def test_a_teacher_scores_the_same_tokens_behind_another_prompt(config: TrainConfig, form: str) -> None:
    config = config.with_(form=form, method="tests.trainers.toy_loss:RECIPE", kl_coef=0.0)
    (apart, _) = updates(config)
    assert apart["teacher_gap"] > 1e-3
    assert set(apart["losses"]) == {"policy", "pull"}
    # Rollouts without the skill behind a prompt without it are what they were.
    (same, _) = updates(config, method_options={"prompt": "without_skill"}, run=f"{config.run}-same")
    assert same["teacher_gap"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(("room", "share"), [(96, 0.0), (1, 1.0)])
def test_a_teacher_that_lost_the_beginning_of_its_prompt_is_counted(
    config: TrainConfig, room: int, share: float
) -> None:
    with ExitStack() as stack:
        learner, _ = prepare(config.with_(method="sdar", kl_coef=0.0), SilentProgress(), stack)
    learner.setup.prompts.max_length = room
    for batch in next_batches(learner):
        learner.loss(batch, 1)
    assert learner.objective.take_log(learner.backend)["teacher_cut"] == share


def test_teachers_may_have_other_weights(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_loss:RECIPE", kl_coef=0.0, learning_rate=1e-2)
    runs = {
        weights: updates(config, method_options={"weights": weights}, run=f"{config.run}-{weights}")
        for weights in ("policy", "reference", "average")
    }
    # All three are the same until the weights have moved.
    first, second = ({round(run[i]["teacher_gap"], 7) for run in runs.values()} for i in (0, 1))
    assert (len(first), len(second)) == (1, 3)
    assert resumed(config, method_options={"weights": "average"}) == runs["average"]


def test_a_loss_owns_a_critic_that_is_trained_and_resumed(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_critic:RECIPE", learning_rate=1e-2, steps=3)
    records = updates(config)
    assert all(record["value_error"] > 0 for record in records)
    assert resumed(config) == records


def test_a_memory_shows_what_it_wrote_and_goes_on_with_it(config: TrainConfig) -> None:
    config = config.with_(method="tests.trainers.toy_memory:RECIPE", transcripts_every=1)
    records = updates(config)
    assert records[1]["diary_lines"] > records[0]["diary_lines"]
    played = read_jsonl(Path(config.run) / "transcripts" / "train-000002.jsonl")
    noted = [episode for episode in played if episode.skill.startswith("diary-")]
    assert noted
    for episode in noted:
        assert f"goal was {episode.goal}" in episode.skill_text
        assert episode.skill_text in episode.messages[0]["content"]
    assert all(not episode.skill_text for episode in played if not episode.condition)
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


@pytest.mark.parametrize("preset", ["half_skill_grpo", "opsd_jsd", "ppo"])
def test_shared_prefixes_train_alike_up_to_rounding(config: TrainConfig, preset: str) -> None:
    config = config.with_(method=preset, learning_rate=1e-3, group_size=4, kl_coef=0.0, **GRADED)
    apart = updates(config)
    shared = updates(config, share_prefixes=True, run=f"{config.run}-shared")
    assert apart[0]["grad_norm"] > 0
    for one, other in zip(apart, shared, strict=True):
        assert other["tokens_generated"] == one["tokens_generated"]
        assert other["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-3)
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-3, abs=1e-6)


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
