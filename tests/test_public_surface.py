"""The public surface: every exported name resolves, and the documented signatures work as they are written."""

from __future__ import annotations

import importlib
import inspect

import gymnasium as gym
import numpy as np
import pytest

import skillc_gym
import trainers
from skillc_gym import InternalizationCurriculum
from trainers.advantages import Contrast, csca

HOUSES = {"data": "generated", "split": "valid_unseen", "generator": {"games_per_type": 1, "size": "small"}}
NEED_TORCH = ("trainers.losses", "trainers.learner", "trainers.backends")
ROOMS = (
    "skill_library",
    "skillc_gym",
    "skillc_gym.adapters",
    "skillc_gym.curricula",
    "skillc_gym.curriculum",
    "skillc_gym.envs",
    "skillc_gym.episodes",
    "skillc_gym.vector",
    "skillc_gym.wrappers",
    "trainers",
    "trainers.advantages",
    "trainers.allocation",
    "trainers.config",
    "trainers.memory",
    "trainers.recipes",
    *NEED_TORCH,
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_exported_name_resolves(room: str):
    if room in NEED_TORCH:
        pytest.importorskip("torch", reason="needs the train extra")
    module = importlib.import_module(room)
    names = list(getattr(module, "__all__", ()))
    assert sorted(names) == sorted(set(names))
    assert [name for name in names if getattr(module, name, None) is None] == []


def test_the_house_takes_the_documented_arguments():
    env = gym.make(
        "skillc/ALFWorld-v0",
        split="valid_unseen",
        data="generated",
        task_types=["heat", "cool"],
        engine="native",
        max_episode_steps=2,
        generator=HOUSES["generator"],
    )
    observation, info = env.reset(seed=0, options={"task_id": env.unwrapped.task_ids[0]})
    assert observation.startswith("-= Welcome")
    assert info["task_id"] == env.unwrapped.task_ids[0]
    assert info["task_id"].startswith("valid_unseen/")
    assert {"task_type", "goal", "admissible_commands", "won", "task_score", "action_valid"} <= set(info)
    assert env.unwrapped.action_mask().any()
    _, reward, terminated, truncated, info = env.step("no such command")
    assert (reward, terminated, truncated, bool(info["action_valid"])) == (0.0, False, False, False)
    assert env.step("look")[2:4] == (False, True)


def test_the_shop_takes_the_documented_arguments():
    env = gym.make(
        "skillc/WebShop-v0",
        data="generated",
        goals="synthetic",
        split="all",
        observation_mode="text",
        noun_tagger=None,
        compat="fixed",
        seed_prices=0,
        max_episode_steps=3,
    )
    _, info = env.reset(seed=0)
    assert info["task_id"].startswith("synthetic/")
    assert {"available_actions", "has_search_bar", "clickables", "won", "task_score", "action_valid"} <= set(info)
    assert info["has_search_bar"]
    _, _, _, _, info = env.step("search[rug]")
    assert info["clickables"]
    assert not info["has_search_bar"]


def test_the_browsers_signature_is_the_documented_one():
    pytest.importorskip("selenium", reason="needs the browser extra")
    spec = gym.spec("skillc/WebShopBrowser-v0")
    module, _, name = str(spec.entry_point).partition(":")
    given = inspect.signature(getattr(importlib.import_module(module), name).__init__).parameters
    assert {"transport", "url", "render_mode"} <= set(given)
    assert (given["transport"].default, given["url"].default, given["render_mode"].default) == ("served", None, None)


def test_the_curriculum_has_the_documented_signature():
    curriculum = InternalizationCurriculum(
        ["heat", "cool"],
        temperature=0.1,
        rho_min=0.1,
        alpha_val=0.7,
        lam=1.0,
        tau_retire=0.0,
        capacity=(6, 3, 0),
        total_steps=180,
    )
    curriculum.update({"heat": 0.9, "cool": 0.5}, {"heat": 0.1, "cool": 0.5}, 0)
    assert curriculum.gap("heat") > curriculum.gap("cool") == 0.0
    assert 0.0 < curriculum.gate("cool") < curriculum.gate("heat") < 1.0
    assert curriculum.rho_with("heat") > curriculum.rho_with("cool")
    assert curriculum.lam("heat") > 0.0
    assert curriculum.n_plus("heat", 8) == 6
    other = InternalizationCurriculum(["heat", "cool"])
    other.load_state_dict(curriculum.state_dict())
    assert (other.active, other.gap("heat")) == (curriculum.active, curriculum.gap("heat"))


def test_skillc_credit_has_the_documented_signature():
    found = csca(
        [1, 0, 0, 1],
        ["a"] * 4,
        [1, 1, 0, 0],
        [0.5] * 4,
        omega=0.4,
        eps=1e-6,
        scope="batch",
        correction_mask="all",
        success=None,
    )
    assert (found.shape, found.dtype) == ((4,), np.float64)
    masked = csca([1, 0], "ab", [0, 0], [1, 1], scope="group", correction_mask="success", success=[1, 0])
    assert masked[0] > masked[1]
    contrast = Contrast(decay=0.9, clip=2.0, bias_correction=True)
    contrast.update({"heat": 0.5})
    assert contrast.value("heat") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
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
    module = importlib.import_module(f"trainers.{room}")
    assert " ".join(inspect.signature(getattr(module, function)).parameters) == arguments


def test_verbs_and_ids_that_others_name_stay():
    assert all(callable(each) for each in (trainers.train, trainers.evaluate, trainers.get_recipe))
    assert {skillc_gym.ALFWORLD_ID, skillc_gym.WEBSHOP_ID, "skillc/WebShopBrowser-v0"} <= set(gym.registry)
