"""Building under bad circumstances: killed, disturbed, without room; clear words, and nothing lost."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from skillc_gym.envs.webshop.catalog import Catalog, build_catalog, open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.goals import tables
from skillc_gym.envs.webshop.goals.nouns import keep_nouns, noun_tagger
from skillc_gym.errors import CatalogError

OPEN = "from skillc_gym.envs.webshop.catalog import open_catalog\nprint(len(open_catalog('generated', size={size})))"
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "


def start(code, cache):
    env = {**os.environ, "SKILLC_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=-1, stderr=-1, text=True)


def test_a_killed_build_is_made_again_once_for_all_who_want_it_and_leaves_nothing(tmp_path):
    killed = start(OPEN.format(size=5_000), tmp_path)
    while not list(tmp_path.glob("webshop/.building-*/products.bin")):
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert any((tmp_path / "webshop").glob(".building-*"))
    processes = [start(OPEN.format(size=5_000), tmp_path) for _ in range(3)]
    assert [process.communicate()[0] for process in processes] == ["5000\n"] * 3
    (folder,) = (tmp_path / "webshop").iterdir()
    assert len(Catalog(folder)) == 5_000


def test_an_empty_folder_by_another_name_is_built_in(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    build_catalog(GeneratedSource(size=20, seed=1), tmp_path / "link")
    assert len(Catalog(tmp_path / "real")) == 20


@pytest.mark.parametrize("limit", [100_000, 1_200_000])
def test_a_full_disk_is_an_error_that_names_the_remedy(tmp_path, limit):
    pytest.importorskip("resource")
    full = start(LIMITED.format(limit=limit) + OPEN.format(size=2_000), tmp_path)
    assert "SKILLC_CACHE" in full.communicate()[1].splitlines()[-1]
    assert not list((tmp_path / "webshop").iterdir())


@pytest.mark.parametrize("name", ["docs.npy", "human.json", "products.bin", "goals"])
def test_missing_and_damaged_parts_are_named(tmp_path, monkeypatch, name):
    monkeypatch.setattr("skillc_gym.envs.webshop.goals.tables._LARGE", 10)
    monkeypatch.setattr("skillc_gym.envs.webshop.search.searcher._SMALL", 10)
    folder = tmp_path / "shop"
    build_catalog(GeneratedSource(60), folder)
    path = next(folder.glob("goals-human-*")) / "product.npy" if name == "goals" else folder / name
    kept = path.read_bytes()
    path.write_bytes(b"x" * len(kept) if name == "products.bin" else kept[:9])
    for part in ("product", "listing"):
        with pytest.raises(CatalogError, match="damaged"):
            getattr(WebShopEnv(data=folder, goals="human").catalog, part)(0)


def test_a_catalogue_built_in_the_place_of_another_is_opened_and_gets_nothing_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_LARGE", 10)
    folder = tmp_path / "shop"
    build_catalog(GeneratedSource(50, seed=0), folder)
    old = open_catalog(folder)
    assert open_catalog(folder) is old
    shutil.rmtree(folder)
    assert not old.in_place
    build_catalog(GeneratedSource(60, seed=1), folder)
    new = open_catalog(folder)
    assert (len(old), len(new), old.in_place, new.in_place) == (50, 60, False, True)
    assert tables.open_goals(old, seed=3) != tables.open_goals(new, seed=3)
    with pytest.raises(CatalogError, match="Another catalogue was built"):
        keep_nouns(old, noun_tagger())
    (seeded,) = folder.glob("goals-synthetic-3-*")
    assert len(np.load(seeded / "product.npy")) == len(tables.open_goals(new, seed=3).table.product)


def test_goals_of_large_catalogues_are_made_when_building(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_LARGE", 10)
    folder = tmp_path / "shop"
    build_catalog(GeneratedSource(60), folder)
    catalog, kinds = Catalog(folder), ("synthetic", "human")
    kept = {path.name for path in folder.glob("goals-*")}
    assert kept == {f"goals-{kind}-0-{tables._FORMAT}" for kind in kinds}
    mapped = [tables.open_goals(catalog, kind=kind) for kind in kinds]
    assert all(isinstance(goals.table.product.base, np.memmap) for goals in mapped)
    monkeypatch.setattr(tables, "_LARGE", 100)
    for goals, kind in zip(mapped, kinds, strict=True):
        made = tables.open_goals(Catalog(folder), kind=kind)
        assert [made.goal(index) for index in made.range] == [goals.goal(index) for index in goals.range]
