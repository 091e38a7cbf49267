"""OpenEnv: a real server on the loopback interface, several WebSocket sessions at once."""

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from scripted import HUBS, LOOK, MAKE, blocks_of, check_record, expert_reply, run_blocks, wheel_of

pytest.importorskip("openenv", reason="needs the openenv extra, in an environment of its own: make test-adapters")

import httpx
import uvicorn
from openenv.core import GenericEnvClient

from skillc_gym.adapters import EpisodeRequest
from skillc_gym.adapters.openenv import create_server
from skillc_gym.files import cache_folder


@contextmanager
def served(app, port=0):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            pytest.skip(f"port {port}, which the page names, is in use")
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address():
    with served(create_server(MAKE, sessions=4)) as found:
        yield found


@pytest.fixture
def client(address):
    with GenericEnvClient(base_url=address).sync() as found:
        yield found


def play(client, **reset):
    result = client.reset(**reset)
    chat = result.observation["messages"]
    while not result.done:
        reply = expert_reply(chat)
        result = client.step({"reply": reply})
        chat = [*chat, {"role": "assistant", "content": reply}, *result.observation["messages"]]
    return chat, result


def test_pairs_and_provenance_survive_the_round_trip(client):
    task_id = MAKE().task_ids[1]
    without_chat, without = play(client, seed=11, task_id=task_id, skill=False, group_id=5)
    with_chat, with_ = play(client, seed=11, index=1, skill=True, group_id=5)
    assert with_chat[1] == without_chat[1]
    for result, condition in ((with_, 1), (without, 0)):
        check_record(result.observation["record"], EpisodeRequest(task_id, 11, condition, 5))
        assert result.reward == condition
        assert (result.observation["terminated"], result.observation["truncated"]) == (bool(condition), not condition)
    again = client.step({"reply": LOOK})
    assert (again.done, again.reward) == (True, 0.0)
    assert again.observation["record"] == with_.observation["record"], "after the end nothing changes"
    assert "over" in again.observation["messages"][0]["content"]


def test_sessions_do_not_see_each_other(address):
    clients = [GenericEnvClient(base_url=address).sync() for _ in range(4)]
    tasks = MAKE().task_ids[:4]
    for client, task_id in zip(clients, tasks, strict=True):
        client.connect()
        client.reset(task_id=task_id, seed=0, episode_id=f"e-{task_id}")
    for number, client in enumerate(clients):
        for _ in range(number + 1):
            result = client.step({"reply": LOOK})
        assert result.observation["record"]["task_id"] == tasks[number]
        state = client.state()
        assert (state["episode_id"], state["step_count"]) == (f"e-{tasks[number]}", number + 1)
        client.close()


def test_tasks_can_be_listed(address):
    def ask(what, **more):
        return httpx.post(f"{address}/skillc/{what}", json={"split": "tasks", **more})

    (split,) = httpx.get(f"{address}/skillc/splits").json()
    assert split["name"] == "tasks"
    assert ask("num_tasks").json()["num_tasks"] == len(MAKE().task_ids) == 4
    assert ask("task", index=2).json()["task"]["id"] == MAKE().task_ids[2]
    assert [ask("task", index=index).status_code for index in (-1, 4)] == [400, 400]


@pytest.mark.parametrize(
    ("reset", "said"),
    [
        ({"task_id": "nowhere"}, "nowhere"),
        ({"tsak_id": "x"}, "tsak_id"),
        ({"index": -1}, "from 0 to 3"),
        ({"index": 0, "split": "test"}, "has the split 'tasks'"),
        ({"index": 0, "task_id": "x"}, "not by both"),
        ({"skill": 0.9}, "true or false"),
        ({"group_id": "a"}, "whole number"),
    ],
)
def test_bad_resets_are_answered_in_words(address, client, reset, said):
    with pytest.raises(RuntimeError, match=said):
        client.reset(**reset)
    answer = httpx.post(f"{address}/reset", json=reset)
    assert answer.status_code == 422
    assert re.search(said, answer.text)


def app_of(text):
    names = {}
    exec(compile(text, "app.py", "exec"), names)
    return names["app"]


def test_the_page_runs(capsys):
    with served(app_of(blocks_of("openenv.md")[0]), 8000):
        run_blocks("openenv.md")
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in said if line.endswith((" 1", " 0"))] == ["1", "0"]


def test_the_web_page_is_there(monkeypatch):
    monkeypatch.setenv("ENABLE_WEB_INTERFACE", "true")
    with served(create_server(MAKE)) as found:
        assert httpx.get(f"{found}/web/", follow_redirects=True).status_code == 200


def test_catalogues_of_the_image_are_not_built_in_a_home_that_is_none(monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("SKILLC_CACHE")
    for name, value in re.findall(r"^ENV (\w+)=(.*)", (HUBS / "openenv" / "Dockerfile").read_text(), re.MULTILINE):
        monkeypatch.setenv(name, value)
    assert not cache_folder("webshop").is_relative_to("/nonexistent")


def test_the_folder_to_copy_is_what_openenv_accepts(tmp_path):
    """Its manifest by rule, its wheel's application while it is served; the image is built where there is Docker."""
    folder = shutil.copytree(HUBS / "openenv", tmp_path / "copy")
    command = [Path(sys.executable).with_name("openenv"), "validate", "--json"]
    static = subprocess.run([*command, folder, "--level", "static"], capture_output=True, check=True)
    assert json.loads(static.stdout)["verdict"] == "pass"
    app = wheel_of("openenv", tmp_path) / "server" / "app.py"
    with served(app_of(app.read_text(encoding="utf-8"))) as found:
        assert subprocess.run([*command, "--url", found], capture_output=True, check=False).returncode == 0
        with GenericEnvClient(base_url=found).sync() as client:
            client.reset(seed=7, index=0, skill=True)
            assert client.step({"reply": LOOK}).observation["record"]["condition"] == 1
