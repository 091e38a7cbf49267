"""Evaluation in words, through a scripted server and a real one: disturbed ones equal undisturbed ones, none waits."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, ServerError
from skillc_lab.cli.main import main
from tests.openai_server import Fault, Handler, Server, openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply
from tests.trainers.engines.test_openai import half_a_stream, status
from trainers.config import TrainConfig
from trainers.engines.text import ContextFullError, FunctionEngine, TextReply, TextRequest
from trainers.evaluation import PairedReport
from trainers.evaluation.player import policy_player
from trainers.evaluation.policy import PolicyReport, evaluate_policy
from trainers.rollout import text_policy
from trainers.rollout.text_policy import Journal

CONFIG = TrainConfig(
    model="scripted",
    engine="openai",
    data="generated",
    task_types=("pick",),
    env_options={"generator": ENV_KWARGS["generator"]},
    max_episode_steps=8,
    max_parallel=3,
)
QUICK = {"timeout": 0.5, "first_wait": 0.0, "retries": 6}


def evaluate(server: Server, folder: Path, **options: Any) -> None:
    folder.mkdir(exist_ok=True)
    config = CONFIG.with_(engine_options={**QUICK, "base_url": server.base_url, **options})
    evaluate_policy(config, per_type=3, folder=folder).save_all(folder)


def written(folder: Path) -> tuple[bytes, ...]:
    return tuple((folder / name).read_bytes() for name in ("report.json", "transcripts.jsonl", "usage.json"))


busy, broken = status(429, headers={"Retry-After": "0.01"}), status(500, "broken")


def stalls(handler: Handler, body: Any) -> bool:
    time.sleep(0.8)
    return broken(handler, body)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    with openai_server(expert_reply) as server:
        evaluate(server, folder)
    return folder


def test_pairs_are_played_and_counted(undisturbed: Path) -> None:
    report = json.loads((undisturbed / "report.json").read_text())
    assert (report["overall"]["n"], report["overall"]["sr_with"], report["overall"]["sr_without"]) == (3, 1.0, 0.0)
    used = json.loads((undisturbed / "usage.json").read_text())
    assert (used["without"]["requests"], used["all"]["episodes"], used["all"]["cost"]) == (3 * 8, 6, None)
    assert used["with"]["prompt_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_disturbed_evaluation_equals_an_undisturbed_one(undisturbed: Path, tmp_path: Path, stream: bool) -> None:
    kinds: Mapping[int, Fault] = {2: busy, 5: broken, 7: half_a_stream, 11: stalls}
    with openai_server(expert_reply, lambda number, body: kinds.get(number % 13)) as server:
        evaluate(server, tmp_path / "out", stream=stream)
    assert len(server.requests) > 40
    assert 1 < server.most_at_once <= CONFIG.max_parallel
    assert written(tmp_path / "out") == written(undisturbed)


def test_a_server_that_dies_in_the_middle_costs_nothing_but_time(undisturbed: Path, tmp_path: Path) -> None:
    with (
        openai_server(expert_reply, lambda number, body: broken if number > 20 else None) as server,
        pytest.raises(ServerError, match="same command again"),
    ):
        evaluate(server, tmp_path, retries=1)
    assert not (tmp_path / "report.json").exists()
    kept = len((tmp_path / "journal.jsonl").read_text().splitlines()) - 1
    assert 0 < kept < 6
    with openai_server(expert_reply) as server:
        evaluate(server, tmp_path)
        asked = len(server.requests)
        evaluate(server, tmp_path)
        assert len(server.requests) == asked  # nothing is asked twice
        header, first, *rest = (tmp_path / "journal.jsonl").read_text().splitlines()
        no_number = json.loads(first)
        no_number["episode"]["turns"][0]["reward"] = None  # what is written of a reward that is no number
        (tmp_path / "journal.jsonl").write_text("\n".join([header, json.dumps(no_number), *rest, ""]))
        evaluate(server, tmp_path)
        assert len(server.requests) > asked, "its episode is played again"
    assert asked < json.loads((undisturbed / "usage.json").read_text())["all"]["requests"]
    assert written(tmp_path) == written(undisturbed)


async def plainly(request: TextRequest) -> str:
    return "<action>look</action>"


def play(ask: Callable[[TextRequest], Any], **changes: Any) -> PolicyReport:
    return evaluate_policy(CONFIG.with_(**changes), per_type=2, engine=FunctionEngine(ask))


def test_no_episode_waits_for_a_slow_one() -> None:
    """The first reply is held back until all other episodes have ended: in step with each other, none would."""
    state: dict[str, Any] = {"asked": 0, "released": None}

    async def ask(request: TextRequest) -> str:
        state["asked"] += 1
        if state["asked"] == 1:
            state["released"] = asyncio.Event()
            await asyncio.wait_for(state["released"].wait(), 30)
        elif state["asked"] == 1 + 3 * 8:  # the last reply of the three others
            state["released"].set()
        return "<think>Nothing.</think><action>look</action>"

    report = play(ask, max_parallel=2)
    assert state["asked"] == 4 * 8
    assert all(outcome.without_skill.steps == 8 for outcome in report.paired.outcomes)


def asked_by(**changes: Any) -> tuple[list[TextRequest], PolicyReport]:
    """What an evaluation asks, and what it finds."""
    requests: list[TextRequest] = []

    async def ask(request: TextRequest) -> str:
        requests.append(request)
        return await plainly(request)

    return requests, play(ask, **changes)


def test_pairs_share_their_seeds_turn_by_turn() -> None:
    def told(requests: list[TextRequest]) -> list[tuple[bool, int, int]]:
        return sorted(("Skill:" in r.messages[0]["content"], len(r.messages), r.seed) for r in requests)

    first, _ = asked_by()
    assert told(first) == told(asked_by()[0])
    assert {(r.temperature, r.max_tokens) for r in first} == {(CONFIG.eval_temperature, CONFIG.max_reply_tokens)}
    with_, without = ({entry[1:] for entry in told(first) if entry[0] is skill} for skill in (True, False))
    assert with_ == without
    assert len({seed for _, seed in with_}) == 2 * 8
    assert all(0 <= seed < 2**31 for _, seed in with_)


def test_greedy_play_and_a_grade_of_the_skill_are_asked_for_and_recorded() -> None:
    requests, report = asked_by(skill_grade="minimal", max_episode_steps=1, eval_greedy=True)
    shown = [request.messages[0]["content"] for request in requests]
    assert {"Key step" in text and "1. Search" not in text for text in shown} == {True, False}
    assert [episode.skill_grade for episode in report.paired.episodes] == ["minimal", "none"] * 2
    assert {request.temperature for request in requests} == {0.0}


def test_a_full_context_is_told_apart_from_failure() -> None:
    async def ask(request: TextRequest) -> TextReply:
        if "Skill:" in request.messages[0]["content"] and len(request.messages) > 6:
            raise ContextFullError("full")
        return TextReply("<action>look</action>", 3, 1)

    engine: Any = FunctionEngine(ask)
    engine.options = {"of": "one's own"}  # which have no prices
    report = evaluate_policy(CONFIG, per_type=2, engine=engine)
    assert report.usage is not None
    assert report.paired.cuts("context") == {"with": 2, "without": 0}
    assert report.paired.cuts("steps") == {"with": 0, "without": 2}
    assert [outcome.with_skill.steps for outcome in report.paired.outcomes] == [3, 3]
    used = {"episodes": 2, "requests": 6, "prompt_tokens": 18, "completion_tokens": 6, "cost": None}
    assert report.usage["with"] == used


def test_an_error_of_the_users_client_is_the_users() -> None:
    async def ask(request: TextRequest) -> str:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        play(ask)


def test_it_works_within_a_running_loop() -> None:
    async def notebook() -> PolicyReport:
        return asked_by()[1]

    assert len(asyncio.run(notebook()).paired.outcomes) == 2


def test_an_interruption_within_a_running_loop_ends_the_questions() -> None:
    asked: list[float] = []

    async def ask(request: TextRequest) -> str:
        asked.append(time.monotonic())
        if len(asked) == 1:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread hears it, whoever sends it
        await asyncio.sleep(1.0)
        return await plainly(request)

    async def notebook() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as where nobody has made a handler for the loop
        play(ask, max_parallel=2)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(notebook())
    assert 1 <= len(asked) <= 2


def test_a_journal_is_of_one_seed_and_temperature(tmp_path: Path) -> None:
    policy_player(CONFIG, FunctionEngine(plainly), tmp_path)._journal.add("k", {})
    for changes in ({"seed": 5}, {"eval_temperature": 0.7}, {"eval_greedy": True}):
        with pytest.raises(ConfigError, match=f"{next(iter(changes))} was"):
            policy_player(CONFIG.with_(**changes), FunctionEngine(plainly), tmp_path)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"per_type": 1}, "evaluation was .'per_type': 2"),
        ({"attempts": 2}, "evaluation was .'attempts': 1"),
        ({"greedy_too": True}, "evaluation was .'greedy_too': False"),
        ({"memory": "library"}, "evaluation was .'memory': 'own'}, is .'memory': 'library'"),
        ({"panel_seed": 3}, "panel_seed was"),
    ],
)
def test_an_interrupted_evaluation_of_another_panel_or_other_tries_does_not_go_on(
    other: dict[str, Any], said: str, tmp_path: Path
) -> None:
    asked = 0

    async def ask(request: TextRequest) -> TextReply:
        nonlocal asked
        asked += 1
        if asked > 26:  # of 32
            raise ServerError("down")
        return await plainly(request)

    def played(panel_seed: int = 0, **options: Any) -> PolicyReport:
        config = CONFIG.with_(panel_seed=panel_seed)
        return evaluate_policy(config, engine=FunctionEngine(ask), folder=tmp_path, **{"per_type": 2, **options})

    with pytest.raises(ServerError):
        played()
    asked = 0
    with pytest.raises(ConfigError, match=said):
        played(**other)
    assert asked == 0
    asked = -1000
    assert len(played().paired.outcomes) == 2


def test_a_writers_chat_that_was_too_long_is_asked_again_with_more_room(tmp_path: Path) -> None:
    limit = 0

    async def ask(request: TextRequest) -> TextReply:
        if len(request.messages[0]["content"]) > limit:
            raise ContextFullError("full")
        return TextReply("Look twice.", 3, 2)

    def told(asked: int) -> list[str]:
        player = policy_player(CONFIG, FunctionEngine(ask), tmp_path)
        writer = player.chat(0, tmp_path / "replies.jsonl")
        found = writer([[{"role": "user", "content": "What now?"}]])
        assert writer.usage.prompt_tokens == asked
        return found

    assert told(0) == [""]
    limit = 100
    assert told(3) == ["Look twice."]
    limit = 0
    assert told(3) == ["Look twice."], "as it was kept"


def test_other_settings_and_wrappers_do_not_go_on_with_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, {"model": "a", "chat": "default"}).add("k", {"x": 1})
    with pytest.raises(ConfigError, match="model was 'a', is 'b'"):
        Journal(path, {"model": "b", "chat": "default"})
    assert Journal(path, {"model": "a", "chat": "default"}).entries["k"]["x"] == 1
    Journal(path.with_name("other"), {"model": "a", "chat_sha256": "a"}).add("k", {"x": 1})
    with pytest.raises(ConfigError, match="chat_sha256 was 'a', is 'b'"):
        Journal(path.with_name("other"), {"model": "a", "chat_sha256": "b"})
    path.write_text('{"date": 1}\n{"note": 2}\n')
    with pytest.raises(ConfigError, match="something else"):
        Journal(path, {"model": "a", "chat": "default"})
    path.unlink()
    wrapped, engine = CONFIG.with_(env_wrappers={"tests.trainers.toys:Graded": {}}), FunctionEngine(plainly)
    journal = policy_player(CONFIG, engine, tmp_path)._journal
    assert "env_wrappers" not in journal.path.read_text()
    assert policy_player(wrapped, engine, tmp_path)._journal, "nothing was played yet"
    policy_player(CONFIG, engine, tmp_path)._journal.add("k", {})
    with pytest.raises(ConfigError, match="env_wrappers was None, is"):
        policy_player(wrapped, engine, tmp_path)
    path.unlink()
    policy_player(wrapped, engine, tmp_path)._journal.add("k", {})
    with pytest.raises(ConfigError, match=r"env_wrappers was \{.*is None"):
        policy_player(CONFIG, engine, tmp_path)


def test_a_function_is_asynchronous_and_a_wrapper_takes_its_options() -> None:
    at_once: Any = FunctionEngine(lambda request: "<action>look</action>")
    with pytest.raises(ConfigError, match="async def"):
        asyncio.run(at_once.reply(TextRequest([], 0, 8, 1.0)))
    wrapped = CONFIG.with_(env_wrappers={"tests.trainers.toys:Graded": {"bonuss": 0.5}})
    with pytest.raises(ConfigError, match=r"toys:Graded takes \(env.*bonuss"):
        policy_player(wrapped, FunctionEngine(plainly)).rollouts(wrapped)
    none: Any = CONFIG.with_(env_wrappers={"tests.trainers.toys:Graded": None})
    with pytest.raises(ConfigError, match="for none; got None"):
        policy_player(none, FunctionEngine(plainly)).rollouts(none)


def test_a_reply_without_a_text_is_an_empty_one_and_never_sent_back_as_such() -> None:
    requests: list[TextRequest] = []

    async def ask(request: TextRequest) -> str | None:
        requests.append(request)
        return None

    report = play(ask, max_episode_steps=2)
    assert report.paired.cuts("context") == {"with": 0, "without": 0}
    assert {message["content"] for request in requests for message in request.messages[2::2]} == {"(no reply)"}
    assert all(message["content"] == "" for one in report.paired.episodes for message in one.messages[2::2])
    assert text_policy._audible({"role": "user", "content": " "})["content"] == "(nothing)", "which is nobody's reply"
    with pytest.raises(ConfigError, match="a text or a TextReply, not int"):
        asyncio.run(FunctionEngine(lambda request: asyncio.sleep(0, 5)).reply(TextRequest([], 0, 8, 1.0)))


def test_what_the_context_cut_is_played_again_by_a_server_that_has_a_longer_one(tmp_path: Path) -> None:
    full = status(400, {"message": "maximum context length"})
    with openai_server(expert_reply, lambda number, body: full if len(body["messages"]) > 4 else None) as server:
        evaluate(server, tmp_path)
    (tmp_path / "report.json").unlink()
    with openai_server(expert_reply) as server:
        evaluate(server, tmp_path)
        assert server.requests
    assert not any(PairedReport.load(tmp_path / "report.json").cuts("context").values())


def test_settings_of_tokens_that_do_not_reach_a_server_are_named() -> None:
    with pytest.warns(UserWarning, match="not told of template_options, thoughts"):
        policy_player(CONFIG.with_(thoughts="drop", template_options={"x": 1}), FunctionEngine(plainly))


@pytest.mark.parametrize("changes", [{"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}])
def test_a_cut_of_the_distribution_is_the_servers_affair(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"engine\.body"):
        policy_player(CONFIG.with_(**changes), FunctionEngine(plainly))


@pytest.mark.parametrize("damage", [b'{"key": "l", "x"', b"\xff\xfe", b"[" * 100_000, b"null\n", b"{}\n"])
def test_a_damaged_line_costs_its_own_episode(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, {})
    journal.add("k", {"x": 1})
    path.write_bytes(path.read_bytes() + damage)
    again = Journal(path, {})
    assert set(again.entries) == {"k"}
    again.add("l", {"x": 2})
    assert set(Journal(path, {}).entries) == {"k", "l"}


def test_the_command_evaluates_through_a_server(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with openai_server(expert_reply) as server:
        words = f"evaluate --engine openai --base-url {server.base_url} --model scripted --per-type 1 --out {tmp_path} "
        words += "--data generated --task-types pick --max-episode-steps 8"
        words += " --engine.input_price 2 --engine.output_price 8"
        assert main(words.split()) == 0
    said = capsys.readouterr().out
    assert "pick" in said
    assert "tokens read" in said
    assert json.loads((tmp_path / "usage.json").read_text())["all"]["cost"] > 0
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    for file in tmp_path.rglob("*"):
        assert b"sk-secret" not in file.read_bytes(), file


# Through transformers' own server ------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.trainers.conftest import make_tokenizer

    tokenizer = make_tokenizer(["go", "east", "west", "north", "south", "take", "coin", "look", "room", "Commands:"])
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1, initializer_range=0.3, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def address(model: Path) -> Iterator[str]:
    """Where a server of the model is, as soon as it answers."""
    for package in ("fastapi", "openai", "uvicorn"):
        pytest.importorskip(package, reason="needs the serve extra, which brings transformers' server")
    httpx = pytest.importorskip("httpx", reason="needs the openai extra")
    from transformers.cli.serve import Serve

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    server = Serve(str(model), device="cpu", dtype="float32", host=host, port=port, non_blocking=True)
    for _ in range(300):
        try:
            if httpx.get(f"http://{host}:{port}/health").is_success:
                break
        except httpx.TransportError:
            time.sleep(0.1)
    yield f"http://{host}:{port}/v1"
    server.kill_server()


@pytest.mark.slow
def test_a_real_server_gives_one_result_at_once_in_pieces_and_after_a_stop(address, model, tmp_path) -> None:
    prices = {"base_url": address, "input_price": 1.0, "output_price": 2.0}
    short = {"env": "coins", "split": "test", "task_types": (), "env_options": {}, "max_episode_steps": 3}
    config = CONFIG.with_(model=str(model), max_reply_tokens=6, eval_greedy=True, max_parallel=2, **short)

    def result(name: str, **options: Any) -> tuple[bytes, ...]:
        (tmp_path / name).mkdir(exist_ok=True)
        asking = config.with_(engine_options={**prices, **options})
        evaluate_policy(asking, per_type=1, folder=tmp_path / name).save_all(tmp_path / name)
        return written(tmp_path / name)

    undisturbed = result("undisturbed")
    used = json.loads(undisturbed[2])["all"]
    assert used["episodes"] == 6
    assert used["prompt_tokens"] > used["completion_tokens"] > 0
    assert used["cost"] > 0
    with pytest.raises(ServerError, match="budget"):
        result("stopped", token_budget=used["prompt_tokens"] // 2)
    assert 1 < len((tmp_path / "stopped" / "journal.jsonl").read_text().splitlines()) < 7
    assert result("stopped") == result("pieces", stream=True) == undisturbed
