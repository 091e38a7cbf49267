"""Groups that are played, and how their rows become micro-batches."""

from contextlib import closing
from dataclasses import replace
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
from tests.trainers.engines.test_transformers import uncached_logprobs
from tests.trainers.toys import SECRET, ScriptedEngine, toy_config, toy_rollouts
from trainers.advantages import RolloutBatch
from trainers.advantages.per_step import Gigpo
from trainers.base import TokenRow, Trajectory
from trainers.engines import Engine, Generation, Request, Sampling
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


def toy(toy_folder: Path, engine: Any = None, **changes: Any) -> Any:
    """What plays groups of the toy; its tokenizer and its model."""
    config = toy_config(toy_folder, **{"env_options": {"turns": 3}, **changes})
    tokenizer, model = load_tokenizer(config), load_model(config)
    by = engine(tokenizer) if engine else TransformersEngine(model, [1])
    return toy_rollouts(config, tokenizer, by), tokenizer, model


def collect(rollouts: Any) -> list[Trajectory]:
    return rollouts.collect(TASKS, [2, 1, 0], 3, seed=5, sampling=Sampling())


def play(toy_folder: Path, engine: Any = None, **changes: Any) -> list[Trajectory]:
    rollouts, *_ = toy(toy_folder, engine, **changes)
    with closing(rollouts):
        return collect(rollouts)


def test_order_conditions_and_what_was_injected(toy_folder: Path) -> None:
    played = play(toy_folder, SCRIPTED)
    assert [r.episode.task_id for r in played] == [task for task in TASKS for _ in range(3)]
    assert [r.group for r in played] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [r.episode.condition for r in played] == [1, 1, 0, 1, 0, 0, 0, 0, 0]
    assert [r.episode.won for r in played] == [1, 1, 1, 1, 0, 0, 1, 1, 1]
    for episode in (rollout.episode for rollout in played):
        assert episode.skill_text in "\n".join(message["content"] for message in episode.messages)
        assert bool(episode.skill_text) == bool(episode.skill_sha256) == bool(episode.condition)


@pytest.mark.parametrize("changes", [{}, {"form": "window:2"}, {"thoughts": "drop"}])
def test_rows_are_exact_and_masks_cover_the_models_tokens_only(toy_folder: Path, changes: dict[str, str]) -> None:
    rollouts, tokenizer, model = toy(toy_folder, **changes)
    for rollout in collect(rollouts):
        replies = [turn.reply for turn in rollout.episode.turns]
        assert len(rollout.rows) == (len(replies) if changes else 1)
        own = [t for row in rollout.rows for t, m in zip(row.completion_ids, row.loss_mask, strict=True) if m]
        text = tokenizer.decode(own, skip_special_tokens=True)
        assert text.split() == " ".join(replies).split()
        assert rollout.model_tokens == len(own)
        for number, row in enumerate(rollout.rows):
            if "thoughts" in changes:  # each turn is a row behind what was seen of all earlier ones
                assert tokenizer.decode(row.completion_ids, skip_special_tokens=True).strip() == replies[number]
                assert sum(message["role"] == "assistant" for message in row.messages) == number
            every = uncached_logprobs(model, row.prompt_ids, Generation(row.completion_ids), 1.0)
            assert row.logprobs == pytest.approx((every * torch.tensor(row.loss_mask)).tolist(), abs=1e-4)


def test_what_the_model_read_is_the_chat_template_of_the_whole_episode(toy_folder: Path) -> None:
    rollouts, tokenizer, _ = toy(toy_folder, SCRIPTED)
    for rollout in collect(rollouts):
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
        return [(r.episode, [row.completion_ids for row in r.rows]) for r in play(toy_folder, engine, **changes)]

    streaming = OneAtATime(load_model(toy_config(toy_folder)), [1])
    assert said() == said(max_parallel=3) == said(lambda _: streaming, max_parallel=room)
    begun: set[Any] = set()
    for keys in streaming.under_way:
        begun |= keys
        assert len(keys) == room or len(begun) == len(TASKS) * 3  # full until nobody is left to begin


def test_groups_may_be_dealt_to_processes(toy_folder: Path) -> None:
    rollouts, *_ = toy(toy_folder)
    whole, environments = collect(rollouts), rollouts.vector(1, 3)
    part = rollouts.collect(TASKS[1:2], [1], 3, seed=5, sampling=Sampling(), numbers=[1])
    assert [r.episode for r in part] == [r.episode for r in whole[3:6]]
    # Fewer groups play in the environments of the most, and more close those of fewer.
    assert environments is rollouts.vector(3, 3)
    assert rollouts.vector(4, 3) is rollouts.vector(2, 3) is not environments


def test_what_an_interruption_leaves_half_begun_is_made_again(toy_folder: Path) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    rollouts, *_ = toy(toy_folder, partial(ScriptedEngine, interrupt))
    before = rollouts.vector(3, 3)
    with pytest.raises(KeyboardInterrupt):
        collect(rollouts)
    assert rollouts.vector(3, 3) is not before


class Asked(Engine):
    """Notes what it is asked; its replies end at once, and could not have been others if ``forced``."""

    def __init__(self, *, forced: bool = False) -> None:
        self.requests, self.allowed = list[Request](), [(1,)] * forced

    def generate(self, requests: Any, sampling: Any) -> Any:
        self.requests += requests
        return [Generation([1], [0.0], self.allowed) for _ in requests]


@pytest.mark.parametrize("form", ["conversation", "window:1"])
def test_an_episode_of_forced_replies_has_turns_without_own_tokens(toy_folder: Path, form: str) -> None:
    played = play(toy_folder, lambda _: Asked(forced=True), form=form)
    assert all(each.reply_lengths == (0,) * len(each.episode.turns) for each in played)
    advantages = Gigpo()(RolloutBatch.from_trajectories(played))
    assert all(len(own) == 0 for own in advantages.values)


def test_the_first_members_of_both_conditions_share_their_draws(toy_folder: Path) -> None:
    asked, turns = Asked(), dict[Any, list[int | None]]()
    play(toy_folder, lambda _: asked)
    for request in asked.requests:
        turns.setdefault(request.key, []).append(request.turn)
    assert set(map(tuple, turns.values())) == {(0, 1, 2)}
    first = [request.seed for request in asked.requests[:9]]
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
        played = play(toy_folder, SCRIPTED, max_context=limit)
        cut = [r for r in played if r.episode.truncated]
        assert cut or limit > 24
        assert {r.episode.cut for r in cut} <= {"context"}
        assert all(row.length <= limit for r in played for row in r.rows)
        assert all(r.episode.won == 0 and len(r.episode.turns) < 3 for r in cut)
        for group in (0, 1):
            assert len({len(r.episode.turns) for r in played if r.group == group}) == 1, limit


def test_replies_that_make_no_sense_cost_a_turn_and_nothing_else(toy_folder: Path) -> None:
    played = play(toy_folder, lambda tokenizer: ScriptedEngine(lambda prompt: "", tokenizer))
    assert all(len(r.episode.turns) == 3 and not r.episode.won for r in played)
    assert not any(turn.format_valid or turn.action_valid for r in played for turn in r.episode.turns)


def test_a_prompt_longer_than_the_context_gives_no_rows_and_no_room_at_all_is_refused(toy_folder: Path) -> None:
    played = play(toy_folder, SCRIPTED, max_context=6)
    assert all(r.rows == [] and r.episode.truncated and not r.episode.turns for r in played)
    with pytest.raises(ConfigError, match="must exceed max_reply_tokens"):
        play(toy_folder, max_context=4)


def trajectory(*rows: TokenRow) -> Trajectory:
    episode: Any = SimpleNamespace(task_type="heat")
    return Trajectory(episode, list(rows), 0)


def row(prompt: int, mask: list[int]) -> TokenRow:
    return TokenRow([2] * prompt, list(range(5, 5 + len(mask))), mask, [-0.5 * m for m in mask])


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
    rows, advantages = [row(p, m) for p, m in shapes], rng.normal(size=len(shapes)).tolist()
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
    both = [trajectory(*long), trajectory(*short)]
    weighted = make_training_rows(both, [1.0, 1.0], [0, 1], "trajectory", total=2, tokens=6)
    shares = {i: sum(w.weights["policy"] * w.row.model_tokens for w in weighted if w.trajectory == i) for i in (0, 1)}
    assert shares == pytest.approx({0: 0.5, 1: 0.5})
    assert {w.weights["policy"] for w in weighted if w.trajectory == 0} == {1 / 8}


def test_values_per_token_are_cut_at_the_rows_and_lie_where_the_tokens_do() -> None:
    played = trajectory(row(4, [1, 0, 1]), row(2, [1]))
    weighted = make_training_rows([played], [np.array([1.0, 2.0, 3.0])], [0], "trajectory", total=1, tokens=3)
    assert [w.advantages.tolist() for w in weighted] == [[1.0, 2.0], [3.0]]
    tensors = collate(weighted, 0, torch.device("cpu"))
    assert tensors.tokens.input_ids.tolist() == [[2, 2, 2, 2, 5, 6, 7], [2, 2, 5, 0, 0, 0, 0]]
    assert tensors.tokens.mask.tolist() == [[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]]
    assert tensors.figures["sampling_logprobs"].tolist() == [[0, 0, -0.5, 0, -0.5], [-0.5, 0, 0, 0, 0]]
    assert tensors.advantages.tolist() == [[0, 0, 1, 0, 2], [3, 0, 0, 0, 0]]


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


def of_tokens(ids: list[int], number: int) -> TrainingRow:
    return TrainingRow(TokenRow(ids[:1], ids[1:], [1] * len(ids[1:]), []), np.zeros(1), {"policy": 1.0}, number)


def test_rows_with_and_without_allowed_tokens_do_not_mix() -> None:
    chosen = TokenRow([1], [2, 3], [1, 1], [0.0] * 2, allowed=((2,), (3,)))
    limited, free = (TrainingRow(each, np.zeros(2), {}, 0) for each in (chosen, replace(chosen, allowed=())))
    assert collate([limited], 0, torch.device("cpu")).tokens.allowed is not None
    with pytest.raises(ConfigError, match="2 entries for 4 own tokens"):
        collate([limited, free], 0, torch.device("cpu"))


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
