"""Processes: what a launcher was asked for, the signals that they hear, and that two train to what one does."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.conftest import make_model
from tests.trainers.launched import LAUNCHER, ROOT, assert_same_run, train_with_two
from tests.trainers.toys import GRADED, toy_config
from trainers.base import Trajectory, asked_processes, interrupts, launch_warning, stop_requests
from trainers.training import run


@pytest.mark.parametrize(
    ("words", "env", "asked"),
    [
        ("accelerate launch --num_processes 2 --cpu scripts/train.py", {}, 2),
        ("accelerate launch --num-processes=4 scripts/train.py steps=3", {"WORLD_SIZE": "1"}, 4),
        ("torchrun --nproc_per_node 2 --nnodes=3 -m skillc_lab", {}, 6),
        ("torchrun --nproc-per-node=gpu -m skillc_lab", {"WORLD_SIZE": "8"}, 8),
        ("bash", {}, None),
        ("", {"WORLD_SIZE": "x"}, None),
    ],
)
def test_how_many_processes_a_launcher_was_asked_for(words: str, env: dict[str, str], asked: int | None) -> None:
    assert asked_processes(words.split(), env) == asked


def test_a_launcher_that_started_fewer_is_told_of() -> None:
    words = ["accelerate", "launch", "--num_processes", "2", "--cpu", "scripts/train.py"]
    warning = launch_warning(1, words, {})
    assert warning
    assert "asked for 2" in warning
    assert "torchrun --nproc_per_node 2" in warning
    assert launch_warning(2, words, {}) is None
    assert launch_warning(1, [], {}) is None


SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_signal_asks_and_the_second_interrupts(first: signal.Signals, second: signal.Signals) -> None:
    before, asked = handlers(), []

    def hear_two() -> None:
        with stop_requests(lambda: asked.append(1)):
            signal.raise_signal(first)
            assert asked == [1]
            signal.raise_signal(second)

    with pytest.raises(KeyboardInterrupt):
        hear_two()
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


def test_other_threads_leave_signals_alone() -> None:
    before, seen = handlers(), []

    def work() -> None:
        with interrupts(), stop_requests(lambda: None):
            seen.extend(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == before


ADAPTERS = {"lora_rank": 2, "gradient_checkpointing": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sharded", "changes", "atol"),
    [
        (False, {**ADAPTERS, "optimiser": "adafactor", "num_minibatches": 2}, 1e-5),
        (True, {**ADAPTERS, "precision": "float32"}, 1e-5),
        # How many rows a pass has decides how bfloat16 rounds.
        (True, {**ADAPTERS, "precision": "bfloat16"}, 1e-4),
    ],
    ids=["adapters", "sharded-adapters", "sharded-adapters-bfloat16"],
)
def test_two_processes_train_to_what_one_does(
    sharded: bool, changes: dict[str, Any], atol: float, toy_folder: Path, tmp_path: Path
) -> None:
    changes = {"steps": 2, "kl_coef": 0.1, "transcripts_every": 0, "validate_every": 2, **GRADED, **changes}
    one = run(toy_config(toy_folder, run=str(tmp_path / "one"), **changes))
    done = train_with_two(toy_config(toy_folder, run=str(tmp_path / "two"), **changes), tmp_path, sharded=sharded)
    # One process speaks for both.
    assert done.stderr.count("step    1/2") == 1
    assert "Warning: The launcher" not in done.stderr
    assert_same_run(one, tmp_path / "two", atol=atol)


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
    done = subprocess.run(
        [*LAUNCHER, "--standalone", "leaving.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
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
def test_a_lost_process_ends_the_run_and_one_process_or_two_go_on(
    sharded: bool, toy_folder: Path, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {"steps": 3, "validate_every": 3}
    if sharded:
        changes = {"steps": 4, "validate_every": 1, "method": "skillc+forward_distillation"}
    changes |= {"kl_coef": 0.1, "save_every": 1, "transcripts_every": 0, **GRADED}
    config = toy_config(toy_folder, metrics=("tests.trainers.test_launch:dies_once",), **changes)
    whole = run(config.with_(run=str(tmp_path / "whole")))
    (tmp_path / "mark").write_text("0")
    two = config.with_(run=str(tmp_path / "two"))
    mark = {"SKILLC_TEST_MARK": str(tmp_path / "mark")}
    train_with_two(two, tmp_path, sharded=sharded, env=mark, dies=True)
    if sharded:
        said = train_with_two(two, tmp_path, sharded=True).stderr
        assert "(step 2)" in said
        # By each process, as it begins and after each of two updates: validation and the next rollouts share a copy.
        tensors = len(list(make_model(40, layers=1).parameters()))
        assert said.count(f"gathered {3 * tensors} tensors") == 2
    else:
        # As the launched command named it.
        assert run(two.with_(env=f"tests.trainers.toys:{two.env}")).finished
    assert_same_run(whole, tmp_path / "two")
