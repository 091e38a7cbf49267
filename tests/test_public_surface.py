"""The public surface: exported names resolve, signatures are those documented, what pages quote is so."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import skillc_gym
import trainers
from skillc_gym import InternalizationCurriculum
from skillc_gym.errors import MissingExtraError, needs_extra
from trainers.advantages import csca

ROOT = Path(__file__).resolve().parents[1]

NEED_TORCH = ("trainers.losses", "trainers.learner", "trainers.backends")
ROOMS = (
    *("skill_library", "skillc_gym", "skillc_gym.adapters", "skillc_gym.curricula", "skillc_gym.curriculum"),
    *("skillc_gym.envs", "skillc_gym.episodes", "skillc_gym.vector", "skillc_gym.wrappers"),
    *("trainers", "trainers.advantages", "trainers.allocation", "trainers.config", "trainers.memory"),
    *("trainers.recipes", *NEED_TORCH),
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_exported_name_resolves(room: str):
    if room in NEED_TORCH:
        pytest.importorskip("torch", reason="needs the train extra")
    module = importlib.import_module(room)
    names = list(getattr(module, "__all__", ()))
    assert sorted(names) == sorted(set(names))
    assert [name for name in names if getattr(module, name, None) is None] == []


def parameters(room: str, name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(importlib.import_module(room), name)).parameters


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("skillc/ALFWorld-v0", "split data task_types engine generator"),
        ("skillc/WebShop-v0", "data goals split observation_mode noun_tagger compat seed_prices"),
        ("skillc/WebShopBrowser-v0", "transport url render_mode"),
    ],
)
def test_environments_take_the_documented_arguments(name: str, arguments: str):
    if "Browser" in name:
        pytest.importorskip("selenium", reason="needs the browser extra")
    room, _, entry = str(gym.spec(name).entry_point).partition(":")
    given = parameters(room, entry)
    assert set(arguments.split()) <= set(given)
    if "transport" in given:
        assert [given[each].default for each in ("transport", "url", "render_mode")] == ["served", None, None]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("advantages.Contrast", "decay clip bias_correction"),
        ("advantages.rloo", "returns task"),
        ("advantages.grpo", "returns task eps"),
        ("advantages.gigpo", "returns task anchors rewards gamma step_weight std"),
        ("advantages.gae", "rewards values gamma lam"),
        ("losses.opsd", "student teacher"),
        ("losses.grpo_opsd", "student teacher"),
        ("losses.sdar", "student teacher beta"),
        ("losses.skill_sd", "student teacher old"),
        ("losses.rlsd_weight", "student teacher advantages lam clip"),
        ("losses.generalised_jsd", "student_logits teacher_logits beta"),
    ],
)
def test_the_fields_functions_have_the_documented_signatures(name: str, arguments: str):
    """Their values are tested beside them."""
    room, _, function = name.partition(".")
    if room == "losses":
        pytest.importorskip("torch", reason="needs the train extra")
    assert " ".join(parameters(f"trainers.{room}", function)) == arguments


def test_options_of_the_curriculum_and_of_skillcs_credit_are_the_documented_ones():
    options = {"temperature": 0.1, "rho_min": 0.1, "alpha_val": 0.7, "lam": 1.0, "tau_retire": 0.0}
    curriculum = InternalizationCurriculum(["heat", "cool"], **options, capacity=(6, 3, 0), total_steps=180)
    curriculum.update({"heat": 0.9, "cool": 0.5}, {"heat": 0.1, "cool": 0.5}, 0)
    assert curriculum.gap("heat") > curriculum.gap("cool") == 0.0
    assert 0.0 < curriculum.gate("cool") < curriculum.gate("heat") < 1.0
    assert curriculum.rho_with("heat") > curriculum.rho_with("cool")
    assert curriculum.lam("heat") > 0.0
    assert curriculum.n_plus("heat", 8) == 6
    known = {"omega": 0.4, "eps": 1e-6, "scope": "batch", "correction_mask": "all", "success": None}
    found = csca([1, 0, 0, 1], ["a"] * 4, [1, 1, 0, 0], [0.5] * 4, **known)
    assert (found.shape, found.dtype) == ((4,), np.float64)


def test_verbs_and_ids_that_others_name_stay():
    assert all(callable(each) for each in (trainers.train, trainers.evaluate, trainers.get_recipe))
    assert {skillc_gym.ALFWORLD_ID, skillc_gym.WEBSHOP_ID, "skillc/WebShopBrowser-v0"} <= set(gym.registry)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SkillInjektion'"):
        _ = skillc_gym.SkillInjektion
    assert set(skillc_gym.__all__) <= set(dir(skillc_gym))
    with pytest.raises(ImportError):
        exec("from skillc_gym import SkillInjektion")


def test_importing_the_package_imports_what_it_registers_and_no_more():
    program = "import sys, skillc_gym; print(*sorted(name for name in sys.modules if name.startswith('skillc_gym.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"chat", "envs", "errors", "lazy", "values", "version"}


@pytest.mark.parametrize("statement", ["import no_such_package", "from pytest import no_such_name"])
def test_a_package_of_another_version_is_not_called_missing(statement):
    said = f"pytest cannot be imported.*{statement.split()[-1]}.*extra 'dev'"
    with pytest.raises(MissingExtraError, match=said), needs_extra("pytest", "dev"):
        exec(statement)


def test_the_quoted_skill_is_the_skill():
    page = (ROOT / "docs" / "skills.md").read_text()
    quoted = re.search(r"^```markdown\n(.*?)\.\.\.\n```", page, re.DOTALL | re.MULTILINE)[1]
    assert (ROOT / "skill_library" / "alfworld" / "heat" / "SKILL.md").read_text().startswith(quoted)


MODULES = "spaces adapters.chat_env chat testing wrappers.skill_injection wrappers.action_format vector.paired"


@pytest.mark.parametrize("module", [*MODULES.split(), "vector.collect", "curricula.difficulty", "curricula.skills"])
def test_the_examples_in_docstrings_hold(module):
    result = doctest.testmod(importlib.import_module(f"skillc_gym.{module}"))
    assert result.attempted
    assert not result.failed
