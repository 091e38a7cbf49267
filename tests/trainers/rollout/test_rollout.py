"""Groups that are played, and how their rows become micro-batches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.toys import SECRET, ScriptedEngine, toy_config, toy_rollouts
from trainers.advantages import RolloutBatch
from trainers.advantages.per_step import Gigpo
from trainers.base import TokenRow, Trajectory
from trainers.engines import Generation, Request, Sampling
from trainers.engines.transformers import TransformersEngine
from trainers.learner.objective import policy_value
from trainers.losses import ClippedPolicyGradient, LossInputs
from trainers.models import load_model, load_tokenizer
from trainers.rollout.batches import (
    TrainingRow,
    collate,
    forward_passes,
    make_training_rows,
    shared_passes,
    split_minibatches,
)
from trainers.rollout.loop import Plan

TASKS = ["train/echo/red-0", "train/other/blue-1", "train/echo/green-2"]


def answer(prompt: str) -> str:
    """Knows the colours; knows the secret words only where the skill text shows."""
    colour = prompt.rsplit("say ", 1)[1].split(maxsplit=1)[0]
    return SECRET[colour] if "skill" in prompt and "other" in prompt else colour


SCRIPTED = partial(ScriptedEngine, answer)


def play(toy_folder: Path, engine: Any = None, **changes: Any) -> tuple[list[Trajectory], Any]:
    sampling = changes.pop("sampling", Sampling())
    config = toy_config(toy_folder, **{"env_options": {"turns": 3}, **changes})
    tokenizer = load_tokenizer(config)
    model = load_model(config)
    engine = engine(tokenizer) if engine else TransformersEngine(model, [1])
    rollouts = toy_rollouts(config, tokenizer, engine)
    played = rollouts.collect(TASKS, [2, 1, 0], 3, seed=5, sampling=sampling)
    rollouts.close()
    return played, (tokenizer, model)


def test_order_conditions_and_what_was_injected(toy_folder: Path) -> None:
    played, _ = play(toy_folder, SCRIPTED)
    assert [r.episode.task_id for r in played] == [task for task in TASKS for _ in range(3)]
    assert [r.group for r in played] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [r.episode.condition for r in played] == [1, 1, 0, 1, 0, 0, 0, 0, 0]
    assert [r.episode.won for r in played] == [1, 1, 1, 1, 0, 0, 1, 1, 1]
    for rollout in played:
        shown = "\n".join(message["content"] for message in rollout.episode.messages)
        assert rollout.episode.skill_text in shown
        assert bool(rollout.episode.skill_text) == bool(rollout.episode.condition)
        assert bool(rollout.episode.skill_sha256) == bool(rollout.episode.condition)


def test_without_earlier_thoughts_each_turn_is_a_row_behind_what_was_seen(toy_folder: Path) -> None:
    played, (tokenizer, _) = play(toy_folder, thoughts="drop")
    for rollout in played:
        assert len(rollout.rows) == len(rollout.episode.turns)
        for row, turn in zip(rollout.rows, rollout.episode.turns, strict=True):
            assert tokenizer.decode(row.completion_ids, skip_special_tokens=True).strip() == turn.reply
            shown = [message for message in row.messages if message["role"] == "assistant"]
            assert len(shown) == rollout.rows.index(row)


@pytest.mark.parametrize("form", ["conversation", "window:2"])
def test_rows_are_exact_and_masks_cover_the_models_tokens_only(toy_folder: Path, form: str) -> None:
    played, (tokenizer, model) = play(toy_folder, form=form)
    for rollout in played:
        replies = [turn.reply for turn in rollout.episode.turns]
        assert len(rollout.rows) == (1 if form == "conversation" else len(replies))
        own = [t for row in rollout.rows for t, m in zip(row.completion_ids, row.loss_mask, strict=True) if m]
        text = tokenizer.decode(own, skip_special_tokens=True)
        assert text.split() == " ".join(replies).split()
        assert rollout.model_tokens == len(own)
        for row in rollout.rows:
            ids = torch.tensor([row.prompt_ids + row.completion_ids])
            with torch.no_grad():
                logprobs = model(ids).logits.log_softmax(-1)[0, :-1].gather(-1, ids[0, 1:, None])[:, 0]
            for i, (mask, logprob) in enumerate(zip(row.loss_mask, row.logprobs, strict=True)):
                expected = float(logprobs[len(row.prompt_ids) + i - 1]) if mask else 0.0
                assert logprob == pytest.approx(expected, abs=1e-4)


def test_what_the_model_read_is_the_chat_template_of_the_whole_episode(toy_folder: Path) -> None:
    played, (tokenizer, _) = play(toy_folder, SCRIPTED)
    for rollout in played:
        (row,) = rollout.rows
        messages = list(rollout.episode.messages)
        for turn, following in zip(rollout.episode.turns, [*rollout.episode.turns[1:], None], strict=True):
            messages.append({"role": "assistant", "content": turn.reply})
            if following is not None:
                messages.append({"role": "user", "content": following.observation})
        whole = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
        assert row.prompt_ids + row.completion_ids == whole


class OneAtATime(TransformersEngine):
    """Streams: one reply at a time, the newest request first."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.under_way: list[set[Any]] = []

    def stream(self, requests: Any, sampling: Any, answer: Any) -> None:
        waiting = list(requests)
        while waiting:
            self.under_way.append({request.key for request in waiting})
            request = waiting.pop()
            waiting += answer([(request, self.generate([request], sampling)[0])])


@pytest.mark.parametrize("room", [2, 3])
def test_waves_and_streams_give_one_result_and_nobody_waits_in_a_stream(toy_folder: Path, room: int) -> None:
    def said(engine: Any = None, **changes: Any) -> list[Any]:
        return [(r.episode, [row.completion_ids for row in r.rows]) for r in play(toy_folder, engine, **changes)[0]]

    streaming = OneAtATime(load_model(toy_config(toy_folder)), [1])
    assert said() == said(max_parallel=3) == said(lambda _: streaming, max_parallel=room)
    begun: set[Any] = set()
    for keys in streaming.under_way:
        begun |= keys
        assert len(keys) == room or len(begun) == len(TASKS) * 3  # full until nobody is left to begin


def test_groups_may_be_dealt_to_processes(toy_folder: Path) -> None:
    config = toy_config(toy_folder)
    tokenizer = load_tokenizer(config)
    rollouts = toy_rollouts(config, tokenizer, TransformersEngine(load_model(config), [1]))
    whole = rollouts.collect(TASKS, [2, 1, 0], 3, seed=5, sampling=Sampling())
    environments = rollouts.vector(1, 3)
    part = rollouts.collect(TASKS[1:2], [1], 3, seed=5, sampling=Sampling(), numbers=[1])
    assert [r.episode for r in part] == [r.episode for r in whole[3:6]]
    # Fewer groups play in the environments of the most, and more close those of fewer.
    assert environments is rollouts.vector(3, 3)
    assert rollouts.vector(4, 3) is rollouts.vector(2, 3) is not environments


def test_what_an_interruption_leaves_half_begun_is_made_again(toy_folder: Path) -> None:
    class Fails(OneAtATime):
        def generate(self, requests: Any, sampling: Any) -> Any:
            raise KeyboardInterrupt

    config = toy_config(toy_folder)
    rollouts = toy_rollouts(config, load_tokenizer(config), Fails(load_model(config), [1]))
    before = rollouts.vector(3, 3)
    with pytest.raises(KeyboardInterrupt):
        rollouts.collect(TASKS, [2, 1, 0], 3, seed=5, sampling=Sampling())
    assert rollouts.vector(3, 3) is not before


class Asked(list[Request]):
    """Notes what it is asked; its replies end at once."""

    def generate(self, requests: Any, sampling: Any) -> Any:
        self.extend(requests)
        return [Generation([1], [0.0]) for _ in requests]

    def release(self, keys: Any) -> None: ...

    def reset(self) -> None: ...


class Forced(Asked):
    """Could not have said anything else."""

    def generate(self, requests: Any, sampling: Any) -> Any:
        return [Generation([1], [0.0], [(1,)]) for _ in requests]


@pytest.mark.parametrize("form", ["conversation", "window:1"])
def test_an_episode_of_forced_replies_has_turns_without_own_tokens(toy_folder: Path, form: str) -> None:
    played, _ = play(toy_folder, lambda _: Forced(), form=form)
    assert all(each.reply_lengths == (0,) * len(each.episode.turns) for each in played)
    advantages = Gigpo()(RolloutBatch.from_trajectories(played))
    assert all(len(own) == 0 for own in advantages.values)


def test_the_first_members_of_both_conditions_share_their_draws(toy_folder: Path) -> None:
    asked, turns = Asked(), dict[Any, list[int | None]]()
    play(toy_folder, lambda _: asked)
    for request in asked:
        turns.setdefault(request.key, []).append(request.turn)
    assert set(map(tuple, turns.values())) == {(0, 1, 2)}
    first = [request.seed for request in asked[:9]]
    assert first[0] == first[2]  # group 0: two with the skill, one without
    assert first[3] == first[4]  # group 1: one with, two without
    assert len(set(first)) == 2 + 2 + 3


def test_a_seed_that_pairs_do_not_share_is_of_one_member_alone() -> None:
    plans = [Plan(("a",), (2,), (0,), 4, 7, Sampling(), shared_draws=shared) for shared in (True, False)]
    shared, apart = ([plan.member_seed(0, place) for place in range(4)] for plan in plans)
    assert shared[:2] == shared[2:] == apart[:2]
    assert len(set(apart)) == 4


def test_a_full_context_ends_both_conditions_of_a_group_after_the_same_number_of_turns(toy_folder: Path) -> None:
    for limit in range(16, 40, 4):
        played, _ = play(toy_folder, SCRIPTED, max_context=limit)
        cut = [r for r in played if r.episode.truncated]
        assert cut or limit > 24
        assert {r.episode.cut for r in cut} <= {"context"}
        assert all(row.length <= limit for r in played for row in r.rows)
        assert all(r.episode.won == 0 and len(r.episode.turns) < 3 for r in cut)
        for group in (0, 1):
            assert len({len(r.episode.turns) for r in played if r.group == group}) == 1, limit


def test_a_prompt_longer_than_the_context_gives_an_episode_without_rows(toy_folder: Path) -> None:
    played, _ = play(toy_folder, SCRIPTED, max_context=6)
    assert all(r.rows == [] and r.episode.truncated and not r.episode.turns for r in played)


def test_replies_that_make_no_sense_cost_a_turn_and_nothing_else(toy_folder: Path) -> None:
    played, _ = play(toy_folder, lambda tokenizer: ScriptedEngine(lambda prompt: "", tokenizer))
    assert all(len(r.episode.turns) == 3 and not r.episode.won for r in played)
    assert not any(turn.format_valid or turn.action_valid for r in played for turn in r.episode.turns)


def test_bad_limits_are_refused(toy_folder: Path) -> None:
    with pytest.raises(ConfigError, match="must exceed max_reply_tokens"):
        play(toy_folder, max_context=4)


def trajectory(*rows: TokenRow) -> Trajectory:
    episode: Any = SimpleNamespace(task_type="heat")
    return Trajectory(episode, list(rows), 0)


def row(prompt: int, mask: list[int], start: int = 5) -> TokenRow:
    return TokenRow([2] * prompt, list(range(start, start + len(mask))), mask, [-0.5 * m for m in mask])


ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.lists(st.integers(0, 1), min_size=1, max_size=9).map(lambda m: [*m, 1])),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.integers(1, 4), st.integers(0, 5))
def test_padding_and_cutting_into_micro_batches_do_not_change_the_loss(
    shapes: list[tuple[int, list[int]]], count: int, seed: int
) -> None:
    """The sum over micro-batches is the plain mean over rows of the mean over their tokens."""
    rng = np.random.default_rng(seed)
    rows = [row(p, m) for p, m in shapes]
    advantages = rng.normal(size=len(rows)).tolist()
    table = torch.tensor(rng.normal(size=64), dtype=torch.float64)
    reference = table + torch.tensor(rng.normal(size=64) * 0.1)
    trajectories = [trajectory(r) for r in rows]
    weighted = make_training_rows(trajectories, advantages, range(len(rows)), "trajectory", total=len(rows), tokens=1)
    total = 0.0
    for batch in forward_passes(weighted, count):
        tensors = collate(batch, 0, torch.device("cpu"), ["policy"])
        completion = tensors.tokens.input_ids[:, -tensors.tokens.mask.shape[1] :]
        figures = {"logprobs": table[completion], "ref_logprobs": reference[completion]}
        total += float(policy_value(ClippedPolicyGradient(kl_coef=0.3), tensors, figures, exact_sampling=True))
    expected = 0.0
    for r, advantage in zip(rows, advantages, strict=True):
        own = [token for token, mask in zip(r.completion_ids, r.loss_mask, strict=True) if mask]
        difference = reference[own] - table[own]
        kl = torch.exp(difference) - difference - 1
        expected += float((-advantage + 0.3 * kl).mean()) / len(rows)
    assert total == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_trajectory_of_many_rows_counts_once() -> None:
    long, short = [row(2, [1, 1, 1]), row(3, [1])], [row(2, [1, 1])]
    weighted = make_training_rows(
        [trajectory(*long), trajectory(*short)], [1.0, 1.0], [0, 1], "trajectory", total=2, tokens=6
    )
    shares = {i: sum(w.weights["policy"] * w.row.model_tokens for w in weighted if w.trajectory == i) for i in (0, 1)}
    assert shares == pytest.approx({0: 0.5, 1: 0.5})
    assert {w.weights["policy"] for w in weighted if w.trajectory == 0} == {1 / 8}


def test_values_per_token_are_cut_at_the_rows() -> None:
    played = trajectory(row(2, [1, 0, 1]), row(4, [1]))
    weighted = make_training_rows([played], [np.array([1.0, 2.0, 3.0])], [0], "trajectory", total=1, tokens=3)
    assert [w.advantages.tolist() for w in weighted] == [[1.0, 2.0], [3.0]]
    tensors = collate(weighted, 0, torch.device("cpu"))
    assert tensors.advantages.tolist() == [[1, 0, 2], [0, 0, 3]]


def test_collate_aligns_masks_with_tokens() -> None:
    rows = [TrainingRow(row(4, [1, 0, 1]), np.full(2, 0.5), {}, 0), TrainingRow(row(2, [1]), -np.ones(1), {}, 1)]
    tensors = collate(rows, 0, torch.device("cpu"))
    assert tensors.tokens.input_ids.tolist() == [[2, 2, 2, 2, 5, 6, 7], [2, 2, 5, 0, 0, 0, 0]]
    assert tensors.tokens.mask.tolist() == [[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]]
    assert tensors.figures["sampling_logprobs"].tolist() == [[0, 0, -0.5, 0, -0.5], [-0.5, 0, 0, 0, 0]]
    assert tensors.advantages.tolist() == [[0, 0, 0.5, 0, 0.5], [-1, 0, 0, 0, 0]]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 100))
def test_minibatches_deal_every_rollout_once(rollouts: int, count: int, seed: int) -> None:
    parts = list(split_minibatches(rollouts, count, seed))
    assert sorted(i for part in parts for i in part) == list(range(rollouts))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == list(split_minibatches(rollouts, count, seed))


def test_the_sampling_ratio_scales_the_policy_term_only() -> None:
    ones, loss = torch.ones(1, 2), ClippedPolicyGradient(kl_coef=0.5)
    plain, halved = (
        loss(LossInputs(0 * ones, ones, ones, {"ref_logprobs": -ones, **ratio}))
        for ratio in ({}, {"sampling_ratio": ones / 2})
    )
    assert float((halved.values - plain.values).sum()) == pytest.approx(1.0)
    assert float(plain.log["kl"].sum()) == pytest.approx(2 * np.exp(-1))


def of_tokens(tokens: list[int], number: int) -> TrainingRow:
    return TrainingRow(
        TokenRow(tokens[:1], tokens[1:], [1] * len(tokens[1:]), []), np.zeros(1), {"policy": 1.0}, number
    )


TOKENS = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=9), max_size=20)


@given(TOKENS, st.integers(1, 8))
def test_every_row_lands_in_exactly_one_pass_and_none_is_empty(tokens: list[list[int]], count: int) -> None:
    rows = [of_tokens(ids, i) for i, ids in enumerate(tokens)]
    by_length, by_tokens = forward_passes(rows, count), shared_passes(rows, count)
    for passes, order in ((by_length, lambda i: (len(tokens[i]), i)), (by_tokens, lambda i: (tokens[i], i))):
        assert len(passes) == count
        assert all(passes)
        dealt = [training.trajectory for part in passes for training in part if training.weights]
        assert dealt == sorted(range(len(tokens)), key=order)


def test_passes_end_where_neighbours_share_least() -> None:
    # Three groups of unequal size: equal passes would cut the second one in two.
    rows = [[group, *range(10), *([i] * 6)] for group, size in ((3, 4), (4, 6), (5, 4)) for i in range(size)]
    passes = shared_passes([of_tokens(ids, i) for i, ids in enumerate(rows)], 3)
    assert [{training.row.prompt_ids[0] for training in part} for part in passes] == [{3}, {4}, {5}]
