"""MCP: a client of the protocol plays a pair in process."""

import asyncio
from functools import partial

import pytest
from scripted import ENV_KWARGS, expert_command, run_blocks

pytest.importorskip("mcp.server.mcpserver", reason="needs mcp 2, see the mcp extra: make test-adapters")

from mcp.client import Client

from skillc_gym.adapters import ChatEnv
from skillc_gym.adapters.mcp import create_server

MAKE = partial(ChatEnv, "alfworld", tags=False, **ENV_KWARGS)


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


def test_pairs_and_provenance_survive_the_round_trip():
    asyncio.run(paired())


async def paired():
    async with Client(create_server(MAKE)) as client:
        (task_id,) = (await call(client, "list_tasks", start=1, stop=2))["result"]
        for skill in (True, False):
            answer = await call(client, "start", task_id=task_id, seed=9, skill=skill, group_id=4)
            episode, chat = answer["episode"], [{"role": "user", "content": answer["text"]}]
            for _ in range(25):
                answer = await call(client, "act", episode=episode, command=expert_command(chat))
                if "over" not in answer["text"]:
                    chat.append({"role": "user", "content": answer["text"]})
            record = answer["record"]
            assert (record["task_id"], record["seed"], record["group_id"]) == (task_id, 9, 4)
            assert record["condition"] == record["won"] == skill
            assert bool(record["skill"]) == bool(record["skill_sha256"]) == skill
            assert (record["terminated"], record["truncated"]) == (skill, not skill)
            assert answer["text"] == "The episode is over."


def test_what_does_not_exist_is_said_in_words():
    async def ask():
        async with Client(create_server(MAKE, episodes=1)) as client:
            first = await call(client, "start", seed=0)
            await call(client, "start", seed=1)
            forgotten = await client.call_tool("act", {"episode": first["episode"], "command": "look"})
            nowhere = await client.call_tool("start", {"task_id": "nowhere"})
            return forgotten, nowhere

    for result, word in zip(asyncio.run(ask()), ("episode", "nowhere"), strict=True):
        assert result.is_error
        assert word in result.content[0].text


def test_the_page_runs():
    assert run_blocks("mcp.md")["server"].name == "skillc-gym"
