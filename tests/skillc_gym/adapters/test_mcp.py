"""MCP: a client of the protocol plays a pair in process."""

import asyncio
from functools import partial

import pytest
from scripted import ENV_KWARGS, check_record, expert_command, pairs, run_blocks

pytest.importorskip("mcp.server.mcpserver", reason="needs mcp 2, see the mcp extra: make test-adapters")

from mcp.client import Client
from starlette.testclient import TestClient

import skillc_gym
from skillc_gym.adapters import ChatEnv, EpisodeRequest, paired_requests
from skillc_gym.adapters.mcp import create_server
from skillc_gym.errors import UnknownNameError

MAKE = partial(ChatEnv, "alfworld", tags=False, **ENV_KWARGS)


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


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
            for _ in range(25):
                answer = await call(client, "act", episode=episode, command=expert_command(chat))
                if "over" not in answer["text"]:
                    chat.append({"role": "user", "content": answer["text"]})
            check_record(answer["record"], EpisodeRequest(task_id, 9, int(skill), 4))
            assert answer["text"] == "The episode is over."

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
        assert answer.structured_content["record"].items() >= request.to_row().items()
    assert none_left.is_error
    assert "none left" in none_left.content[0].text
    assert server.version == skillc_gym.__version__


def test_every_request_is_started_once_however_many_ask():
    requests = pairs(4, seed=3)
    answers = with_client(lambda client: asyncio.gather(*(call(client, "start") for _ in requests)), requests=requests)
    told = {tuple((name, answer["record"][name]) for name in requests[0].to_row()) for answer in answers}
    assert told == {tuple(request.to_row().items()) for request in requests}


def test_ids_cannot_be_guessed_and_are_not_told_to_others():
    async def ask():
        server = create_server(MAKE)
        async with Client(server) as mine, Client(server) as others:
            own = (await call(mine, "start"))["episode"]
            return own, await others.call_tool("act", {"episode": "1", "command": "look"})

    own, result = asyncio.run(ask())
    assert len(own) >= 20
    assert result.is_error
    assert own not in result.content[0].text


def test_the_page_runs():
    assert run_blocks("mcp.md")["server"].name == "skillc-gym"


def test_an_episode_belongs_to_its_session():
    with TestClient(create_server(MAKE).streamable_http_app(json_response=True), "http://127.0.0.1:8000") as http:
        mine, theirs = (opened(http) for _ in range(2))
        episode = asked(http, mine, "start", seed=0)["structuredContent"]["episode"]
        theirs = asked(http, theirs, "act", episode=episode, command="look")
        assert theirs["isError"]
        assert "no episode" in theirs["content"][0]["text"]
        assert "text" in asked(http, mine, "act", episode=episode, command="look")["structuredContent"]


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
