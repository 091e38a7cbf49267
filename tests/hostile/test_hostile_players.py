"""Games and archives of strangers, and any text as an action: read or refused, and nothing impossible happens."""

import functools
import gzip
import io
import itertools
import json
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from skillc_gym.envs.alfworld import ALFWorldEnv
from skillc_gym.envs.alfworld.data import ArchiveSource, GameSet, decode, open_games
from skillc_gym.envs.alfworld.engine import NOTHING_HAPPENS, Game, World
from skillc_gym.envs.base import TextTaskEnv
from skillc_gym.envs.webshop import OBSERVATION_MODES, WebShopEnv
from skillc_gym.envs.webshop.catalog import Catalog, open_catalog
from skillc_gym.errors import SkillCError
from tests.hostile.changes import changed, hostile

FIELDS = ("pddl_domain", "grammar", "pddl_problem", "walkthrough", "solvable")
OF_GAMES = (
    *("(", ")", "[", "{", '"', ":- ", "#{o.name}#", "#[o:x]#", "(and ", "(exists (?o - object) "),
    *("(forall (?o - object) ", "(not ", "?o", " - ", "__import__('os')", "{0.__class__}", "%s", "\x00", "\n", "é😀"),
)
OF_HOUSES = ("go to bed 1", "take ", " from ", "look", "\n", "\0", "  ", "1", "desk", "%s", "{0}", "\u2028", "é", "😀")
OF_SHOPS = (
    *("search[red thing]", "search[", "click[", "]", "[", "buy now", "back to search", "< prev", "next >", "\n"),
    *("<r>", "<a>", "<c> garden", "<q> things", "search_results", "item_page", '"red"', "\ud800", "😀", " "),
)
ASINS = ("Buy Now", "NEXT >", "< PREV", "FEATURES", "Attributes", "SEARCH", "b0lower000", "B0[x]", "a/b?c#d", "\ud83d")
TEXTS = ("red", "[SEP] Buy Now", "[button] Buy Now [button_]", "buy now", "features", 'large 12" [xl]', "a\nb", "é😀")
GENERATOR = {"seed": 0, "games_per_type": 2, "size": "small"}


@functools.cache
def games() -> GameSet:
    return open_games("generated", split="train", generator=dict(GENERATOR))


# Files ----------------------------------------------------------------------------------------------------------------


def play(game: Game) -> None:
    for one in (game, game.renamed(1)):
        world = World(one)
        world.reset()
        for command in world.admissible[:20]:
            world.step(command)


@hostile
def test_a_game_with_changed_fields_is_played_or_refused(data: Any) -> None:
    task_id = data.draw(st.sampled_from(games().task_ids))
    raw = dict(games().raw(task_id))
    assert set(raw) == set(FIELDS)
    for key in data.draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4)):
        raw[key] = other(data, raw[key])
    with suppress(SkillCError):
        play(Game.parse(task_id, decode(json.dumps(raw).encode(), "a stranger's file")))


def other(data: Any, value: Any) -> Any:
    if not isinstance(value, str) or data.draw(st.integers(0, 5)) == 0:
        return data.draw(st.sampled_from([None, 0, [], {}, "", [[1]], "x"]))
    if data.draw(st.booleans()):
        words = sorted({*re.findall(r"[#\w.:()-]+", value)}) or [""]
        old, new = (data.draw(st.sampled_from(words)) for _ in range(2))
        return value.replace(old, new, data.draw(st.integers(1, 3)))
    return changed(data, value, OF_GAMES, changes=1, repeats=20_000)


@functools.cache
def archives() -> list[bytes]:
    """Two games as a tar and as a zip file."""
    tarred, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w") as tar, zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for task_id in games().task_ids[:2]:
            content = json.dumps(games().raw(task_id)).encode()
            member = tarfile.TarInfo(f"json_2.1.1/{task_id}/game.tw-pddl")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            archive.writestr(zipfile.ZipInfo(member.name), content)
    return [tarred.getvalue(), zipped.getvalue()]


def read_archive(content: bytes) -> list[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "games"
        path.write_bytes(content)
        source = ArchiveSource(path, "train")
        return [(task_id, source.read(task_id)) for task_id in source.task_ids]


def test_archives_are_whole_before_they_are_changed() -> None:
    for content in archives():
        assert [name for name, _ in read_archive(content)] == list(games().task_ids[:2])


@hostile
def test_an_archive_with_changed_bytes_is_read_or_refused(data: Any) -> None:
    content = bytearray(data.draw(st.sampled_from(archives())))
    is_tar = content[:2] != b"PK"
    heads = (0, 511) if is_tar else (max(0, len(content) - 512), len(content) - 1)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(*heads) | st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 12))] = data.draw(st.binary(max_size=12))
    if is_tar and data.draw(st.booleans()):
        # Without the right sum nothing else in a header is looked at.
        content[148:156] = b" " * 8
        content[148:156] = b"%06o\0 " % sum(content[:512])
    packed = gzip.compress(content, 1) if is_tar and data.draw(st.booleans()) else bytes(content)
    with suppress(SkillCError):
        for task_id, game in read_archive(packed):
            play(Game.parse(task_id, decode(game, "a stranger's file")))


# Actions --------------------------------------------------------------------------------------------------------------


def step_checked(world: World, command: str) -> None:
    before, possible = world.state, command.strip() in world.admissible
    answer, admissible = world.step(command)
    assert admissible is possible, "admissible and answered differently"
    if not admissible:
        assert answer == NOTHING_HAPPENS
        assert world.state == before, "an impossible command changed the state"
    assert answer
    offered = world.admissible
    assert offered == sorted(set(offered) & set(world.game.commands))
    world.admissible.clear()
    assert world.admissible == offered, "the list was not one's own"


@hostile
def test_the_engine_answers_as_it_offers_and_goes_back_exactly(data: Any) -> None:
    world = World(games().load(data.draw(st.sampled_from(games().task_ids)), data.draw(st.sampled_from([None, 1]))))
    world.reset()
    moments = [(world.snapshot(), world.admissible)]
    for _ in range(data.draw(st.integers(0, 30))):
        listed = data.draw(st.sampled_from([world.game.commands, tuple(world.admissible)]))
        step_checked(world, changed(data, data.draw(st.sampled_from(listed)), OF_HOUSES, changes=1))
        if data.draw(st.integers(0, 7)) == 0:
            moments.append((world.snapshot(), world.admissible))
            state, admissible = data.draw(st.sampled_from(moments))
            world.restore(state)
            assert world.admissible == admissible, "a snapshot led elsewhere"


@functools.cache
def houses() -> list[TextTaskEnv]:
    return [
        ALFWorldEnv(data="generated", generator=GENERATOR, domain_randomization=shuffled, render_mode=mode)
        for shuffled, mode in ((False, None), (True, None), (False, "ansi"))
    ]


@functools.cache
def shop_catalog() -> Catalog:
    """A shop whose products are called like buttons or draw pages."""
    entry = {"instruction": "find a red thing", "attributes": ["soft"], "instruction_attributes": ["soft"]}
    rows = [
        {
            "asin": asin, "name": f"Thing {text} {number}", "full_description": f"{text}\n<b>{text}</b>",
            "small_description": [text, "", " soft "], "query": "things", "pricing": f"${number}.0$50",
            "images": ["x"], "category": "garden", "product_category": f"Home › {text}",
            "customization_options": {f"kind {text}": [{"value": one} for one in TEXTS], "size": [{"value": text}]},
        }
        for (number, asin), text in zip(
            enumerate([*ASINS, *(f"B0{number:08d}" for number in range(60))]), itertools.cycle(TEXTS), strict=False
        )
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "items_shuffle.json").write_text(json.dumps(rows), encoding="utf-8")
        asked = {row["asin"]: entry for row in rows[::2]}
        (Path(folder) / "items_ins_v2.json").write_text(json.dumps(asked), encoding="utf-8")
        return open_catalog(folder)


@functools.cache
def shops() -> list[TextTaskEnv]:
    plain = [
        WebShopEnv(data=shop_catalog(), compat=compat, observation_mode=mode, show_attributes=compat == "fixed")
        for compat in ("fixed", "upstream")
        for mode in OBSERVATION_MODES
    ]
    return [*plain, WebShopEnv(data=shop_catalog(), observation_mode="text_rich", escape_markup=True)]


def play_anything(data: Any, environments: Sequence[TextTaskEnv], pieces: Sequence[str]) -> None:
    """Any text in any order, with resets and returns to earlier moments among the actions."""
    env = environments[data.draw(st.sampled_from(range(len(environments))))]
    _, info = env.reset(seed=data.draw(st.integers(0, 1_000)))
    moments = [env.snapshot()]
    for _ in range(data.draw(st.integers(0, 30))):
        way = data.draw(st.integers(0, 15))
        if way == 0:
            _, info = env.reset()
        elif way == 1:
            moments.append(env.snapshot())
            observation, info = env.restore(moments[data.draw(st.sampled_from(range(len(moments))))])
            assert observation in env.observation_space
        else:
            action = data.draw(st.sampled_from(info["admissible_commands"] or pieces))
            info = outcome_checked(env, info, changed(data, action, pieces, changes=1))


def outcome_checked(env: TextTaskEnv, before: dict[str, Any], action: str) -> dict[str, Any]:
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space
    observation.encode()
    assert 0.0 <= reward <= 1.0
    assert 0.0 <= info["task_score"] <= 1.0
    assert truncated is False, "an environment without a step limit truncated"
    assert isinstance(terminated, bool)
    if not info["action_valid"]:
        assert info["admissible_commands"] == before["admissible_commands"], "an impossible action changed something"
    return info


@hostile
def test_houses_take_any_text(data: Any) -> None:
    play_anything(data, houses(), OF_HOUSES)


@hostile
def test_shops_take_any_text(data: Any) -> None:
    play_anything(data, shops(), OF_SHOPS)
