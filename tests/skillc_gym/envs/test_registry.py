"""One description per environment: found by name and id, registered by others, and light."""

import subprocess
import sys

import gymnasium
import pytest

import skillc_gym.envs.registry as module
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.registry import (
    EnvSpec,
    description_of,
    env_spec,
    env_specs,
    make_env,
    register,
    short_type,
    warm_started,
)
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.lazy import load_reference

MODULE = """
from skillc_gym.envs.registry import EnvSpec, register

NAMES = dict(name="rooms", id="rooms/Rooms-v0", entry_point="{module}:Rooms")
SPEC = EnvSpec(**NAMES, max_episode_steps=7, task_types={{"b": "B"}})
class Rooms: ...
register(SPEC)
"""


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A folder of modules that can be imported; what they register is forgotten after the test."""
    monkeypatch.setattr(module, "_registered", dict(module._registered))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    gymnasium.registry.pop("rooms/Rooms-v0", None)


@pytest.mark.parametrize("spec", env_specs(), ids=lambda spec: spec.name)
def test_the_suites_environments_are_found_by_name_and_id(spec: EnvSpec):
    assert env_spec(spec.name) is env_spec(spec.id) is spec
    known = gymnasium.registry[spec.id]
    assert (known.entry_point, known.max_episode_steps) == (spec.entry_point, spec.max_episode_steps)
    assert spec.training_split == "train"
    if spec.warm_start:
        assert callable(load_reference(spec.warm_start.expert))
        assert set(spec.warm_start.error_rates) == set(spec.task_types)


def test_a_tasks_split_is_told_by_its_id():
    assert env_spec("alfworld").split_of_task("valid_seen/pick/trial") == "valid_seen"
    assert env_spec("coins").split_of_task("test/easy/02-0000") == "test"
    found = [env_spec("webshop").split_of_task(f"human/{n}") for n in (0, 499, 500, 1499, 1500, "x", "9" * 5000)]
    assert found == ["test", "test", "valid", "valid", "train", "", ""]


def test_an_id_that_nobody_described_has_an_empty_description():
    spec = env_spec("my/Env-v0")
    assert (spec.name, spec.id, spec.library, spec.curriculum) == ("my/Env-v0", "my/Env-v0", None, {})
    assert (spec.training_split, spec.split_of_task("train/1")) == ("train", "")
    with pytest.raises(UnknownNameError, match=r"alfwrold.*alfworld"):
        warm_started("alfwrold")


def test_a_module_before_the_id_is_imported(registry):
    (registry / "their_rooms.py").write_text(MODULE.format(module="their_rooms"))
    spec = env_spec("their_rooms:rooms/Rooms-v0")
    assert (spec.name, spec.ordered(["z", "b", "a"]), short_type("b")) == ("rooms", ("b", "a", "z"), "B")
    assert gymnasium.spec("rooms/Rooms-v0").max_episode_steps == 7
    for reference in ("no_such_module:rooms/Rooms-v0", ".relative:rooms/Rooms-v0"):
        with pytest.raises(ConfigError, match=r"full name.*PYTHONPATH"):
            env_spec(reference)
    with pytest.raises(ConfigError, match="'their_rooms' has no 'NOTHING'"):
        load_reference("their_rooms:NOTHING")


def install(folder, name, content):
    """Makes a package that names an environment under the entry point."""
    (folder / f"{name}.py").write_text(content)
    info = folder / "rooms-1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rooms\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[skillc_gym.environments]\nrooms = {name}:SPEC\n")
    module._register_installed.cache_clear()


def test_installed_packages_register_by_entry_point(registry):
    install(registry, "installed_rooms", MODULE.format(module="installed_rooms"))
    assert env_spec("rooms").id == "rooms/Rooms-v0"
    install(registry, "broken_rooms", "1 / 0")
    with pytest.raises(ConfigError, match=r"broken_rooms:SPEC.*ZeroDivisionError.*uninstall"):
        env_specs()


def test_two_environments_cannot_have_one_name_or_id(registry):
    register(env_spec("alfworld"))
    with pytest.raises(ConfigError, match=r"skillc/ALFWorld-v0 has the short name 'alfworld'.*other/ALF-v0"):
        register(EnvSpec(name="alfworld", id="other/ALF-v0"))
    for name in ("rooms", "halls"):
        register(EnvSpec(name=name, id="rooms/Rooms-v0", entry_point="their_rooms:Rooms"))
    with pytest.raises(ConfigError, match="another id"):
        register(EnvSpec(name="cellars", id="rooms/Rooms-v0", entry_point="their_rooms:Cellars"))
    with pytest.raises(ConfigError, match="was described otherwise in this process"):
        register(EnvSpec(name="rooms", id="rooms/Rooms-v0", entry_point="their_rooms:Rooms", library="theirs"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task_types": ("b", "c")}, "gives each type a short name"),
        ({"task_types": {"b": "x", "c": "x"}}, "one short name"),
    ],
)
def test_slips_in_a_description_are_named(wrong, said):
    with pytest.raises(ConfigError, match=said):
        EnvSpec(name="rooms", id="rooms/Rooms-v0", **wrong)


def test_a_type_that_two_environments_call_differently_goes_by_its_own_name(registry):
    register(EnvSpec(name="aaa", id="rooms/Rooms-v0", task_types={"easy": "low", "mine": "m"}))
    assert [short_type(kind) for kind in ("easy", "hard", "mine")] == ["easy", "hard", "m"]


def test_the_description_under_an_environments_own_id_comes_first(registry):
    entry_point = env_spec("alfworld").entry_point
    register(EnvSpec(name="a-mine", id="mine/ALF-v0", entry_point=entry_point))
    for env_id, name in (("skillc/ALFWorld-v0", "alfworld"), ("mine/ALF-v0", "a-mine")):
        assert description_of(gymnasium.make(env_id, data="generated", generator={"games_per_type": 1})).name == name


def test_wording_is_the_environments_own_where_it_says_so():
    assert env_spec("webshop").chat_format("default") == ChatFormat.shop()
    assert env_spec("webshop").chat_format("compact").role == "customer"
    assert env_spec("alfworld").chat_format("compact") == ChatFormat.compact()
    assert env_spec("alfworld").chat_format("default") == ChatFormat.default()
    assert [env_spec("my/Env-v0").chat_format(name).role.count("house") for name in ("default", "compact")] == [0, 0]
    painter = EnvSpec(name="walls", id="walls/Walls-v0", chat={"default": ChatFormat(role="You paint.")})
    assert [painter.chat_format(name).role for name in ("default", "compact")] == ["You paint.", "agent"]
    with pytest.raises(UnknownNameError, match="no format"):
        env_spec("alfworld").chat_format("no format")


def test_an_environment_that_cannot_be_made_says_why_in_words(registry):
    with pytest.raises(UnknownNameError, match="option of skillc/ALFWorld-v0 'sise'; expected one of: split, data"):
        make_env("skillc/ALFWorld-v0", data="generated", sise=3)
    with pytest.raises(UnknownNameError, match="environment 'skillc/ALFWorld-v9'; expected one of: alfworld"):
        make_env("skillc/ALFWorld-v9")

    def refuse(**_: object) -> None:
        raise TypeError("no such thing")

    gymnasium.register("rooms/Rooms-v0", entry_point=refuse)
    with pytest.raises(ConfigError, match=r"Rooms-v0 cannot be made from \{'sise': 3\}.*: no such thing$"):
        make_env("rooms/Rooms-v0", sise=3)
    for name, options in (("", {}), ("skillc/ALFWorld-v0", {"max_episode_steps": 0, "data": "generated"})):
        with pytest.raises(ConfigError, match="cannot be made from"):
            make_env(name, **options)


def test_descriptions_bring_in_no_environment():
    program = "import sys, skillc_gym.envs.registry as r; r.env_specs(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "skillc_gym.envs.alfworld.spec" in loaded
    heavy = (".env", ".explorer", ".shopper", ".vector")
    assert not [name for name in loaded if name.startswith("skillc_gym.") and name.endswith(heavy)]
