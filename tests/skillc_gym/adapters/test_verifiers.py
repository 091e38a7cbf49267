"""verifiers: its own command plays pairs against a scripted server; what it writes down is read back."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openai_server import Faults, openai_server
from scripted import ENV_KWARGS, expert_reply, run_blocks

pytest.importorskip("verifiers", reason="needs the verifiers extra, in an environment of its own: make test-adapters")
ROOT = Path(__file__).resolve().parents[3]


def page_module(folder: Path) -> str:
    """Writes the module that the page shows; returns its name."""
    page = (ROOT / "docs" / "adapters" / "verifiers.md").read_text(encoding="utf-8")
    (folder / "household.py").write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    return "household"


def hub_wheel(folder: Path) -> str:
    """Builds the package for the hub and unpacks its wheel; returns the module's name."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    source = shutil.copytree(ROOT / "scripts" / "hubs" / "verifiers", folder / "source")
    subprocess.run([*build, "-w", folder / "dist", source], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return "skillc_household"


def evaluate(
    folder: Path, *words: str, module: Callable[[Path], str] = page_module, faults: Faults = lambda *_: None
) -> list[dict]:
    """Runs vf-eval on a module; returns the episodes that it wrote."""
    name = module(folder)
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
        paths = os.pathsep.join([str(folder), str(ROOT)])
        done = subprocess.run(
            [command, name, *listed, "--no-rich", *words],
            env={**os.environ, "PYTHONPATH": paths, "OPENAI_API_KEY": "none"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    (written,) = (folder / "out").glob("*/traces.jsonl")
    return [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]


def test_pairs_and_provenance_survive_the_round_trip(tmp_path):
    episodes = evaluate(tmp_path, "--env.taskset.tasks", "2", "--env.taskset.seed", "3")
    assert len(episodes) == 2
    for episode in episodes:
        records = [trace["info"] for trace in episode["traces"]]
        by_condition = {record["condition"]: record for record in records}
        assert set(by_condition) == {0, 1}
        assert len({(record["task_id"], record["seed"], record["group_id"]) for record in records}) == 1
        assert by_condition[1]["skill"] == "general+pick"
        assert by_condition[0]["skill"] == ""
        assert (by_condition[1]["terminated"], by_condition[1]["truncated"]) == (True, False)
        assert (by_condition[0]["terminated"], by_condition[0]["truncated"]) == (False, True)
        for trace in episode["traces"]:
            assert trace["metrics"]["gap"] == 1.0
            assert trace["rewards"]["episode_return"]["score"] == trace["info"]["won"]
            assert ("Skill:" in trace["task"]["data"]["system_prompt"]) == bool(trace["info"]["condition"])
    assert {episode["task"]["data"]["task_id"] for episode in episodes} == {
        episode["traces"][0]["info"]["task_id"] for episode in episodes
    }


def test_a_member_whose_model_cannot_be_asked_is_no_loss(tmp_path):
    def refuse_without_skill(number, body):
        shown = "Skill:" in body["messages"][0]["content"]
        return None if shown else lambda handler, _: handler.json(400, {"error": {"message": "refused"}}) or True

    (episode,) = evaluate(tmp_path, "--env.taskset.tasks", "1", faults=refuse_without_skill)
    assert sorted(trace["ok"] for trace in episode["traces"]) == [False, True]
    assert not any("gap" in trace["metrics"] for trace in episode["traces"])


def test_the_package_for_the_hub_plays_from_its_wheel(tmp_path):
    (episode,) = evaluate(tmp_path, "--env.taskset.tasks", "1", module=hub_wheel)
    assert [trace["metrics"]["gap"] for trace in episode["traces"]] == [1.0, 1.0]
    code = (
        "import skillc_household as hub, verifiers.v1 as vf\n"
        "env = hub.load_environment(tasks=2, group_size=4, n_plus=1)\n"
        "tasks = list(vf.load_taskset(env.config.taskset))\n"
        "assert hub.__file__.startswith(%r) and [t.data.conditions for t in tasks] == [[1, 0, 0, 0]] * 2\n"
    )
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    subprocess.run([sys.executable, "-c", code % str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}, check=True)


def test_the_page_runs():
    names = run_blocks("verifiers.md")
    assert len(names["tasks"]) == 2
    assert names["tasks"][0].data.conditions == [1, 0]
