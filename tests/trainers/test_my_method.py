"""One's own method, skills and package, as the tutorials have them, and a world in one file: all train."""

import json
import re
import sys
from pathlib import Path

import gymnasium
import pytest

from scripts.newcomer import lines_of
from skill_library import load_library
from skillc_gym.envs import registry
from skillc_lab.cli.main import main as skillc
from skillc_lab.studies import read_method
from tests.trainers.toy_world import spec, write_library

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str) -> list[str]:
    """A page's Python blocks."""
    return [line.text for line in lines_of((DOCS / page).read_text(encoding="utf-8")) if line.python]


(METHOD,) = blocks("my-method.md")
_, SKILLS = blocks("ten-minutes.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    exec(compile(SKILLS, "ten-minutes.md", "exec"), {})
    (tmp_path / "my_method.py").write_text(METHOD, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_method", raising=False)
    return tmp_path


def test_a_folder_or_a_package_by_name_serves_the_coin_collector(folder: Path) -> None:
    assert load_library(folder / "my_skills").for_task("hard").name == "general+back"
    package, info = folder / "my_package" / "skills", folder / "my_package-1.dist-info"
    package.parent.mkdir()
    (folder / "my_skills").rename(package)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    page = (DOCS / "my-environment.md").read_text(encoding="utf-8")
    (named,) = re.findall(r'^colour-skills = "(.*?)"', page, re.MULTILINE)
    (info / "entry_points.txt").write_text(f"[skillc_gym.libraries]\ncolour-skills = {named}\n")
    assert load_library("colour-skills").for_task("easy").name == "general+back"


def test_the_method_leaves_one_out_and_trains(folder: Path, toy_folder: Path) -> None:
    pytest.importorskip("trl", reason="needs the train extra")
    import my_method  # type: ignore[import-not-found]

    from tests.trainers.toys import toy_config
    from trainers.advantages.base import RolloutBatch
    from trainers.training import run

    batch = RolloutBatch.build(
        returns=[1.0, 0.0, 0.0, 1.0], task=list("aaab"), task_type=["t"] * 4, condition=[1, 0, 0, 1]
    )
    assert my_method.LeaveOneOut()(batch).values.tolist() == [1.0, -0.5, -0.5, 0.0]
    run(toy_config(toy_folder, method="my_method:RECIPE", run=str(folder / "run"), steps=1, validate_every=1))
    assert (folder / "run" / "policy" / "model.safetensors").exists()
    assert json.loads((folder / "run" / "config.json").read_text())["method"] == "my_method:RECIPE"
    assert read_method("my_method:RECIPE") == ("my_method:RECIPE", {})
    assert read_method("my_method:RECIPE:clip=0.1") == ("my_method:RECIPE", {"clip": 0.1})


@pytest.fixture
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The world, known for one test; the test works in an empty folder."""
    pytest.importorskip("trl", reason="needs the extra 'train'")
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.chdir(tmp_path)
    registry.register(spec(write_library(tmp_path / "skills")))
    yield
    del gymnasium.registry["skillc-tests/Lamps-v0"]


@pytest.mark.slow
@pytest.mark.usefixtures("lamps")
def test_a_world_in_one_file_is_trained_in_by_the_same_commands():
    chat = "env=lamps chat=compact data=generated max_reply_tokens=12 per_type=3"
    made = "tools make-policy --env lamps --out policy --episodes 96 --batches 10 --batch-episodes 8 --max-length 512"
    assert skillc(made.split()) == 0
    demonstrated = json.loads(Path("policy/policy_card.json").read_text())["demonstrator_success"]
    assert demonstrated["blown"]["without"] == 0.0
    assert demonstrated["blown"]["with"] > 0.9

    assert skillc(f"evaluate {chat} model=policy split=test out=before".split()) == 0
    train = f"train {chat.removesuffix(' per_type=3')} model=policy preset=skillc steps=2 tasks_per_step=2 group_size=4"
    assert skillc(f"{train} panel_per_type=2 validate_every=2 learning_rate=1e-4 beta=0 run=run".split()) == 0
    assert skillc(f"evaluate {chat} model=run/policy split=test out=after".split()) == 0
    assert skillc(["report", "run"]) == 0

    for folder in ("before", "after"):
        report = json.loads(Path(folder, "report.json").read_text())
        assert sorted(pair["task_type"] for pair in report["outcomes"]) == ["blown"] * 3 + ["sound"] * 3
    shown = [json.loads(line) for line in Path("after/transcripts.jsonl").read_text().splitlines()]
    texts = {episode["skill_text"] for episode in shown if episode["condition"] and episode["task_type"] == "blown"}
    assert len(texts) == 1
    assert "Mend the fuse before you press a switch." in texts.pop()
    assert Path("run/report").is_dir()
