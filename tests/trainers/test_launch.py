"""Processes: what a launcher was asked for, the signals that they hear, and that two train to what one does."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from skillc_lab.planning import typed_words
from tests.trainers.conftest import make_model
from tests.trainers.test_train import weights
from tests.trainers.toys import GRADED
from trainers.base import Trajectory, interrupts, launch_warning, stop_requests
from trainers.base.processes import asked_processes
from trainers.config import TrainConfig
from trainers.training import RunResult, run


@pytest.mark.parametrize(
    ("words", "env", "asked"),
    [
        ("accelerate launch --num_processes 2 --cpu scripts/train.py", {}, 2),
        ("accelerate launch --num-processes=4 scripts/train.py steps=3", {"WORLD_SIZE": "1"}, 4),
        ("torchrun --nproc_per_node 2 --nnodes=3 -m skillc_lab", {}, 6),
        ("torchrun --nproc-per-node=gpu -m skillc_lab", {"WORLD_SIZE": "8"}, 8),
        ("torchrun --nnodes 2:2 --nproc_per_node 2 -m skillc_lab", {"WORLD_SIZE": "4"}, 4),
        ("bash", {}, None),
        ("", {"WORLD_SIZE": "x"}, None),
    ],
)
def test_how_many_processes_a_launcher_was_asked_for(words: str, env: dict[str, str], asked: int | None) -> None:
    assert asked_processes(words.split(), env) == asked


def test_a_launcher_that_started_fewer_is_told_of() -> None:
    words = ["accelerate", "launch", "--num_processes", "2", "--cpu", "scripts/train.py"]
    warning = launch_warning(1, words, {}) or ""
    assert "asked for 2" in warning
    assert "torchrun --nproc_per_node 2" in warning
    assert launch_warning(2, words, {}) is launch_warning(1, [], {}) is None


SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_signal_asks_and_the_second_interrupts(first: signal.Signals, second: signal.Signals) -> None:
    before, asked = handlers(), []

    def hear_both() -> None:
        signal.raise_signal(first)
        signal.raise_signal(second)

    with pytest.raises(KeyboardInterrupt), stop_requests(lambda: asked.append(1)):
        hear_both()
    assert asked == [1]
    assert handlers() == before


def test_requests_within_a_command_come_first() -> None:
    asked: list[int] = []

    def hear_two() -> None:
        with interrupts():
            with stop_requests(lambda: asked.append(1)):
                signal.raise_signal(signal.SIGTERM)
            assert asked == [1]
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        hear_two()


def test_a_request_to_end_cancels_what_a_loop_runs() -> None:
    cancelled: list[bool] = []

    async def work() -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(KeyboardInterrupt), interrupts():
        asyncio.run(work())
    assert cancelled == [True]


def test_other_threads_leave_signals_alone() -> None:
    before, seen = handlers(), []

    def work() -> None:
        with interrupts(), stop_requests(lambda: None):
            seen.extend(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == before


ROOT = Path(__file__).resolve().parents[2]
FSDP2 = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
}


def launched(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a module or a file in two processes, to their end."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
    return subprocess.run(
        [*launcher, "--standalone", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def train_with_two(config: TrainConfig, *, sharded: bool, dies: bool = False, **env: str) -> str:
    """Runs ``skillc train`` in two processes; gives what they say."""
    plain = TrainConfig(model=config.model).to_json()
    words = typed_words({name: value for name, value in config.to_json().items() if value != plain[name]})
    words += [f"model={config.model}", f"env=tests.trainers.toys:{config.env}"]
    entry, launch = ("tests.trainers.fsdp_on_processor", FSDP2) if sharded else ("skillc_lab", {})
    done = launched(Path(config.run), "-m", entry, "train", *words, **launch, **env)
    assert (done.returncode == 0) is not dies, done.stderr[-4000:]
    return done.stderr


def assert_same_run(one: RunResult, folder: Path, *, atol: float = 1e-5) -> None:
    """Holds the policy and the metrics of a run's folder against those of another run, which must have learned."""
    expected, got = weights(one.policy), weights(folder / "policy")
    assert expected.keys() == got.keys()
    assert all(torch.allclose(expected[name], got[name], atol=atol) for name in expected)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for mine, theirs in zip(one.metrics, lines, strict=True):
        assert (theirs["step"], theirs["event"]) == (mine["step"], mine["event"])
        if mine["event"] == "train":
            assert mine["grad_norm"] > 0
            assert (theirs["tasks"], theirs["success"]) == (mine["tasks"], mine["success"])
            assert theirs["loss"] == pytest.approx(mine["loss"], abs=1e-5)
            assert theirs["grad_norm"] == pytest.approx(mine["grad_norm"], rel=1e-3)
            assert theirs.get("kl", 0.0) == pytest.approx(mine.get("kl", 0.0), abs=1e-5)


SETTINGS = {"kl_coef": 0.1, "transcripts_every": 0, **GRADED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sharded", "changes", "atol"),
    [
        (False, {"optimiser": "adafactor", "num_minibatches": 2}, 1e-5),
        (True, {"precision": "float32"}, 1e-5),
        # How many rows a pass has decides how bfloat16 rounds.
        (True, {"precision": "bfloat16"}, 1e-4),
        (True, {"load_best_at_end": True}, 1e-5),
    ],
    ids=["adapters", "sharded-adapters", "sharded-adapters-bfloat16", "sharded-adapters-best"],
)
def test_two_processes_train_to_what_one_does(sharded: bool, changes: dict[str, Any], atol: float, toy: Any) -> None:
    adapters = {"lora_rank": 2, "gradient_checkpointing": True}
    one, two = (toy(steps=2, validate_every=2, **SETTINGS, **adapters, **changes) for _ in range(2))
    whole, said = run(one), train_with_two(two, sharded=sharded)
    # One process speaks for both.
    assert said.count("step    1/2") == 1
    assert "Warning: The launcher" not in said
    assert_same_run(whole, Path(two.run), atol=atol)


LEAVING = """
import time
import torch.distributed as distributed
from pathlib import Path
from trainers.base import end_together
distributed.init_process_group("gloo")
first = distributed.get_rank() == 0
if first:
    time.sleep(1)
    Path("written").touch()
end_together()
assert Path("written").exists()
assert not distributed.is_initialized()
end_together()
"""


def test_no_process_leaves_before_the_one_that_writes(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    done = launched(tmp_path, "leaving.py")
    assert done.returncode == 0, done.stderr


def dies_once(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """A metric that kills the second process at the third update, unless that has happened already."""
    mark = Path(os.environ.get("SKILLC_TEST_MARK", os.devnull))
    updates = int(mark.read_text()) + 1 if mark.is_file() and os.environ.get("RANK") == "1" else 0
    if updates:
        mark.write_text(str(updates))
    if updates == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
def test_a_lost_process_ends_the_run_and_one_process_or_two_go_on(sharded: bool, toy: Any, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"steps": 3, "validate_every": 3}
    if sharded:
        changes = {"steps": 4, "validate_every": 1, "method": "skillc+forward_distillation"}
    metrics = ("tests.trainers.test_launch:dies_once",)
    one, two = (toy(metrics=metrics, save_every=1, **SETTINGS, **changes) for _ in range(2))
    whole = run(one)
    (tmp_path / "mark").write_text("0")
    train_with_two(two, sharded=sharded, dies=True, SKILLC_TEST_MARK=str(tmp_path / "mark"))
    if sharded:
        said = train_with_two(two, sharded=True)
        assert "(step 2)" in said
        # By each process, as it begins and after each of two updates: validation and the next rollouts share a copy.
        tensors = len(list(make_model(40, layers=1).parameters()))
        assert said.count(f"gathered {3 * tensors} tensors") == 2
    else:
        # As the launched command named it.
        assert run(two.with_(env=f"tests.trainers.toys:{two.env}")).finished
    assert_same_run(whole, Path(two.run))
