"""Presets by name, and their options."""

from __future__ import annotations

import json

import pytest

from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.recipes import get_recipe, recipe_in, recipe_names


def test_the_ten_methods_exist_under_their_names() -> None:
    ablations = {"no_pairing", "mixed_norm", "fixed_gate", "no_pruning", "fixed_rho", "high_init"}
    assert set(recipe_names()) >= {"grpo", "skill_grpo", "skill0", "skillc"} | ablations
    for name in recipe_names():
        assert get_recipe(name).name == name
        assert json.loads(json.dumps(get_recipe(name).options)) == get_recipe(name).options


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("no_pairing", {"allocation": "drawn"}),
        ("mixed_norm", {"branch": "mixed"}),
        ("fixed_gate", {"gate": 0.5}),
        ("no_pruning", {"retire_by": []}),
        ("fixed_rho", {"rho": 0.5}),
        ("high_init", {"initial_gap": 0.3}),
    ],
)
def test_each_ablation_changes_one_thing(name: str, difference: dict[str, object]) -> None:
    letter, ablated = get_recipe("skillc").options, get_recipe(name).options
    assert {k: v for k, v in ablated.items() if v != letter[k]} == difference


def test_skillc_is_the_letter() -> None:
    options = get_recipe("skillc").options
    assert {k: options[k] for k in ("omega", "scope", "correction_mask", "key", "temperature", "rho_min")} == {
        "omega": 0.4,
        "scope": "batch",
        "correction_mask": "all",
        "key": "type",
        "temperature": 0.1,
        "rho_min": 0.1,
    }


def test_overrides_are_applied_and_recorded() -> None:
    preset = get_recipe("skillc", correction_mask="success", key="task", capacity=[2, 1])
    assert (preset.advantage.correction_mask, preset.contrast.key) == ("success", "task")
    assert preset.curriculum.pruning.capacity == (2, 1)
    assert preset.overrides == {"correction_mask": "success", "key": "task", "capacity": [2, 1]}
    assert preset.overridden(omega=0.1).overrides == {**preset.overrides, "omega": 0.1}
    assert get_recipe("skillc").overrides == {}


def test_mistakes_are_named_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'skillc'"):
        get_recipe("skilc")
    with pytest.raises(UnknownNameError, match="'correction_mask'"):
        get_recipe("skillc", correction_mas="all")
    with pytest.raises(UnknownNameError, match="'success'"):
        get_recipe("skillc", correction_mask="succes")
    with pytest.raises(UnknownNameError, match="csca"):
        get_recipe("skillc", advantage="cska")
    with pytest.raises(ConfigError, match="temperature"):
        get_recipe("skillc", temperature=0)
    with pytest.raises(ConfigError, match="omega"):
        get_recipe("skillc", omega=-1.0)
    with pytest.raises(ConfigError, match="key='type'"):
        get_recipe("no_pairing", key="task")


def test_skillc_never_prunes_the_shops_one_skill_unless_asked() -> None:
    for name in ("skillc", "no_pairing", "high_init"):
        pruning = recipe_in("webshop", name, {}).curriculum.pruning
        assert (pruning.capacity, pruning.retire_by) == ((1,), ())
    asked = recipe_in("skillc/WebShop-v0", "skillc", {"retire_by": ("gap",)})
    assert asked.curriculum.pruning.retire_by == ("gap",)
    assert recipe_in("alfworld", "skillc", {}) == get_recipe("skillc")


def test_skill0s_budget_acts_in_the_shop_too() -> None:
    curriculum = recipe_in("webshop", "skill0", {}).curriculum.start(("shopping",), total_steps=30)
    curriculum.update({"shopping": 0.9}, {"shopping": 0.1}, 10)
    assert curriculum.active == ("shopping",)
    curriculum.update({"shopping": 0.9}, {"shopping": 0.1}, 20)
    assert curriculum.active == ()
    early = recipe_in("webshop", "skill0", {}).curriculum.start(("shopping",), total_steps=30)
    early.update({"shopping": 0.1}, {"shopping": 0.2}, 5)
    assert early.active == ()
    always = recipe_in("webshop", "skill_grpo", {}).curriculum.start(("shopping",), total_steps=30)
    always.update({"shopping": 0.1}, {"shopping": 0.2}, 25)
    assert always.active == ("shopping",)


def test_without_pairs_the_correction_can_be_none() -> None:
    assert get_recipe("no_pairing").curriculum.gating.lam == 1.0
    without = get_recipe("no_pairing", lam=0).curriculum.start(("a",), total_steps=1)
    without.update({"a": 1.0}, {"a": 0.0}, 0)
    assert (without.lam("a"), without.gate("a") > 0.9) == (0.0, True)
