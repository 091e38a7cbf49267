"""The tutorials of one's own method, skills and package: their blocks are run as they stand, and the method trains."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from skill_library import load_library

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


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


def test_the_skills_serve_the_coin_collector(folder: Path) -> None:
    assert load_library(folder / "my_skills").for_task("hard").name == "general+back"


def test_a_package_brings_a_library_by_name(folder: Path) -> None:
    package = folder / "my_package" / "skills"
    package.parent.mkdir()
    (folder / "my_skills").rename(package)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    info = folder / "my_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    page = (DOCS / "my-environment.md").read_text(encoding="utf-8")
    named = re.search(r'^colour-skills = "(.*?)"', page, re.MULTILINE)
    assert named is not None
    (info / "entry_points.txt").write_text(f"[skillc_gym.libraries]\ncolour-skills = {named[1]}\n")
    assert load_library("colour-skills").for_task("easy").name == "general+back"


def test_the_advantage_is_that_of_leaving_one_out(folder: Path) -> None:
    import my_method  # type: ignore[import-not-found]

    from trainers.advantages.base import RolloutBatch

    batch = RolloutBatch.build(
        returns=[1.0, 0.0, 0.0, 1.0], task=list("aaab"), task_type=["t"] * 4, condition=[1, 0, 0, 1]
    )
    assert my_method.LeaveOneOut()(batch).values.tolist() == [1.0, -0.5, -0.5, 0.0]


def test_the_method_trains(folder: Path, toy_folder: Path) -> None:
    pytest.importorskip("trl", reason="needs the train extra")
    from tests.trainers.toys import toy_config
    from trainers.training import run

    config = toy_config(toy_folder, method="my_method:RECIPE", run=str(folder / "run"), steps=1, validate_every=1)
    run(config)
    assert (folder / "run" / "policy" / "model.safetensors").exists()
    settings = json.loads((folder / "run" / "config.json").read_text())
    assert settings["method"] == "my_method:RECIPE"
