"""Inspect: its mock model plays pairs; metrics and provenance are read from the log on disk."""

import math
import subprocess
import sys

import pytest
from scripted import MAKE, check_record, expert_reply, pairs, run_blocks

pytest.importorskip("inspect_ai", reason="needs the inspect extra, in an environment of its own: make test-adapters")

from inspect_ai import eval as inspect_eval
from inspect_ai.log import read_eval_log
from inspect_ai.model import ContentReasoning, ContentText, ModelOutput, ModelUsage, get_model

from skillc_gym.adapters.inspect_ai import skill_task


def scripted(messages, _tools, _choice, _config):
    chat = [{"role": message.role, "content": message.text} for message in messages]
    output = ModelOutput.from_content("mockllm", expert_reply(chat))
    # Without usage Inspect counts tokens itself, with a tokenizer from the network.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


@pytest.fixture
def model():
    return get_model("mockllm/model", custom_outputs=scripted, memoize=False)


def records_of(log):
    return [sample.scores["success"].metadata for sample in log.samples]


def play(model, folder, **limits):
    """Records and metrics, as they stand in the log."""
    task = skill_task(MAKE, pairs(3, seed=4), **limits)
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
    success, average = log.results.scores
    metrics = {name: found.value for name, found in success.metrics.items()}
    return records_of(log), {**metrics, average.name: average.metrics["mean"].value}


def test_pairs_and_provenance_survive_the_round_trip(model, tmp_path):
    records, metrics = play(model, tmp_path)
    assert (metrics["1"], metrics["0"], metrics["all"], metrics["average_score"]) == (1.0, 0.0, 0.5, 0.5)
    assert metrics["gap"] == 1.0
    assert metrics["gap_stderr"] == metrics["stderr"] == 0.0  # every pair has the same mean and the same gap
    records.sort(key=lambda record: (record["group_id"], -record["condition"]))
    for record, request in zip(records, pairs(3, seed=4), strict=True):
        check_record(record, request)


@pytest.mark.parametrize("most", [1, 5])
def test_a_limit_of_inspect_truncates(model, tmp_path, most):
    records, metrics = play(model, tmp_path, message_limit=most)
    assert metrics["all"] == 0.0
    assert {(record["truncated"], record["terminated"]) for record in records} == {(True, False)}
    assert max(record["steps"] for record in records) <= 2


def test_a_chat_that_is_too_long_ends_the_episode(tmp_path):
    def full(messages, *asked):
        if len(messages) <= 4:
            return scripted(messages, *asked)
        output = ModelOutput.from_content("mockllm", "The maximum context length is 9.", stop_reason="model_length")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    records, _ = play(get_model("mockllm/model", custom_outputs=full, memoize=False), tmp_path)
    assert {(record["malformed"], record["truncated"]) for record in records if record["steps"] > 1} == {(0, True)}
    assert max(record["steps"] for record in records) <= 2


def test_thoughts_that_a_server_gives_apart_are_part_of_the_reply(tmp_path):
    def apart(*asked):
        output = scripted(*asked)
        thought, _, said = output.completion.partition("</think>")
        reasoning = ContentReasoning(reasoning=thought.removeprefix("<think>"))
        output.choices[0].message.content = [reasoning, ContentText(text=said)]
        return output

    records, metrics = play(get_model("mockllm/model", custom_outputs=apart, memoize=False), tmp_path)
    assert metrics["1"] == 1.0
    assert {record["malformed"] for record in records} == {0}


def test_the_average_score_is_over_all_epochs(tmp_path):
    begun = []

    def tired_after_the_first_epoch(messages, *more):
        begun.extend(messages[1:] if messages[1:] == messages[-1:] else [])
        return scripted(messages[len(begun) > 6 :], *more)  # without the skill's message it looks around

    model = get_model("mockllm/model", custom_outputs=tired_after_the_first_epoch, memoize=False)
    _, metrics = play(model, tmp_path, epochs=2)
    assert metrics["average_score"] == metrics["all"] == 0.25


def test_a_single_pair_has_no_standard_error(model, tmp_path):
    (log,) = inspect_eval(skill_task(MAKE, pairs()), model=model, log_dir=str(tmp_path), display="none")
    assert math.isnan(log.results.scores[0].metrics["gap_stderr"].value)


BY_NAME = """
import sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
said = ModelOutput.from_content("mockllm", "<action>look</action>")
said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=lambda *_: said)
asked = {"tasks": 2, "max_episode_steps": 3}
eval(sys.argv[1], task_args=asked, model=model, log_dir=".", display="none")
"""


@pytest.mark.parametrize("name", ["alfworld", "webshop"])
def test_the_tasks_of_the_package_are_found_by_name(name, tmp_path):
    """As ``inspect eval skillc_gym/alfworld`` finds them: by the entry point, outside of a checkout."""
    subprocess.run([sys.executable, "-c", BY_NAME, f"skillc_gym/{name}"], cwd=tmp_path, check=True)
    (written,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(written))
    assert (log.status, log.eval.task) == ("success", f"skillc_gym/{name}")
    assert [record["condition"] for record in records_of(log)] == [1, 0, 1, 0]
    assert len({record["task_id"] for record in records_of(log)}) == 2


def test_the_page_runs(model, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path))
    assert "gap" in run_blocks("inspect.md")["measure"](model)
