"""verifiers: its own command plays pairs against a scripted server; what it writes down is read back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from openai_server import Faults, openai_server
from scripted import ENV_KWARGS, ROOT, blocks_of, expert_reply, run_blocks, wheel_of

pytest.importorskip("verifiers", reason="needs the verifiers extra, in an environment of its own: make test-adapters")


def with_modules_of(folder: Path) -> dict[str, str]:
    """Variables for a process that finds a folder's modules, and ours."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "OPENAI_API_KEY": "none"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the module that the page shows."""
    (tmp_path / "household.py").write_text(blocks_of("verifiers.md")[0], encoding="utf-8")
    return tmp_path


def evaluate(folder: Path, *words: str, module: str = "household", faults: Faults = lambda *_: None) -> list[dict]:
    """Runs vf-eval on a module in a folder; returns the episodes that it wrote."""
    with openai_server(expert_reply, faults=faults) as server:
        options = {
            "--env.taskset.env-kwargs": json.dumps({**ENV_KWARGS, "max_episode_steps": 12}),
            "--client.base-url": server.base_url,
            "--client.api-key-var": "OPENAI_API_KEY",
            "--model": "scripted",
            "--push": "false",
            "--output-dir": str(folder / "out"),
        }
        command = Path(sys.executable).with_name("vf-eval")
        listed = [word for pair in options.items() for word in pair]
        done = subprocess.run(
            [command, module, *listed, "--no-rich", *words],
            env=with_modules_of(folder),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    (written,) = (folder / "out").glob("*/traces.jsonl")
    return [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]


def test_pairs_and_provenance_survive_the_round_trip(folder):
    episodes = evaluate(folder, "--env.taskset.tasks", "2", "--env.taskset.seed", "3")
    assert len(episodes) == 2
    for episode in episodes:
        records = [trace["info"] for trace in episode["traces"]]
        with_, without = sorted(records, key=lambda record: -record["condition"])
        shared = ("task_id", "seed", "group_id")
        assert [with_[name] for name in shared] == [without[name] for name in shared]
        assert with_["task_id"] == episode["task"]["data"]["task_id"]
        assert [(one["condition"], one["skill"]) for one in (with_, without)] == [(1, "general+pick"), (0, "")]
        assert [(one["terminated"], one["truncated"]) for one in (with_, without)] == [(True, False), (False, True)]
        for trace in episode["traces"]:
            assert trace["metrics"]["gap"] == 1.0
            assert trace["rewards"]["episode_return"]["score"] == trace["info"]["won"]
            assert ("Skill:" in trace["task"]["data"]["system_prompt"]) == bool(trace["info"]["condition"])


def test_a_member_whose_model_cannot_be_asked_is_no_loss(folder):
    def refuse_without_skill(number, body):
        shown = "Skill:" in body["messages"][0]["content"]
        return None if shown else lambda handler, _: handler.json(400, {"error": {"message": "refused"}}) or True

    (episode,) = evaluate(folder, "--env.taskset.tasks", "1", faults=refuse_without_skill)
    assert sorted(trace["ok"] for trace in episode["traces"]) == [False, True]
    assert not any("gap" in trace["metrics"] for trace in episode["traces"])


def test_thoughts_that_a_server_gives_apart_are_part_of_the_reply(folder):
    def apart(number, body):
        thought, _, said = expert_reply(body["messages"]).partition("</think>")
        message = {"role": "assistant", "content": said, "reasoning_content": thought.removeprefix("<think>")}
        answer = {"id": "c1", "object": "chat.completion", "created": 0, "model": body["model"]}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return lambda handler, _: handler.json(200, answer) or True

    (episode,) = evaluate(folder, "--env.taskset.tasks", "1", faults=apart)
    assert [trace["info"]["malformed"] for trace in episode["traces"]] == [0, 0]


def test_the_package_for_the_hub_plays_from_its_wheel(tmp_path):
    folder = wheel_of("verifiers", tmp_path)
    (episode,) = evaluate(folder, "--env.taskset.tasks", "1", module="skillc_household")
    assert [trace["metrics"]["gap"] for trace in episode["traces"]] == [1.0, 1.0]
    code = (
        "import skillc_household as hub, verifiers.v1 as vf\n"
        "env = hub.load_environment(tasks=2, group_size=4, n_plus=1)\n"
        "tasks = list(vf.load_taskset(env.config.taskset))\n"
        "assert hub.__file__.startswith(%r) and [t.data.conditions for t in tasks] == [[1, 0, 0, 0]] * 2\n"
    )
    subprocess.run([sys.executable, "-c", code % str(folder)], env=with_modules_of(folder), check=True)


def test_the_page_runs():
    names = run_blocks("verifiers.md")
    assert len(names["tasks"]) == 2
    assert names["tasks"][0].data.conditions == [1, 0]
