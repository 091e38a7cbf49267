"""SkyRL-gym: pairs of rows played through its registry, and its own aggregation of metrics."""

import pytest
from scripted import ENV_KWARGS, check_record, expert_reply, pairs, run_blocks

skyrl_gym = pytest.importorskip(
    "skyrl_gym", reason="needs the skyrl extra, in an environment of its own: make test-adapters"
)

from skyrl_gym.metrics import aggregate_for_environment

from skillc_gym.adapters.skyrl import register_environment


@pytest.fixture(autouse=True)
def _registered():
    register_environment(env="alfworld", **ENV_KWARGS)
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
    measured = []
    for request in pairs(seed=8):
        outcome, found = play(**request.to_row())
        check_record(outcome["metadata"], request)
        assert (outcome["reward"], outcome["observations"]) == (request.condition, [])
        measured.append(found)
    metrics = aggregate_for_environment("skillc", measured)
    assert (metrics["won_with"], metrics["won_without"], metrics["truncated"]) == (1.0, 0.0, 0.5)


def test_skyrls_limits_of_turns_and_of_length_truncate():
    outcome, metrics = play(**pairs()[0].to_row(), max_turns=2)
    assert (outcome["metadata"]["truncated"], outcome["metadata"]["terminated"]) == (True, False)
    assert metrics["steps"] == 2
    env = skyrl_gym.make("skillc", env_config={}, extras=pairs()[0].to_row())
    env.init([])
    assert (env.get_metrics()["truncated"], env.get_metrics()["terminated"]) == (1.0, 0.0)
