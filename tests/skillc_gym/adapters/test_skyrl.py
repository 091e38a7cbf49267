"""SkyRL-gym: pairs of rows played through its registry, SkyRL's own data set, its own aggregation of metrics."""

import json
import warnings

import pytest
from byte_tokenizers import byte_tokenizer
from scripted import ENV_KWARGS, check_record, expert_reply, pairs, run_blocks

skyrl_gym = pytest.importorskip(
    "skyrl_gym", reason="needs the skyrl extra, in an environment of its own: make test-adapters"
)

from skyrl.train.dataset import PromptDataset
from skyrl_gym.metrics import aggregate_for_environment

from skillc_gym.adapters import EpisodeRequest
from skillc_gym.adapters.skyrl import dataset_rows, register_environment


@pytest.fixture(autouse=True)
def _registered():
    register_environment(env="alfworld", **ENV_KWARGS)
    yield
    skyrl_gym.envs.registration.registry.pop("skillc")


def play(env_class="skillc", **extras):
    env = skyrl_gym.make(env_class, env_config={}, extras=extras)  # SkyRL's configuration has no place for ours
    chat, _ = env.init([{"role": "user", "content": "not read"}])
    outcome = {"done": False}
    while not outcome["done"]:
        reply = expert_reply(chat)
        outcome = env.step(reply)
        chat = [*chat, {"role": "assistant", "content": reply}, *outcome["observations"]]
    env.close()
    return outcome, env.get_metrics()


def test_the_page_registers_and_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skyrl_gym.envs.registration.registry.pop("skillc")
    run_blocks("skyrl.md")
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == ["1", "0"]
    assert [row["condition"] for row in read_by_skyrl("train.jsonl")] == [1, 0]


def test_pairs_and_provenance_survive_the_round_trip():
    measured = []
    for request in pairs(seed=8):
        outcome, found = play(**request.to_row())
        check_record(outcome["metadata"], request)
        assert (outcome["reward"], outcome["observations"]) == (request.condition, [])
        measured.append(found)
    metrics = aggregate_for_environment("skillc", measured)
    assert (metrics["won_with"], metrics["won_without"], metrics["truncated"]) == (1.0, 0.0, 0.5)


def read_by_skyrl(path):
    """A file's rows as SkyRL's generator gives them to the environment."""
    template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    read = PromptDataset(str(path), byte_tokenizer(template, ["<|end|>"]), max_prompt_length=512, num_workers=1)
    items = read.collate_fn([read[index] for index in range(len(read))])
    return [{"env_class": item["env_class"], **item["env_extras"]} for item in items]


def test_skyrls_own_data_set_reads_the_rows(tmp_path):
    requests = pairs(seed=8)
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, dataset_rows(requests))))
    assert [EpisodeRequest.from_row(row) for row in read_by_skyrl(path)] == requests


def test_one_turn_is_warned_of():
    with pytest.warns(UserWarning, match=r"generator\.max_turns is 1"):
        skyrl_gym.make("skillc", env_config={}, extras={**pairs()[0].to_row(), "max_turns": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        skyrl_gym.make("skillc", env_config={}, extras={**pairs()[0].to_row(), "max_turns": 2})


def test_skyrls_limits_of_turns_and_of_length_truncate():
    outcome, metrics = play(**pairs()[0].to_row(), max_turns=2)
    assert (outcome["metadata"]["truncated"], outcome["metadata"]["terminated"]) == (True, False)
    assert metrics["steps"] == 2
    env = skyrl_gym.make("skillc", env_config={}, extras=pairs()[0].to_row())
    env.init([])
    assert (env.get_metrics()["truncated"], env.get_metrics()["terminated"]) == (1.0, 0.0)
