"""Run folders: what is written is whole, what was damaged is noticed, and a disk that refuses is said in words."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skillc_gym.errors import CheckpointError, ConfigError, StorageError
from trainers.config import TrainConfig
from trainers.tracking import checkpoints, run_folder
from trainers.tracking.checkpoints import META
from trainers.tracking.files import (
    MAX_LINE_BYTES,
    NO_WEIGHTS,
    damage,
    read_object,
    recover_folder,
    storing_weights,
    swap_folder,
    weights_sha256,
)
from trainers.tracking.run_folder import POLICY_FILES, RunFolder, provenance

CONFIG = TrainConfig(model="m")
META_VALUES = {"config": CONFIG.to_json(), "task_digest": "d", "method": {}, "counters": {}}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    found = RunFolder(tmp_path / "run")
    found.prepare(CONFIG, {})
    return found


def save(folder: RunFolder, step: int, keep: int = 9) -> Path:
    partial = folder.saved.partial(step)
    (partial / "weights").write_bytes(b"w" * step)
    (partial / "deep").mkdir()
    (partial / "deep" / "more").write_bytes(b"m")
    return folder.saved.commit(partial, step, {**META_VALUES, "step": step}, keep)


def test_records_without_their_checkpoints_are_written_over_by_the_same_run_alone(folder, tmp_path) -> None:
    theirs = save(folder, 1)
    mine, own = RunFolder(tmp_path / "mine"), CONFIG.with_(learning_rate=0.5)
    config = CONFIG.with_(resume=str(theirs))
    assert mine.to_resume(config) == theirs, "into a new folder"
    mine.prepare(own, {})
    mine.append({"event": "train", "step": 1})
    assert mine.to_resume(own) is None, "the same run may be made again"
    for other in (config, CONFIG):
        with pytest.raises(ConfigError, match=r"holds another run \(learning_rate\)"):
            mine.to_resume(other)


def test_nor_by_the_same_run_on_other_tasks(folder: RunFolder) -> None:
    folder.prepare(CONFIG, {"digest": "these"})
    folder.append({"event": "train", "step": 1})
    assert folder.to_resume(CONFIG, "these") is None
    with pytest.raises(ConfigError, match=r"holds another run \(data\)"):
        folder.to_resume(CONFIG, "others")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "pytorch_model-00001-of-00002.bin"])
def test_weights_of_either_form_are_hashed(tmp_path: Path, name: str) -> None:
    found = {weights_sha256(tmp_path)}
    for content in (b"one", b"other"):
        (tmp_path / name).write_bytes(content)
        found.add(weights_sha256(tmp_path))
    assert len(found) == 3


def test_hashes_of_weights_that_were_not_hashed_then_are_no_difference() -> None:
    assert not checkpoints._differ(f"{'a' * 64} {NO_WEIGHTS}", f"{'a' * 64} {'b' * 64}")
    assert checkpoints._differ(f"{'a' * 64} {NO_WEIGHTS}", f"{'c' * 64} {'b' * 64}")
    assert checkpoints._differ("a", "a b")


# Metrics -------------------------------------------------------------------------------------------------------------


def test_a_run_of_two_revisions_is_of_none_that_is_clean(folder: RunFolder, tmp_path: Path, monkeypatch: Any) -> None:
    def written(revision: str, checkpoint: Path | None) -> Any:
        monkeypatch.setattr(run_folder, "provenance", lambda: {"git": {"revision": revision, "changed": False}})
        folder.write_versions(checkpoint)
        return read_object(folder.path / "versions.json")["git"]

    saved = folder.checkpoints_path / "step-000001"
    assert written("a", None) == written("a", saved) == {"revision": "a", "changed": False}
    assert written("b", saved) == {"revision": "b", "changed": True, "begun": "a"}
    assert written("b", saved)["changed"], "once of two, it stays so"
    assert not written("b", None)["changed"], "begun anew"


@pytest.mark.parametrize(
    "damaged",
    [b'{"step": 2, "ev', b"[1]", b'{"step": "2"}', b" " * (MAX_LINE_BYTES + 5) + b"x"],
)
def test_a_damaged_line_never_takes_valid_ones_with_it(folder: RunFolder, damaged: bytes) -> None:
    lines = [json.dumps({"step": n}).encode() for n in (1, 3, 4)]
    folder.metrics_path.write_bytes(b"\n".join([lines[0], damaged, *lines[1:]]) + b"\n")
    assert [record["step"] for record in folder.metrics()] == [1, 3, 4]
    for step in (3, 4):
        (folder.transcripts_path / f"validation-{step:06d}.jsonl").touch()
    folder.truncate(3)
    assert [path.name for path in folder.transcripts_path.iterdir()] == ["validation-000003.jsonl"]
    assert [record["step"] for record in folder.metrics()] == [1, 3]
    folder.append({"step": 4, "loss": float("nan")})
    assert folder.metrics()[-1] == {"step": 4, "loss": None}
    assert len(folder.metrics_path.read_bytes().splitlines()) == 3


def test_numbers_of_numpy_and_torch_are_numbers(folder: RunFolder) -> None:
    found = {"mean": np.float32(0.5), "count": np.int64(3), "won": np.True_, "none": np.float64("nan")}
    folder.append({"step": 1, **found, "loss": torch.tensor(2.0)})
    assert folder.metrics() == [{"step": 1, "mean": 0.5, "count": 3, "won": True, "none": None, "loss": 2.0}]


# Checkpoints ---------------------------------------------------------------------------------------------------------


def test_a_state_that_could_not_be_read_again_is_not_written(folder: RunFolder, monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_OBJECT_BYTES", 4000)
    older = save(folder, 1)
    partial = folder.saved.partial(2)
    (partial / "weights").touch()
    with pytest.raises(CheckpointError, match="keep less"):
        folder.saved.commit(partial, 2, {**META_VALUES, "step": 2, "memory": "x" * 4000}, 1)
    assert folder.to_resume(CONFIG) == older


HARMS = {
    "changed": lambda path: (path / "weights").write_bytes(b"x" + (path / "weights").read_bytes()[1:]),
    "cut": lambda path: (path / "deep" / "more").write_bytes(b""),
    "lost": lambda path: (path / "weights").unlink(),
    "nonsense": lambda path: (path / META).write_text("{"),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(folder: RunFolder, harm: Any) -> None:
    older, newer = save(folder, 1), save(folder, 2)
    assert folder.to_resume(CONFIG) == newer
    harm(newer)
    with pytest.raises(CheckpointError, match="step-000002' is damaged"):
        folder.to_resume(CONFIG.with_(resume=str(newer)))
    half_written = folder.saved.partial(4)
    again = RunFolder(folder.path)
    again.prepare(CONFIG, {})
    assert not half_written.exists()
    assert again.to_resume(CONFIG) == older
    assert list(again.saved.damaged) == [newer]
    again.truncate(1)
    assert again.saved.complete() == [older]
    assert newer.with_name(f"aside-{newer.name}").is_dir()
    # The step is done again, and the fallback is not the one that is cleared away.
    assert save(again, 2, keep=1) == newer
    assert again.saved.complete() == [newer]


def test_checkpoints_of_older_versions_have_no_list_of_files(folder: RunFolder) -> None:
    path = save(folder, 1)
    meta = json.loads((path / META).read_text())
    del meta["files"]
    (path / META).write_text(json.dumps(meta))
    assert folder.to_resume(CONFIG) == path


def test_checkpoints_are_ordered_by_number_and_going_on_from_an_earlier_one_keeps_what_it_saves(folder) -> None:
    for step in (999_999, 1_000_000, 5):
        save(folder, step)
    (folder.checkpoints_path / "step-000007").mkdir()  # without its file it is none
    (folder.checkpoints_path / "step-more").mkdir()
    (folder.checkpoints_path / "step-more" / META).write_text("{}")
    assert [path.name for path in folder.saved.complete()] == ["step-000005", "step-999999", "step-1000000"]
    folder.truncate(5)
    assert save(folder, 6, keep=1).is_dir()
    assert [path.name for path in folder.saved.complete()] == ["step-000006"]


def test_a_swap_that_was_interrupted_is_mended(tmp_path: Path) -> None:
    new, final = tmp_path / "new", tmp_path / "final"
    final.mkdir()
    (final / "old").touch()
    final.rename(tmp_path / ".old-final")  # the power is lost here
    recover_folder(final)
    assert (final / "old").exists()
    new.mkdir()
    (new / "fresh").touch()
    swap_folder(new, final)
    assert [entry.name for entry in final.iterdir()] == ["fresh"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["final"]


# Locks ---------------------------------------------------------------------------------------------------------------


def test_the_lock_makes_the_folder_or_says_why_not_and_is_not_blamed_for_what_goes_wrong_under_it(tmp_path) -> None:
    with pytest.raises(OSError, match="mine") as caught, RunFolder(tmp_path / "new" / "run").locked():
        raise OSError("mine")
    assert not isinstance(caught.value, StorageError)
    assert (tmp_path / "new" / "run" / ".lock").exists()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="choose another"), RunFolder(tmp_path / "file").locked():
        pass


def test_two_cannot_write_to_one_run_and_a_lock_ends_with_its_holder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="the lock is made of flock")
    for _ in range(2):
        with RunFolder(tmp_path).locked(), pytest.raises(ConfigError, match="at work in"), RunFolder(tmp_path).locked():
            pass


# Disks ---------------------------------------------------------------------------------------------------------------


def test_a_disk_that_refuses_is_said_in_words(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    older, words = save(folder, 1), "no space left"

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    partial = folder.saved.partial(2)
    (partial / "weights").touch()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=words):
        folder.saved.commit(partial, 2, {**META_VALUES, "step": 2}, 1)
    with pytest.raises(StorageError, match=words):
        folder.write_transcripts("train-000001", [])
    with pytest.raises(StorageError, match=words), folder.new_policy() as path:
        path.mkdir()
    monkeypatch.undo()
    assert RunFolder(folder.path).to_resume(CONFIG) == older


def test_a_full_disk_under_torch_is_said_in_words_and_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="CUDA"), storing_weights(tmp_path):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch = pytest.importorskip("torch", reason="needs the train extra")
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this machine")
    (tmp_path / "weights.pt").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="cannot be written"), storing_weights(tmp_path):
        torch.save({"w": torch.zeros(100_000)}, tmp_path / "weights.pt")


# Policies ------------------------------------------------------------------------------------------------------------


def test_a_policy_is_replaced_whole_and_the_same_one_once_more_leaves_its_card(folder: RunFolder) -> None:
    for content, cards in (("one", []), ("one", ["card"]), ("two", [])):
        with folder.new_policy() as path:
            path.mkdir()
            (path / "weights").write_text(content)
        assert (folder.policy_path / "weights").read_text() == content
        assert damage(folder.policy_path, read_object(folder.policy_path / POLICY_FILES)) is None
        assert [path.read_text() for path in folder.policy_path.glob("README.md")] == cards
        (folder.policy_path / "README.md").write_text("card")
        assert not list(folder.path.glob(".partial*"))
    with pytest.raises(KeyboardInterrupt), folder.new_policy() as path:  # noqa: PT012
        path.mkdir()
        (path / "weights").write_text("half")
        raise KeyboardInterrupt
    assert (folder.policy_path / "weights").read_text() == "two"
    folder.prepare(CONFIG, {})
    assert not list(folder.path.glob(".partial*"))


def test_the_folder_of_an_evaluation_is_no_run(folder: RunFolder) -> None:
    (folder.path / "report.json").touch()
    folder.truncate(None)
    assert folder.to_resume(CONFIG) is None, "a run that was evaluated into its own folder goes on"
    folder.metrics_path.unlink()
    with pytest.raises(ConfigError, match=r"holds an evaluation.*run="):
        folder.to_resume(CONFIG)


def test_the_folder_of_something_else_is_no_run(folder: RunFolder, tmp_path: Path) -> None:
    assert folder.to_resume(CONFIG) is None, "begun, and interrupted before its first record"
    other = RunFolder(tmp_path / "other")
    (other.path / "before").mkdir(parents=True)
    (other.path / ".lock").touch()
    assert other.to_resume(CONFIG) is None, "an evaluation of its start may lie in it"
    (other.path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"holds something else.*config\.json.*run="):
        other.to_resume(CONFIG)


@pytest.mark.parametrize("name", ["metrics.jsonl", "transcripts/mine.jsonl"])
@pytest.mark.parametrize("line", ['{"step": 1, "loss": 2}', '{"epoch": 1}', '{"step": 1, "event": "epoch"}', "text"])
@pytest.mark.parametrize("config", [None, {"model_type": "llama"}])
def test_logs_of_something_else_are_not_written_over(tmp_path: Path, name: str, line: str, config: Any) -> None:
    (theirs := tmp_path / name).parent.mkdir(exist_ok=True)
    theirs.write_text(line)
    if config:
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=rf"holds something else \({name.split('/', maxsplit=1)[0]}\).*run="):
        RunFolder(tmp_path).to_resume(CONFIG)


def test_a_run_names_the_instructions_that_its_rounding_depends_on():
    assert provenance()["machine"].endswith(f", {torch.backends.cpu.get_cpu_capability()}")
