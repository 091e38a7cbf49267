"""MCP: a client of the protocol plays a pair in process."""

import asyncio
import json
from functools import partial

import pytest
from scripted import ENV_KWARGS, ROOT, check_record, expert_command, pairs, run_blocks

pytest.importorskip("mcp.server.mcpserver", reason="needs mcp 2, see the mcp extra: make test-adapters")

from mcp.client import Client
from starlette.testclient import TestClient

import skillc_gym
from skillc_gym.adapters import ChatEnv, EpisodeRequest, paired_requests
from skillc_gym.adapters.mcp import RECORD, create_server
from skillc_gym.errors import ConfigError, UnknownNameError

PAGE = ROOT / "docs" / "adapters" / "mcp.md"
MAKE = partial(ChatEnv, "alfworld", tags=False, **ENV_KWARGS)


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def told_and_recorded(client, tool, **arguments):
    """What the agent is told, which is the same in both forms of content, and what the harness gets."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content
    return result.structured_content, result.meta[RECORD]


def with_client(play, make=MAKE, **options):
    """What an asynchronous function makes of a client of a new server."""

    async def played():
        async with Client(create_server(make, **options)) as client:
            return await play(client)

    return asyncio.run(played())


def test_pairs_and_provenance_survive_the_round_trip():
    async def pair(client):
        (task_id,) = (await call(client, "list_tasks", start=1, stop=2))["result"]
        for skill in (True, False):
            answer = await call(client, "start", task_id=task_id, seed=9, skill=skill, group_id=4)
            episode, chat = answer["episode"], [{"role": "user", "content": answer["text"]}]
            while not answer["done"]:
                command = {"episode": episode, "command": expert_command(chat)}
                answer, record = await told_and_recorded(client, "act", **command)
                chat.append({"role": "user", "content": answer["text"]})
            check_record(record, EpisodeRequest(task_id, 9, int(skill), 4))
            after = await told_and_recorded(client, "act", **command)
            assert after == ({"text": "The episode is over.", "done": True}, record)

    with_client(pair)


def test_what_does_not_exist_is_said_in_words():
    async def ask(client):
        first = await call(client, "start", seed=0)
        await call(client, "start", seed=1)
        forgotten = {"episode": first["episode"], "command": "look"}
        asked = (("act", forgotten), ("start", {"task_id": "nowhere"}), ("start", {"seed": -1}))
        return [await client.call_tool(tool, arguments) for tool, arguments in asked]

    for result, word in zip(with_client(ask, episodes=1), ("episode", "nowhere", "from 0 up"), strict=True):
        assert result.is_error
        assert word in result.content[0].text
    with pytest.raises(UnknownNameError, match="nowhere"):
        create_server(MAKE, requests=paired_requests(["nowhere"], seed=3))


def test_ended_episodes_leave_their_places_and_everything_is_closed(monkeypatch):
    made, closed = [], []
    monkeypatch.setattr(ChatEnv, "close", lambda env: closed.append(id(env)))

    async def ask(client):
        running, ended = [await call(client, "start", seed=seed) for seed in (0, 1)]
        for _ in range(20):
            await call(client, "act", episode=ended["episode"], command="look")
        over = await call(client, "act", episode=ended["episode"], command="look")
        await call(client, "start", seed=2)
        still = await client.call_tool("act", {"episode": running["episode"], "command": "look"})
        await client.call_tool("start", {"task_id": "nowhere"})
        return over, still

    over, still = with_client(ask, lambda: made.append(MAKE()) or made[-1], episodes=2)
    assert over["text"] == "The episode is over."
    assert not still.is_error
    lister, _, ended, _, failed = made
    assert set(closed) == {id(env) for env in (lister, ended, failed)}


def test_requests_leave_the_agent_no_choice():
    requests = paired_requests(MAKE().task_ids[1:2], seed=3)

    async def ask(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        starts = [await client.call_tool("start", chosen) for chosen in ({"skill": True, "seed": 9}, {}, {})]
        return tools, starts, client.server_info

    tools, (*answers, none_left), server = with_client(ask, requests=requests)
    assert tools.keys() == {"start", "act"}
    assert not tools["start"].input_schema.get("properties")
    for answer, request in zip(answers, requests, strict=True):
        assert answer.meta[RECORD].items() >= request.to_row().items()
    assert none_left.is_error
    assert "none left" in none_left.content[0].text
    assert server.version == skillc_gym.__version__


def test_an_agent_is_told_neither_its_condition_nor_its_task_nor_how_it_went():
    async def play(client):
        told = [client.instructions, *((await client.list_tools()).tools)]
        result = await client.call_tool("start", {})
        episode, chat = result.structured_content["episode"], []
        while not result.structured_content["done"]:
            chat.append({"role": "user", "content": result.structured_content["text"]})
            result = await client.call_tool("act", {"episode": episode, "command": expert_command(chat)})
            told.append(result.model_dump_json(exclude={"meta"}))
        return result.meta[RECORD], " ".join(map(str, told)).lower()

    for request in pairs(seed=3):
        record, told = with_client(play, requests=[request])
        check_record(record, request)
        hidden = [record["task_id"], record["skill"], record["skill_sha256"], "condition", "skill_", "won", "reward"]
        hidden += ["record", "task_id", "group_id", "seed"]
        assert [word for word in hidden if word and word.lower() in told] == []


def test_why_a_request_cannot_start_is_for_the_log_alone(monkeypatch, caplog):
    def begin(env, request):
        raise ConfigError(f"condition={request.condition} of {request.task_id}")

    monkeypatch.setattr(ChatEnv, "begin", begin)
    (request, _) = pairs()
    result = with_client(lambda client: client.call_tool("start", {}), requests=[request])
    assert result.is_error
    assert [content.text for content in result.content] == ["Error executing tool start"]
    assert f"condition=1 of {request.task_id}" in caplog.text


def test_every_request_is_started_once_however_many_ask():
    requests = pairs(4, seed=3)
    start = partial(told_and_recorded, tool="start")
    answers = with_client(lambda client: asyncio.gather(*(start(client) for _ in requests)), requests=requests)
    records = {tuple((name, record[name]) for name in requests[0].to_row()) for _, record in answers}
    assert records == {tuple(request.to_row().items()) for request in requests}


def test_the_page_runs():
    names, read = run_blocks("mcp.md"), []

    def agent(text):
        read.append(text)
        return "look"

    shown, hidden = [asyncio.run(names["play"](agent)) for _ in range(2)]
    assert (shown["condition"], hidden["condition"]) == (1, 0)
    assert shown["task_id"] == hidden["task_id"] == names["make"]().task_ids[0]
    assert len(read) == shown["steps"] + hidden["steps"]
    assert RECORD in PAGE.read_text(encoding="utf-8")


def test_an_episode_belongs_to_its_session_by_an_id_that_cannot_be_guessed():
    with TestClient(create_server(MAKE).streamable_http_app(json_response=True), "http://127.0.0.1:8000") as http:
        mine, theirs = (opened(http) for _ in range(2))
        episode = asked(http, mine, "start", seed=0)["structuredContent"]["episode"]
        assert len(episode) >= 20
        for guessed in (episode, "1"):
            refused = asked(http, theirs, "act", episode=guessed, command="look")
            assert refused["isError"]
            assert f"no episode {guessed!r}" in refused["content"][0]["text"]
        acted = asked(http, mine, "act", episode=episode, command="look")
        assert acted["structuredContent"].keys() == {"text", "done"}
        assert acted["_meta"][RECORD]["steps"] == 1


def opened(http):
    """The headers of a new session."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    accept = {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}
    session = http.post("/mcp", json=body, headers=accept).headers["mcp-session-id"]
    return {**accept, "mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}


def asked(http, headers, tool, **arguments):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return http.post("/mcp", json=body, headers=headers).json()["result"]
