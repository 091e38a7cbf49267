"""The demonstration with a shipped policy and a tiny panel: one method, two compared, and without training."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands import demo, demonstration
from skillc_lab.commands.demo import quick_policies, run_quick_demo
from skillc_lab.commands.demonstration import DemoOptions, check_same, run_demo, run_demo_versus
from tests.trainers.toys import episode
from trainers.base import model_folders, shipped_policy, shipped_trained_policy
from trainers.recipes import recipe_in
from trainers.rollout import tasks_of
from trainers.tracking import SilentProgress, write_json
from trainers.tracking.policy_settings import save_policy_settings
from trainers.warmstart import shipped_recipe

SMALL = {
    "env_options": {"generator": {"seed": 0, "games_per_type": 4, "size": "small"}},
    **{"tasks_per_step": 2, "group_size": 2, "panel_per_type": 1, "max_episode_steps": 3, "max_reply_tokens": 12},
    **{"validate_every": 1, "save_every": 1},
}
ARMS = ("sr_with_before", "sr_without_before", "sr_with_after", "sr_without_after")
KEYS = {
    *("finished", "env", "preset", "data", "seed", "seconds", "steps", "split", "games", "panel_sha256"),
    *(*ARMS, *(f"{arm}_interval" for arm in ARMS), "change_without", "gap_before", "gap_after"),
    *("page", "pictures", "transcripts"),
}


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


class StopsAfter(SilentProgress):
    """Presses Ctrl-C when a step's training record has come."""

    def __init__(self, step: int) -> None:
        self.step = step

    def record(self, record) -> None:
        if record["event"] == "train" and record["step"] == self.step:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_demonstration_goes_on_and_sums_up(tmp_path):
    options = DemoOptions(out=tmp_path, steps=2, held_out=1, held_out_split="valid_seen", train_options=SMALL)
    assert run_demo(options, progress=StopsAfter(2))["finished"] is False
    left = (tmp_path / "before" / "report.json").read_bytes()
    summary = run_demo(options, progress=SilentProgress())
    assert (tmp_path / "before" / "report.json").read_bytes() == left
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records if record["event"] == "train"] == [1, 2]
    assert set(summary) == KEYS
    assert json.loads((tmp_path / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert (summary["steps"], summary["split"], summary["games"]) == (2, "valid_seen", 6)
    for arm in ARMS:
        low, high = summary[f"{arm}_interval"]
        assert 0 <= low <= summary[arm] <= high <= 1
    points = 100 * (summary["sr_without_after"] - summary["sr_without_before"])
    assert summary["change_without"]["points"] == pytest.approx(points)
    for path in (summary["page"], *summary["pictures"].values(), *summary["transcripts"]):
        assert Path(path).stat().st_size > 0
    assert "Success on 6 held-out tasks" in demo.describe(summary)


def test_another_demonstration_or_something_else_does_not_go_into_a_folder(tmp_path):
    options = DemoOptions(out=tmp_path / "own", steps=2, train_options={"task_types": ("heat", "pick")})
    quick = DemoOptions(out=tmp_path / "quick", quick=True)
    for each in (options, quick):
        each.folder.mkdir()
        check_same(each)
        check_same(each)
    for other, named in (
        (replace(options, steps=3), "steps was 2 and is 3"),
        (replace(options, held_out=4), "held_out"),
        (replace(options, seed=5), "seed"),
        (replace(quick, quick=False), "quick was True"),
    ):
        with pytest.raises(ConfigError, match=named):
            check_same(other)
    (tmp_path / "before").mkdir()
    with pytest.raises(ConfigError, match=r"something else than a demonstration \(before\).*--out"):
        check_same(DemoOptions(out=tmp_path))


def test_the_training_is_that_of_the_train_command(tmp_path):
    options = DemoOptions(out=tmp_path, steps=7, seed=3, method="grpo")
    training = options.training()
    assert (training.steps, training.seed, training.method, training.run) == (7, 3, "grpo", str(tmp_path))
    assert replace(options, train_options={"task_sampling": "uniform"}).training().task_sampling == "uniform"
    assert (training.share_prefixes, training.engine_options) == (True, {"draft_tokens": 3})
    assert training.method_options == {"tau_retire": 0.05}, "skills of no visible use retire from generated games"
    assert replace(options, data="games.tar.xz").training().method_options == {}
    for theirs in ({"engine": "vllm"}, {"lora_rank": 2, "lora_dropout": 0.1}):
        other = replace(options, train_options=theirs).training()
        assert (other.share_prefixes, other.engine_options) == (False, {})


def test_the_start_knows_the_tasks(tmp_path, monkeypatch):
    options = DemoOptions(out=tmp_path, data="games.tar.xz")
    assert options.start == shipped_policy("alfworld", "shipped-real-hard")
    assert replace(options, env="webshop").start == tmp_path / "warm_start"
    assert replace(options, policy=tmp_path / "mine").start == tmp_path / "mine"
    coins = DemoOptions(out=tmp_path, env="coins")
    assert coins.training().model == str(tmp_path / "warm_start"), "none ships"
    monkeypatch.setattr(demonstration, "make_policy", made := Mock())
    demonstration._warm_start(coins, str)
    made.assert_called_once_with(shipped_recipe("coins"), coins.start)


def test_what_is_left_open_is_the_environments():
    shop = DemoOptions(env="webshop")
    assert (DemoOptions().split, DemoOptions().per_type) == ("valid_unseen", 40)
    assert (shop.split, shop.per_type) == ("test", 240)
    assert replace(shop, held_out=0).per_type is None
    assert replace(shop, held_out_split="valid").split == "valid"
    training = replace(shop, method="skillc").training()
    pruning = recipe_in(training.env, training.method, training.method_options).curriculum.pruning
    assert (pruning.capacity, pruning.retire_by) == ((1,), ())
    assert training.chat_options == {"role": "customer"}


@pytest.mark.slow
def test_the_shop_is_demonstrated_with_the_shipped_policy(tmp_path):
    few = {"tasks_per_step": 2, "group_size": 2, "panel_per_type": 2, "validate_every": 1, "save_every": 1}
    options = DemoOptions(out=tmp_path, env="webshop", steps=1, held_out=12, train_options=few)
    summary = run_demo(options, progress=SilentProgress())
    assert (summary["env"], summary["split"], summary["games"]) == ("webshop", "test", 12)
    assert summary["sr_with_before"] > 0.5 > summary["sr_without_before"]


# Two methods ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path):
    return DemoOptions(out=tmp_path / "run", steps=1, held_out=1, train_options=SMALL)


def test_lines_of_all_logs_come_whole_and_with_their_names(tmp_path):
    first, second, said = tmp_path / "a.log", tmp_path / "b.log", []
    first.write_text("of an earlier run\n")
    with demonstration.log_relay({"a": first, "longer": second}, said.append, every=3600) as pass_on:
        first.write_text(first.read_text() + "one\ntw")
        pass_on()
        assert said == ["a       one"]
        first.write_text(first.read_text() + "o\n")
        second.write_text("three\n")
    assert said == ["a       one", "a       two", "longer  three"]


def test_mistakes_are_found_before_a_process_starts_and_a_run_that_failed_is_named(two, monkeypatch):
    monkeypatch.setattr(demonstration, "run_jobs", Mock(side_effect=AssertionError("a process was started")))
    with pytest.raises(UnknownNameError, match="grop"):
        run_demo_versus(replace(two, versus="grop"), say=str)
    monkeypatch.setattr(demonstration, "run_jobs", lambda work, jobs, workers: ((job, False) for job in jobs.values()))
    with pytest.raises(ConfigError, match=r"guarded_imitation and grpo failed; .*grpo\.log says why"):
        run_demo_versus(two, say=str)


@pytest.mark.slow
def test_both_are_trained_and_shown_on_one_page(two, monkeypatch):
    begun: list[str] = []

    def here(work, jobs, workers):
        for path, job in jobs.items():
            begun.append(job.method)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"step of {job.method}\n")
            work(job)
            yield job, True
            if stop_after == job.method:
                raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "run_jobs", here)
    stop_after, said = "guarded_imitation", []
    with pytest.raises(KeyboardInterrupt):
        run_demo_versus(two, say=said.append)
    assert said == ["guarded_imitation  step of guarded_imitation"]
    stop_after = ""
    summary = run_demo_versus(two, say=str)
    assert begun == ["guarded_imitation", "grpo"]  # what was finished is not run again
    assert json.loads((two.folder / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert (summary["preset"], summary["beside"]["preset"]) == ("guarded_imitation", "grpo")
    for shared in ("sr_with_before", "sr_without_before", "panel_sha256", "steps", "seed"):
        assert summary[shared] == summary["beside"][shared]
    points = 100 * (summary["sr_without_after"] - summary["beside"]["sr_without_after"])
    assert summary["differences"]["without"]["points"] == pytest.approx(points)
    assert Path(summary["pictures"]["beside"]).stat().st_size > 1000
    assert "guarded_imitation minus grpo, without skills" in demo.describe(summary)


# Without training: shipped policies on a task per type, and what is said of them --------------------------------------


def test_the_command_shows_both_conditions_and_the_page(tmp_path, capsys):
    assert skillc(["demo", "--quick", "--held-out", "1", "--out", str(tmp_path)]) == 0
    said, aside = capsys.readouterr()
    page = tmp_path / "report" / "index.html"
    assert "Loading weights" not in aside
    assert "Success in per cent on 6 held-out tasks of valid_unseen" in said
    assert all(words in said for words in ("start, with the skill", str(page)))
    start = json.loads((tmp_path / "summary.json").read_text())["policies"]["start"]
    assert start["sr_with"] > start["sr_without"]
    assert "A policy that needs its skill" in page.read_text()


def test_a_trained_policy_stands_beside_its_start(tmp_path):
    options = DemoOptions(out=tmp_path / "out", env="webshop", policy=tmp_path / "policy", held_out=1)
    shutil.copytree(shipped_policy("webshop"), options.policy)
    result = run_quick_demo(options, progress=SilentProgress())
    assert list(result["policies"]) == ["start", "trained"]
    assert result["policies"]["start"] == result["policies"]["trained"]
    heads = re.split(r"\s{2,}", result["example"].split("\n")[2])
    assert heads == ["start, with the skill", "start, without", "trained, without"]
    text = demo.describe_quick_demo(result)
    assert [text.count(words) for words in ("gap", "No trained policy", "\ntrained ")] == [1, 0, 1]
    assert "before training" in Path(result["page"]).read_text()


def test_another_start_plays_with_its_own_settings(tmp_path):
    result = run_quick_demo(DemoOptions(out=tmp_path, model="shipped", held_out=1), progress=SilentProgress())
    assert json.loads((tmp_path / "start" / "evaluation.json").read_text())["max_episode_steps"] == 20
    assert "skillc train --model shipped" in demo.describe_quick_demo(result, "shipped")


def test_a_policy_of_ones_own_plays_and_trains_with_its_own_settings(tmp_path):
    policy = shutil.copytree(shipped_policy(), tmp_path / "policy")
    own = {"chat": "default", "chat_options": {}, "max_episode_steps": 14}
    save_policy_settings(policy, DemoOptions().training().with_(model=str(policy), **own))
    training = DemoOptions(policy=policy, steps=3).training()
    assert {name: getattr(training, name) for name in own} == own
    assert training.env_options == DemoOptions().training().env_options
    played = [demo._played(DemoOptions(policy=policy), place) for place in (policy, shipped_policy())]
    assert [each.max_episode_steps for each in played] == [14, 20]
    assert all(each.share_prefixes for each in played)
    assert DemoOptions(policy=policy).settings()["playing"] == own
    narrow = {"task_types": ("pick",), "env_wrappers": {"no:Wrapper": {}}, "engine": "choosing"}
    save_policy_settings(policy, DemoOptions().training().with_(model=str(policy), engine_options={}, **narrow))
    played = [demo._played(DemoOptions(policy=policy), place) for place in (policy, shipped_policy())]
    assert tasks_of(played[0]) == tasks_of(played[1])
    written = DemoOptions(policy=policy, train_options={"engine": "transformers"}).training()
    assert (written.engine, written.engine_options) == ("transformers", {})


def test_what_a_fetched_start_became_is_shown_beside_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path))
    options = DemoOptions(out=tmp_path / "out", model="smollm2-household")
    for name, there in (("smollm2-household", ["start"]), ("smollm2-household-trained", ["start", "trained"])):
        write_json(tmp_path / "models" / name / "config.json", {})
        assert list(quick_policies(options)) == there


def test_a_shipped_trained_policy_lies_beside_its_start(tmp_path, monkeypatch):
    shipped, options = shipped_policy("alfworld").name, DemoOptions(out=tmp_path / "out")
    monkeypatch.setattr(model_folders, "_POLICIES", tmp_path)

    def made(name: str) -> Path:
        write_json(tmp_path / name / "config.json", {})
        return tmp_path / name

    with pytest.raises(MissingDataError, match="skillc tools make-policy --env alfworld"):
        quick_policies(options)
    assert quick_policies(replace(options, policy=made("mine"))) == {"start": tmp_path / "mine"}
    made(shipped)
    assert shipped_trained_policy("alfworld") is None
    trained = made(f"{shipped}_trained")
    assert quick_policies(options)["trained"] == shipped_trained_policy("alfworld") == trained
    hard = made("checkpoint_hard")
    assert quick_policies(options) == {"start": hard}
    assert made("checkpoint_hard_trained") == shipped_trained_policy("alfworld")


def test_commands_stand_side_by_side():
    solved, failed = episode(won=True, actions=["go\x1b[31m"]), episode(won=False, actions=["look", "look"])
    shown = demo.side_by_side({"with": solved, "without": failed})
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert rows == [
        ["with", "without"],
        ["go?[31m", "look", "(2", "times)"],
        ["=", "solved", "in", "1", "steps", "=", "not", "solved", "in", "2", "steps"],
    ]


def test_no_page_is_opened_without_a_screen(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.webbrowser, "open", opened := Mock())
    monkeypatch.setenv("DISPLAY", ":0")
    assert not demo.open_page(tmp_path)
    monkeypatch.setattr(demo.sys.stdout, "isatty", lambda: True)
    assert demo.open_page(tmp_path)
    opened.assert_called_once_with(tmp_path.resolve().as_uri())
