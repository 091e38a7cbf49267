"""Rows that a stranger may have written: ids like buttons, numbers without end, text that no file can hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_shop import SmallShop

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.env import WebShopEnv

LABELS = ("Buy Now", "FEATURES", "ATTRIBUTES", "Next >", "< PREV", "Search")


def row(asin="B000000000", **changes):
    plain = {
        "asin": asin, "name": "Red rug", "full_description": "A rug.", "small_description": ["soft"], "query": "rug",
        "pricing": "$10.0", "images": ["x"], "category": "garden", "product_category": "Home › Rugs",
        "customization_options": {"color": [{"value": "red"}]},
    }  # fmt: skip
    return {**plain, **changes}


def catalog_of(folder, *rows, attributes=None):
    text = rows if isinstance(rows[0], str) else [json.dumps(entry) for entry in rows]
    (folder / "items_shuffle.json").write_text(f"[{', '.join(text)}]")
    entry = {"instruction": "find a rug", "attributes": ["soft"], "instruction_attributes": ["soft"]}
    asked = {json.loads(one)["asin"]: entry for one in text if len(one) < 5_000} if attributes is None else attributes
    (folder / "items_ins_v2.json").write_text(json.dumps(asked))
    return open_catalog(folder)


@pytest.mark.parametrize("compat", ["fixed", "upstream"])
@pytest.mark.parametrize("label", LABELS)
def test_a_product_called_like_a_button_never_raises(label, compat):
    env = WebShopEnv(data=SmallShop(makers=(), extra=[{"asin": label, "title": "Thing red"}]), compat=compat)
    env.reset(seed=0)
    env.step("search[thing]")
    observation, reward, ended, _, info = env.step(f"click[{label.lower()}]")
    assert (reward, ended) == (0.0, False)
    opens = compat == "fixed" and label not in ("Next >", "Search")
    assert info["page"] == ("item" if opens else "results")
    assert info["action_valid"] is (opens or label in ("Next >", "< PREV"))
    assert ("Thing red" in observation) is (info["page"] == "item" or not info["action_valid"])


def test_a_button_of_the_page_comes_before_a_product_of_its_name():
    extra = [{"asin": "< Prev", "title": "Thing"}] + [{"title": f"Thing {n}"} for n in range(30)]
    env = WebShopEnv(data=SmallShop(makers=(), extra=extra))
    env.reset(seed=0)
    env.step("search[thing]")
    env.step("click[next >]")
    assert "Page 1 " in env.step("click[< prev]")[0]


def test_goals_without_weights_are_drawn_evenly():
    extra = [{"title": f"Thing {n}", "instruction_attributes": ()} for n in range(8)]
    env = WebShopEnv(data=SmallShop(makers=(), extra=extra))
    drawn = [env.reset(seed=seed)[1]["task_id"] for seed in range(200)]
    assert set(drawn) == set(env.task_ids)
    counts = np.unique(drawn, return_counts=True)[1]
    assert counts.min() > 10


@pytest.mark.parametrize("place", ["pricing", "name", "unused"])
def test_a_number_without_end_costs_its_row_at_most(tmp_path, place):
    huge = json.dumps(row("B000000001", **{place: "HUGE"})).replace('"HUGE"', "9" * 100_000)
    catalog = catalog_of(tmp_path, json.dumps(row()), huge, json.dumps(row("B000000002")))
    assert len(catalog) == (2 if place == "pricing" else 3)
    assert catalog.load_report.skipped == (place == "pricing")
    WebShopEnv(data=catalog).reset(seed=0)
    entry = json.dumps({"instruction": "find", "attributes": ["soft"], "rank": "HUGE"})
    text = f'{{"B000000000": {entry}}}'.replace('"HUGE"', "7" * 100_000)
    (tmp_path / "items_ins_v2.json").write_text(text)
    assert open_catalog(tmp_path).product(0).attributes == ("soft",)


def test_halves_of_surrogate_pairs_are_replaced(tmp_path):
    half = "\ud83d"
    odd = row("B00" + half, name=f"Rug {half} red", customization_options={f"co{half}": [{"value": f"re{half}"}]})
    entry = {"instruction": f"find a rug{half}", "attributes": [f"soft{half}"], "instruction_attributes": []}
    catalog = catalog_of(tmp_path, odd, attributes={"B00" + half: entry})
    assert catalog.product(0).asin == "B00\ufffd"
    assert catalog.load_report.mended
    env = WebShopEnv(data=catalog, observation_mode="text_rich")
    said = [env.reset(seed=0)[0]]
    said += [env.step(action)[0] for action in ("search[rug]", "click[b00\ufffd]", "click[re\ufffd]", "click[buy now]")]
    assert all(text.encode() for text in said)


@pytest.mark.parametrize("mode", ["text", "text_rich", "html", "url"])
def test_what_no_file_can_hold_is_no_action(mode):
    env = WebShopEnv(data=SmallShop(), observation_mode=mode)
    env.reset(seed=0)
    observation, *_, info = env.step("search[rug \ud800]")
    assert (info["action_valid"], info["page"]) == (False, "index")
    assert observation.encode()
    assert env.step("search[rug 😀]")[-1]["page"] == "results"


def test_attributes_without_number_or_end_make_no_purchase_wait(tmp_path):
    said = ["x" * 65, *(f"soft{n} attribute" for n in range(900))]
    asked = [f"s{n} attribution" for n in range(900)]
    entry = {"instruction": "find a rug", "attributes": said, "instruction_attributes": asked}
    instruction = {"instruction": "a rug", "instruction_attributes": asked, "instruction_options": []}
    (tmp_path / "items_human_ins.json").write_text(json.dumps({"B000000000": [instruction]}))
    catalog = catalog_of(tmp_path, row(), attributes={"B000000000": entry})
    assert catalog.product(0).attributes == tuple(said[1:101])
    notes = [note.reason.partition(":")[0] for note in catalog.load_report if " of 90" in note.reason]
    assert notes == ["attributes", "instruction_attributes", "human instruction"]
    for kind in ("synthetic", "human"):
        env = WebShopEnv(data=catalog, goals=kind)
        assert env.goals.goal(0).attributes == tuple(asked[:100])
        assert 0 <= env.best_score(f"{kind}/0") <= 1
