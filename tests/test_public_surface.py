"""The public surface: every exported name resolves, and signatures are the documented ones."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping

import gymnasium as gym
import numpy as np
import pytest

import skillc_gym
import trainers
from skillc_gym import InternalizationCurriculum
from trainers.advantages import csca

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
