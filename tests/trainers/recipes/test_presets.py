"""Presets by name, and their options."""

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.commands.compare import CompareOptions
from skillc_lab.commands.demonstration import DemoOptions
from skillc_lab.planning import load_setup, setup_names
from trainers.advantages import Grpo
from trainers.config import RECOMMENDED, TrainConfig
from trainers.memory import DistractedLibrary
from trainers.recipes import Recipe, get_recipe, recipe_in, recipe_names
from trainers.recipes.method import Method
from trainers.recipes.parts.allocation import BySignal, Half

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "docs/ten-minutes.md", "docs/training.md")


def test_recipes_and_their_options_are_named_and_can_be_written_down() -> None:
    assert set(recipe_names()) >= {"grpo", "skill_grpo", "skill0", "skillc"}
    for name in recipe_names():
        recipe = get_recipe(name)
        assert (recipe.name, recipe.options["allocation"]) == (name, recipe.allocation.name)
        assert json.loads(json.dumps(recipe.options)) == recipe.options
    assert {get_recipe(name).advantage for name in ("grpo", "skill_grpo", "skill0")} == {Grpo()}
    assert get_recipe("contrastive_relabelling").advantage == Grpo(group_by="condition"), "conditions do not compete"


def test_skillc_is_the_letter_and_each_ablation_changes_one_thing() -> None:
    letter = get_recipe("skillc").options
    names = ("omega", "scope", "correction_mask", "key", "temperature", "rho_min", "alpha_val", "beta_freq")
    assert [letter[name] for name in names] == [0.4, "batch", "all", "type", 0.1, 0.1, 0.7, 0.01]
    for name, difference in {
        "no_pairing": {"allocation": "drawn"},
        "mixed_norm": {"branch": "mixed"},
        "fixed_gate": {"gate": 0.5},
        "no_pruning": {"retire_by": []},
        "fixed_rho": {"rho": 0.5},
        "high_init": {"initial_gap": 0.3},
    }.items():
        assert {k: v for k, v in get_recipe(name).options.items() if v != letter[k]} == difference


def test_one_constant_names_the_method_that_is_trained_where_none_is_named() -> None:
    """The study's recommendation: settings, comparisons, demonstrations, planned set-ups, the pages' command lines."""
    assert TrainConfig(model="m").method == DemoOptions().method == CompareOptions.methods[1] == RECOMMENDED
    assert {load_setup(name).config.method for name in setup_names()} == {RECOMMENDED}
    text = "".join((ROOT / page).read_text("utf-8") for page in PAGES)
    assert "skillc train model=" in text
    assert "skillc train method=" not in text


def test_overrides_are_applied_and_recorded() -> None:
    preset = get_recipe("skillc", correction_mask="success", key="task", capacity=[2, 1])
    assert (preset.advantage.correction_mask, preset.contrast.key) == ("success", "task")
    assert preset.curriculum.pruning.capacity == (2, 1)
    assert preset.overrides == {"correction_mask": "success", "key": "task", "capacity": [2, 1]}
    assert preset.overridden(omega=0.1).overrides == {**preset.overrides, "omega": 0.1}
    assert get_recipe("skillc").overrides == {}
    assert get_recipe("skillc", **{"omega": 0.2, "advantage.omega": 0.2}).advantage.omega == 0.2
    with pytest.raises(ConfigError, match=r"omega and advantage\.omega are one option, with two values"):
        get_recipe("skillc", **{"omega": 0.2, "advantage.omega": 0.5})


@pytest.mark.parametrize(
    ("name", "options", "nearest"),
    [
        ("skillc", {"correction_mask": "succes"}, "'success'"),
        ("skillc", {"advantage": "cska"}, "csca"),
        ("grpo+relabeling", {}, "relabelling"),
    ],
)
def test_mistakes_are_named_with_the_nearest_name(name: str, options: dict[str, Any], nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=nearest):
        get_recipe(name, **options)


def test_skillc_never_prunes_the_shops_one_skill_unless_asked() -> None:
    for name in ("skillc", "no_pairing", "high_init"):
        pruning = recipe_in("webshop", name, {}).curriculum.pruning
        assert (pruning.capacity, pruning.retire_by) == ((1,), ())
    asked = recipe_in("skillc/WebShop-v0", "skillc", {"retire_by": ("gap",)})
    assert asked.curriculum.pruning.retire_by == ("gap",)
    assert recipe_in("alfworld", "skillc", {}) == get_recipe("skillc")


def test_skill0s_budget_acts_in_the_shop_too() -> None:
    late, harmed = (recipe_in("webshop", "skill0", {}).curriculum.start(("shopping",), total_steps=30) for _ in "ab")
    active = []
    for step in (10, 20):
        late.update({"shopping": 0.9}, {"shopping": 0.2}, step)
        active.append(late.active)
    harmed.update({"shopping": 0.1}, {"shopping": 0.2}, 5)
    assert [*active, harmed.active] == [("shopping",), (), ()]


def test_without_pairs_the_correction_can_be_none() -> None:
    assert get_recipe("no_pairing").curriculum.gating.correction_weight == 1.0
    without = get_recipe("no_pairing", correction_weight=0).curriculum.start(("a",), total_steps=1)
    without.update({"a": 1.0}, {"a": 0.0}, 0)
    assert (without.lam("a"), without.gate("a") > 0.9) == (0.0, True)


def test_a_recipe_of_ones_own_has_neither_curriculum_nor_skills_that_it_does_not_name() -> None:
    plain = Recipe(name="mine", summary="")
    assert (plain.uses_skills, plain.curriculum.steers, plain.contrast, plain.advantage) == (False, False, None, Grpo())
    assert "tau_retire" not in plain.options
    method = Method(Recipe(name="mine", summary="", allocation=Half()), ("a",), total_steps=10)
    for step in range(10):
        assert method.curriculum.update({"a": 0.0}, {"a": 1.0}, step) == ()
        assert method.n_plus("a", 8) == 4


def test_a_curriculums_options_have_no_effect_in_a_method_without_one_and_say_so() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what a demonstration sets for all methods
        assert recipe_in("alfworld", "grpo", {"tau_retire": 0.05, "eps": 0.1}) == get_recipe("grpo", eps=0.1)
    for env, name, options in (
        ("alfworld", "half_skill_grpo", {"tau_retire": 0.05, "rho": 0.25}),
        ("webshop", "grpo", {"tau_retire": 0.05}),
    ):
        with pytest.warns(UserWarning, match=r"(rho=0.25|tau_retire=0.05) has no effect: .* has no curriculum"):
            assert recipe_in(env, name, options) == get_recipe(name)
    for name in ("skill0", "skillc+need"):
        with pytest.warns(UserWarning, match="rho=0.3 has no effect: allocation=.* asks for no share"):
            recipe_in("alfworld", name, {"rho": 0.3})
    for key, value, reason in (("capacity", (1, 0), "budget"), ("margin", 1.0, "gap")):
        with pytest.warns(UserWarning, match=rf"{key} of skillc has no effect.* method.retire_by='\[\"{reason}\"\]'"):
            recipe_in("webshop", "skillc", {key: value})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recipe_in("webshop", "skillc", {key: value, "retire_by": (reason,)})
            recipe_in("alfworld", "skillc", {key: value})
    with pytest.raises(UnknownNameError, match="eps"):
        recipe_in("alfworld", "grpo", {"epz": 0.1})


REFUSED = {
    "leave": ["gigpo+baseline"],
    "named once": ["skillc+relabelling+relabelling"],
    "must be a dataclass on": ["grpo allocation=trainers.recipes:get_recipe"],
    "does not give": ["ppo advantage=grpo"],
    "reads values, for which no loss has a head": ["grpo advantage=ppo"],
    "asks a curriculum": ["grpo allocation=paired"],
    "asks no curriculum": ["skillc allocation=never"],
    "would never act": ["opsd allocation=always"],
    "no loss reads what": ["opsd+baseline"],
    "would teach what the library says": ["d2skill+forward_distillation"],
    "needs returns of successes": ["d2skill+baseline"],
    "take the place of": ["no_pairing+need", "skill0+need", "contrastive_relabelling+baseline"],
    # What reads which skills were chosen wants the memory that chooses.
    "goes with memory='guided_library' alone": ["skill_grpo advantage=utilisation", "skillrl allocation=difficulty"],
    # Distraction takes no memory's place, and a text that does not fit never counts as the skill.
    r"d2skill\+distraction: the addition distraction would take the place": ["d2skill+distraction"],
    "would never be shown": ["grpo+distraction"],
    "lost rollouts would teach": ["pi_distill+distraction"],
    r"distraction needs .*add it to skill_grpo, guarded_imitation": [
        *("skillc+distraction", "skill_grpo+baseline+distraction", "skill_grpo+distraction group_by=task"),
    ],
    # Relabelling needs tasks that are played in both conditions.
    r"skill0\+relabelling: relabelled_rows would never make a row": ["skill0+relabelling"],
    "allocation='never'": ["contrastive_relabelling allocation=never"],
    "plain_rows would never make a row": ["pi_distill allocation=never"],
    "key='type'": ["no_pairing key=task"],
}


@pytest.mark.parametrize(("says", "case"), [(says, case) for says, cases in REFUSED.items() for case in cases])
def test_a_part_that_does_not_fit_is_refused(says: str, case: str) -> None:
    name, *options = case.split()
    with pytest.raises(ConfigError, match=says):
        get_recipe(name, **dict(option.split("=") for option in options))


OUT_OF_RANGE = (
    *("grpo eps=-1.0", "skillrl bank_capacity=-1", "grpo+need memory=1.0", "skill_grpo+value prior=0.0"),
    *("opsd_jsd mixture=2", "opsd_jsd top_k=0", "rlsd start=1.5", "grpo clip=-0.5", "skillc temperature=0"),
)


@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_an_option_out_of_its_range_is_refused(case: str) -> None:
    name, option, value = re.split("[ =]", case)
    with pytest.raises(ConfigError, match=f"{option} must be"):
        get_recipe(name, **{option: json.loads(value)})


def test_additions_combine_with_any_recipe_in_any_order() -> None:
    recipe = get_recipe("grpo+relabelling+allocation", alpha=0.5, kappa=2.0)
    assert [loss.name for loss in recipe.losses] == ["policy", "relabelling"]
    assert recipe.name == "grpo+relabelling+allocation"
    assert recipe.allocation == BySignal(kappa=2.0)
    other = get_recipe("grpo+allocation+relabelling", alpha=0.5, kappa=2.0)
    assert replace(other, name=recipe.name) == recipe


def test_annealed_imitation_is_what_the_studies_played() -> None:
    played = get_recipe("guarded_imitation+annealed", group_by="condition")
    assert get_recipe("annealed_imitation").options == played.options


@pytest.mark.parametrize(
    "name", ["skill_grpo", "guarded_imitation", "context_distillation", "skill0", "static_withdrawal"]
)
def test_distraction_goes_where_all_may_see_the_skill(name: str) -> None:
    recipe = get_recipe(f"{name}+distraction", distracted_share=0.5)
    assert recipe.memory == DistractedLibrary(distracted_share=0.5)
    assert recipe.options["group_by"] == "text"
    assert "group_by" not in recipe.overrides


def test_allocation_and_advantage_change_together() -> None:
    assert get_recipe("skill05", allocation="half", advantage="grpo").options["advantage"] == "grpo"
    assert get_recipe("fixed_gate+forward_distillation", gate=0.8).options["gate"] == 0.8


def test_an_allocation_of_ones_own_is_named_by_its_module() -> None:
    recipe = get_recipe("grpo", allocation="tests.trainers.toy_extras:FirstType")
    assert recipe.options["allocation"] == "first_type"
    assert [Method(recipe, ("a", "b"), 1).n_plus(kind, 4) for kind in "ab"] == [4, 0]


def test_old_names_of_options_and_additions_are_understood() -> None:
    with pytest.warns(FutureWarning, match="lam is called correction_weight now"):
        assert get_recipe("skillc", lam=0.5) == get_recipe("skillc", correction_weight=0.5)
    with pytest.warns(FutureWarning, match="gate is called need now") as said:
        assert get_recipe("grpo+gate") == get_recipe("grpo+need")
    assert said[0].filename == __file__, "it points at who typed the name"
    with pytest.warns(FutureWarning, match="beta is called kl_coef now"):
        assert get_recipe("grpo", beta=0.1).losses[0].kl_coef == 0.1
    with pytest.raises(UnknownNameError, match="'beta'"):  # opsd has neither name
        get_recipe("opsd", beta=0.1)


@pytest.mark.parametrize("name", ["grpo+gate", "half_skill_grpo", "skillc"])
def test_a_state_that_an_older_version_wrote_is_taken(name: str) -> None:
    recipe = get_recipe(name.replace("gate", "need"))
    curriculum = {"temperature": 0.1, "rho": 0.5 if name == "half_skill_grpo" else None, "tau_retire": 0.05}
    older = {"lam" if key == "correction_weight" else key: value for key, value in recipe.options.items()}
    older |= {} if recipe.curriculum.steers else curriculum
    older["allocation"] = "paired" if older["allocation"] == "half" else older["allocation"]
    method = Method(recipe, ("a",), total_steps=4)
    state = {**method.state_dict(), "preset": name, "options": older}
    if not recipe.curriculum.steers:
        state["curriculum"] = {**state["curriculum"], "config": curriculum, "gap": {"a": 0.25}}
    method.load_state_dict(json.loads(json.dumps(state)))
    assert method.curriculum.gap("a") == (0.0 if recipe.curriculum.steers else 0.25)
