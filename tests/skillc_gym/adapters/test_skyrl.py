"""SkyRL-gym: pairs of rows played through its registry, and its own aggregation of metrics."""

import pytest
from scripted import ENV_KWARGS, MAKE, check_record, expert_reply, run_blocks

skyrl_gym = pytest.importorskip(
    "skyrl_gym", reason="needs the skyrl extra, in an environment of its own: make test-adapters"
)

from skyrl_gym.metrics import aggregate_for_environment

from skillc_gym.adapters import paired_requests
from skillc_gym.adapters.skyrl import register_environment

CONFIG = {"env": "alfworld", **ENV_KWARGS}


@pytest.fixture(autouse=True)
def _registered():
    register_environment(**CONFIG)
    yield
    skyrl_gym.envs.registration.registry.pop("skillc")


def play(**extras):
    env = skyrl_gym.make("skillc", env_config={}, extras=extras)  # SkyRL's configuration has no place for ours
    chat, _ = env.init([{"role": "user", "content": "not read"}])
    outcome = {"done": False}
    while not outcome["done"]:
        reply = expert_reply(chat)
        outcome = env.step(reply)
        chat = [*chat, {"role": "assistant", "content": reply}, *outcome["observations"]]
    env.close()
    return outcome, env.get_metrics()


def test_the_page_registers_and_runs(capsys):
    skyrl_gym.envs.registration.registry.pop("skillc")
    run_blocks("skyrl.md")
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["1", "0"]


def test_pairs_and_provenance_survive_the_round_trip():
    pair = paired_requests(MAKE().task_ids[:1], seed=8)
    played = [play(**request.to_row()) for request in pair]
    for request, (outcome, _) in zip(pair, played, strict=True):
        check_record(outcome["metadata"], request)
        assert outcome["reward"] == request.condition
        assert outcome["observations"] == []
    metrics = aggregate_for_environment("skillc", [found for _, found in played])
    assert (metrics["won_with"], metrics["won_without"], metrics["truncated"]) == (1.0, 0.0, 0.5)


def test_skyrls_limit_truncates():
    outcome, metrics = play(**paired_requests(MAKE().task_ids[:1])[0].to_row(), max_turns=2)
    assert outcome["done"]
    assert (outcome["metadata"]["truncated"], outcome["metadata"]["terminated"]) == (True, False)
    assert metrics["steps"] == 2


def test_an_episode_that_skyrl_ends_for_its_length_is_truncated():
    env = skyrl_gym.make("skillc", env_config={}, extras=paired_requests(MAKE().task_ids[:1])[0].to_row())
    env.init([])
    assert (env.get_metrics()["truncated"], env.get_metrics()["terminated"]) == (1.0, 0.0)
