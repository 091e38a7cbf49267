"""tinker-cookbook: a pickled group of two and two is played to its end by tinker-cookbook's own loop."""

import asyncio
import pickle
from contextlib import nullcontext

import pytest
from scripted import MAKE, check_record, expert_reply, run_blocks

pytest.importorskip(
    "tinker_cookbook", reason="needs the tinker extra, in an environment of its own: make test-adapters"
)

import tinker
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.renderers.base import ParseTermination, Renderer
from tinker_cookbook.rl import rollouts
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollout_strategy import MinViableGroup, RetryOnFailure, rollout_strategy_from_config
from tinker_cookbook.rl.rollouts import do_group_rollout

from skillc_gym.adapters import ChatEnv
from skillc_gym.adapters.tinker import ChatMessageEnv, PairedDataset, PairedGroupBuilder, RetryMember
from skillc_gym.errors import ConfigError


class Letters(Renderer):
    """A renderer whose tokens are code points, so that no tokenizer is needed."""

    def __init__(self):
        pass

    def __reduce__(self):
        return Letters, ()

    has_extension_property = True

    def get_stop_sequences(self):
        return [0]

    def render_message(self, message, ctx):
        raise NotImplementedError

    def build_generation_prompt(self, messages, **_):
        text = "".join(f"{message['role']}\1{message['content']}\0" for message in messages)
        return tinker.ModelInput.from_ints([ord(letter) for letter in text])

    def parse_response(self, response):
        text = "".join(map(chr, response))
        ended = ParseTermination.STOP_SEQUENCE if text.endswith("\0") else ParseTermination.MALFORMED
        return {"role": "assistant", "content": text.rstrip("\0")}, ended


class Scripted(TokenCompleter):
    """Reads the chat back from the tokens and replies as the expert; the first so many replies have no end token.

    The first so many samplings without a skill in the prompt fail or, where ``hangs`` says so, never end.
    """

    def __init__(self, broken=0, failing=0, hangs=False):
        self.broken, self.failing, self.hangs = broken, failing, hangs

    async def __call__(self, model_input, stop, *, max_tokens=None):
        text = "".join(map(chr, model_input.to_ints()))
        if "Skill:" not in text and self.failing:
            self.failing -= 1
            if self.hangs:
                await asyncio.Event().wait()
            raise ConnectionError("the server is away")
        turns = [turn.partition("\1") for turn in text.split("\0")[:-1]]
        reply = expert_reply([{"role": role, "content": said} for role, _, said in turns])
        self.broken -= 1
        reply += "" if self.broken >= 0 else "\0"
        return TokensWithLogprobs(tokens=[ord(letter) for letter in reply], maybe_logprobs=[0.0] * len(reply))


def builder(**kwargs) -> PairedGroupBuilder:
    dataset = PairedDataset(MAKE, Letters(), MAKE().task_ids[:2], batch_size=1, group_size=4, seed=6, **kwargs)
    assert len(dataset) == 2
    return pickle.loads(pickle.dumps(dataset.get_batch(1)[0]))


def rollout(built: PairedGroupBuilder, broken: int = 0, strategy=None, **failures):
    return asyncio.run(do_group_rollout(built, Scripted(broken, **failures), strategy))


def counted(monkeypatch) -> dict[str, list[int]]:
    """Which environments are made and closed from now on, by their ids."""
    counts, make, close = {"made": [], "closed": []}, ChatEnv.__init__, ChatEnv.close

    def made(env, *args, **kwargs):
        make(env, *args, **kwargs)
        counts["made"].append(id(env))

    monkeypatch.setattr(ChatEnv, "__init__", made)
    monkeypatch.setattr(ChatEnv, "close", lambda env: (counts["closed"].append(id(env)), close(env)))
    return counts


def test_pairs_and_provenance_survive_the_round_trip():
    built = builder()
    group = rollout(built)
    assert [request.condition for request in built.requests] == [1, 1, 0, 0]
    assert group.get_total_rewards() == [1.0, 1.0, 0.0, 0.0]
    assert [trajectory.stop_reason for trajectory in group.trajectories_G] == ["completed"] * 2 + ["max_turns"] * 2
    for request, trajectory, metrics in zip(built.requests, group.trajectories_G, group.metrics_G, strict=True):
        assert request.group_id == 1
        assert metrics["condition"] == metrics["won"] == metrics["terminated"] == request.condition
        assert ("won_with" in metrics, "won_without" in metrics) == (bool(request.condition), not request.condition)
        check_record(trajectory.transitions[-1].logs, request)
    assert len({request.seed for request in built.requests}) == 1


def test_a_broken_reply_ends_the_episode_truncated_and_earns_nothing():
    group = rollout(builder(), broken=4)
    assert group.get_total_rewards() == [0.0] * 4
    assert [metrics["truncated"] for metrics in group.metrics_G] == [1.0] * 4
    assert [trajectory.transitions[-1].logs["condition"] for trajectory in group.trajectories_G] == [1, 1, 0, 0]


def test_metrics_count_the_episodes_that_tinker_cookbook_ends():
    told = compute_trajectory_metrics([rollout(builder(), broken=1)], [["skillc"]])
    assert (told["env/all/won"], told["env/all/won_with"], told["env/all/truncated"]) == (0.25, 0.5, 0.75)


@pytest.mark.parametrize(
    ("strategy", "failures"),
    [(RetryMember(), {}), (RetryMember(per_rollout_timeout=3), {"hangs": True})],
    ids=["fails", "hangs"],
)
def test_a_failed_member_is_played_again_as_the_same_one(strategy, failures):
    strategy = rollout_strategy_from_config(pickle.loads(pickle.dumps(strategy)))
    group = rollout(builder(), strategy=strategy, failing=2, **failures)
    assert [trajectory.transitions[-1].logs["condition"] for trajectory in group.trajectories_G] == [1, 1, 0, 0]
    assert group.get_total_rewards() == [1.0, 1.0, 0.0, 0.0]
    kinds = [error.error_type for error in group.rollout_errors]
    assert kinds == ["TimeoutError" if failures else "ConnectionError"] * 2


def test_a_group_of_other_conditions_than_its_builder_asks_for_is_refused():
    assert rollout(builder(), strategy=MinViableGroup(max_retries=0), failing=1).get_total_rewards() == [1.0, 1.0, 0.0]
    for strategy in (RetryOnFailure(), MinViableGroup(min_successful=4)):
        with pytest.raises(ConfigError, match=r"2 with the skill and 2 without, got 4 and 0: .*RetryMember"):
            rollout(builder(), strategy=strategy, failing=2)
    with pytest.raises(ConfigError, match="got 2 and 0"):
        rollout(builder(), strategy=MinViableGroup(min_successful=2, max_retries=0), failing=2)


@pytest.mark.parametrize(
    ("strategy", "fault"), [(RetryOnFailure(), "got 4 and 0"), (RetryMember(max_retries=1), "away")]
)
def test_training_leaves_a_group_out_that_is_refused_or_fails_too_often(monkeypatch, caplog, strategy, fault):
    monkeypatch.setattr(rollouts, "TinkerTokenCompleter", lambda *_, **__: Scripted(failing=2))
    play = rollouts.do_group_rollout_and_filter_constant_reward
    assert asyncio.run(play(None, builder(), 64, 1.0, False, strategy=strategy)) is None
    assert fault in caplog.text
    assert "skipping group" in caplog.text


@pytest.mark.parametrize(
    ("retries", "failing", "made"), [(3, 0, 4), (3, 2, 6), (0, 2, 4)], ids=["as it should", "retried", "left out"]
)
def test_every_environment_that_is_made_is_played_and_closed(monkeypatch, retries, failing, made):
    built, counts = builder(), counted(monkeypatch)
    with nullcontext() if failing <= retries else pytest.raises(ConnectionError):
        rollout(built, strategy=RetryMember(retries), failing=failing)
    assert len(counts["made"]) == made
    assert sorted(counts["closed"]) == sorted(counts["made"])


def test_limits_reach_tinker_cookbook():
    first = sum(len(turn["role"]) + len(turn["content"]) + 2 for turn in MAKE().begin(builder().requests[0]))
    for limits, reason in (
        ({"max_trajectory_tokens": first + 500, "max_generation_tokens": 100}, "context_overflow"),
        ({"max_trajectory_tokens": first + 50, "max_generation_tokens": 100}, "max_tokens"),
    ):
        group = rollout(builder(**limits))
        assert group.trajectories_G[0].stop_reason == reason
        assert (group.get_total_rewards()[0], group.metrics_G[0]["truncated"]) == (0.0, 1.0)
        check = group.trajectories_G[0].transitions[-1].logs
        assert (check["condition"], check["won"]) == (1, 0)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"batch_size": 3}, "at least 3 tasks.* got 2.*batch_size=2"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_trajectory_tokens": 0}, "max_trajectory_tokens"),
        ({"max_generation_tokens": 9}, "max_generation_tokens=9.* is None"),
        ({"max_generation_tokens": 9, "max_trajectory_tokens": 9}, "larger"),
    ],
)
def test_a_dataset_without_a_batch_and_limits_that_never_act_are_refused(options, fault):
    with pytest.raises(ConfigError, match=fault):
        PairedDataset(MAKE, Letters(), MAKE().task_ids[:2], **{"batch_size": 1, **options})


def test_thoughts_taken_apart_are_put_together_again():
    (request, *_) = builder().requests
    member = ChatMessageEnv(MAKE, request)
    asyncio.run(member.initial_observation())
    parts = [{"type": "thinking", "thinking": "Where?"}, {"type": "text", "text": "<action>look</action>"}]
    asyncio.run(member.step({"role": "assistant", "content": parts}))
    assert member.env.record()["malformed"] == 0


def test_the_page_runs():
    names = run_blocks("tinker.md")
    retried = rollout(builder(), strategy=names["retries"], failing=2)
    assert {place["traj_idx"] for place in names["assemble"]([retried])[1]} == {0, 1, 2, 3}
    assert names["credit"].log["contrast"]
    builders = names["paired_dataset"](Letters()).get_batch(0)
    assert [request.condition for request in builders[1].requests] == [1, 1, 0, 0]
