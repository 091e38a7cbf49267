"""The public surface: exported names resolve, signatures are those documented, what pages quote is so."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import skillc_gym
import trainers
from skillc_gym.errors import MissingExtraError, needs_extra

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


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("skillc/ALFWorld-v0", "split data task_types engine generator"),
        ("skillc/WebShop-v0", "data goals split observation_mode noun_tagger compat seed_prices"),
        ("skillc/WebShopBrowser-v0", "transport='served' url=None render_mode=None"),
        ("skillc_gym.curricula:CurriculumOptions", "temperature rho_min alpha_val lam tau_retire capacity total_steps"),
        ("trainers.advantages:csca", "returns task condition correction success options"),
        ("trainers.advantages:Csca", "omega eps scope correction_mask branch"),
        ("trainers.advantages:Contrast", "decay clip bias_correction"),
        ("trainers.advantages:rloo", "returns task"),
        ("trainers.advantages:grpo", "returns task eps"),
        ("trainers.advantages:gigpo", "returns task anchors rewards gamma step_weight std"),
        ("trainers.advantages:gae", "rewards values gamma lam"),
        ("trainers.losses:opsd", "student teacher"),
        ("trainers.losses:grpo_opsd", "student teacher"),
        ("trainers.losses:sdar", "student teacher beta"),
        ("trainers.losses:skill_sd", "student teacher old"),
        ("trainers.losses:rlsd_weight", "student teacher advantages lam clip"),
        ("trainers.losses:generalised_jsd", "student_logits teacher_logits beta"),
    ],
)
def test_what_takes_arguments_takes_the_documented_ones(place: str, arguments: str):
    """What they do is tested beside them; a function of the field's takes no other."""
    if "Browser" in place or "losses" in place:
        extra = "selenium" if "Browser" in place else "torch"
        pytest.importorskip(extra, reason="needs the browser extra, or train's")
    room, _, name = str(gym.spec(place).entry_point if place in gym.registry else place).partition(":")
    given = inspect.signature(getattr(importlib.import_module(room), name)).parameters
    known = {**given, **{f"{each.name}={each.default!r}": each for each in given.values()}}
    assert set(arguments.split()) <= set(known)
    if room.startswith("trainers"):
        assert arguments.split() == list(given)


def test_verbs_and_ids_that_others_name_stay():
    assert all(map(callable, (trainers.train, trainers.evaluate, trainers.get_recipe)))
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
