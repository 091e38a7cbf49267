"""verl-agent: habits of the vectors, draws, prompts read from a checkout, and the managers of real forks over them."""

import json
import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import run_blocks

from skillc_gym.adapters.verl_agent import (
    ShowSkills,
    alfworld_panel,
    build_alfworld_envs,
    build_webshop_envs,
    game_cycle,
    read_chat,
)
from skillc_gym.adapters.verl_agent.__main__ import main
from skillc_gym.adapters.verl_agent.draws import AlfworldGames
from skillc_gym.chat import ChatFormat, PastStep, window_prompt
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from skillc_gym.wrappers.action_format import parse_tail_reply
from trainers.interop.credit import GroupCredit
from trainers.interop.verl_agent import PairedAdvantage, RecordEpisodes

HERE = Path(__file__).parent
SMALL = {"data": "generated", "generator": {"games_per_type": 2, "size": "small"}}
SHOP = {"data": "generated", "generator": {"size": 400}}
CHECKOUTS = [Path(place) for place in os.environ.get("VERL_AGENT_CHECKOUT", "").split(os.pathsep) if place]
"""Checkouts of verl-agent or of forks, parted as in PATH."""
needs_checkouts = pytest.mark.skipif(
    not CHECKOUTS, reason="no checkout of verl-agent: name some in VERL_AGENT_CHECKOUT, parted as in PATH"
)


def alfworld(groups=2, members=2, **options):
    return build_alfworld_envs(None, 0, groups, members, {}, **{**SMALL, **options})


def test_members_of_a_group_play_one_game_and_the_done_answer_again():
    envs = alfworld()
    _, pictures, infos = envs.reset()
    files = [info["extra.gamefile"] for info in infos]
    assert pictures is None
    assert files[0] == files[1] != files[2]
    assert envs.get_admissible_commands == [info["admissible_commands"] for info in infos]
    assert "help" in envs.get_admissible_commands[0]
    for command in shortest_plan(envs.groups.envs[0].unwrapped):
        texts, _, rewards, dones, infos = envs.step([command, "look", "look", "inventory"])
        assert [info["extra.gamefile"] for info in infos] == files
    assert (rewards, dones, infos[0]["won"]) == ([10.0, 0.0, 0.0, 0.0], [True, False, False, False], True)
    again = envs.step(["go to nowhere", "look", "look", "look"])
    assert (again[0][0], again[2][0], again[3][0]) == (texts[0], 10.0, True)
    assert again[4][0] is not infos[0]  # a manager writes there
    assert [info["extra.gamefile"] for info in again[4]] == files, "known of all, whoever is done first"
    with pytest.raises(ConfigError, match="one per member"):
        envs.step(["look"])
    envs.close()
    envs.close()


def test_each_episode_is_numbered_otherwise_and_a_group_alike():
    options = {"task_types": "heat", "generator": {"games_per_type": 1, "size": "small"}}

    def told(**more):
        envs = alfworld(**options, **more)
        return [envs.reset()[0] for _ in range(3)]

    shuffled = told(domain_randomization=True)
    assert all(one[0] == one[1] and one[2] == one[3] for one in shuffled)
    assert len({one[member] for one in shuffled for member in (0, 2)}) > 3
    assert told(domain_randomization=True) == shuffled
    assert len({text for texts in told() for text in texts}) == 1


def test_an_episode_ends_at_the_step_limit():
    envs = alfworld(1, 1, max_episode_steps=3)
    envs.reset()
    assert [envs.step(["look"])[3] for _ in range(4)] == [[False], [False], [True], [True]]


@given(st.integers(1, 30), st.integers(0, 99))
def test_games_come_in_the_order_of_textworld(count, seed):
    cycle = pytest.importorskip("textworld.gym.envs.utils", reason="needs the alfworld extra").shuffled_cycle
    import numpy as np

    games, draw = [f"game {number}" for number in range(count)], np.random.RandomState(seed)
    theirs = list(games)
    draw.shuffle(theirs)
    steps = 3 * count + 1
    assert list(islice(game_cycle(games, seed), steps)) == list(islice(cycle(theirs, rng=draw), steps))
    with pytest.raises(ConfigError, match="no game"):
        next(game_cycle([], seed))


def test_the_panel_is_what_validations_play():
    validation = build_alfworld_envs(None, 1007, 12, 1, {}, is_train=False, **SMALL)
    for reset in range(2):
        _, _, infos = validation.reset()
        assert alfworld_panel(None, 7, 12, reset=reset, **SMALL) == [info["task_id"] for info in infos]
        assert {info["task_id"].partition("/")[0] for info in infos} == {"valid_seen"}


def test_skills_come_per_group_with_their_provenance():
    asked = []
    envs = alfworld(2, 4, skills="alfworld", n_plus=lambda kind, size: asked.append((kind, size)) or len(asked))
    observations, _, infos = envs.reset()
    assert [info["condition"] for info in infos] == [1, 0, 0, 0, 1, 1, 0, 0]
    assert asked == [(infos[0]["task_type"], 4), (infos[4]["task_type"], 4)]
    for text, info in zip(observations, infos, strict=True):
        assert bool(info["skill"]) == bool(info["skill_sha256"]) == bool(info["skill_text"]) == bool(info["condition"])
        assert text.startswith("-= Welcome")
    validation = build_alfworld_envs(None, 0, 2, 1, {}, is_train=False, skills="alfworld", n_plus=1, **SMALL)
    assert [info["condition"] for info in validation.reset()[2]] == [0, 0]
    validation.n_plus = 1
    assert [info["condition"] for info in validation.reset()[2]] == [1, 1]


class TheirManager:
    """As much of a manager as is stood before."""

    def __init__(self, envs):
        self.envs = envs

    def reset(self, kwargs):
        texts, _, infos = self.envs.reset()
        return {"text": list(texts), "image": None, "anchor": texts}, infos

    def step(self, actions):
        texts, _, rewards, dones, infos = self.envs.step(actions)
        return {"text": list(texts), "image": None, "anchor": texts}, rewards, dones, infos


def test_prompts_show_skills_and_anchors_do_not():
    mine = type("Mine", (ShowSkills, TheirManager), {})(alfworld(1, 2, skills="alfworld", n_plus=1))
    for observations, infos in (mine.reset({}), mine.step(["look"] * 2)[::3]):
        shown, plain = observations["text"]
        assert observations["anchor"][0] == observations["anchor"][1] == plain
        assert shown == f"{infos[0]['skill_text']}\n{plain}"


def test_records_give_advantages_to_every_row_of_an_episode():
    torch = pytest.importorskip("torch", reason="needs the train extra")
    envs = alfworld(1, 2, skills="alfworld", n_plus=1)

    class TheirCollector:
        def vanilla_multi_turn_loop(self, gen_batch, actor_rollout_wg, envs):
            envs.reset({})
            for command in shortest_plan(envs.envs.groups.envs[0].unwrapped):
                envs.step([command, "look"])
            return [[{"traj_uid": f"t{member}"} for _turn in range(2)] for member in range(2)], "more"

    collector = type("Mine", (RecordEpisodes, TheirCollector), {})()
    played, _ = collector.vanilla_multi_turn_loop(gen_batch=None, actor_rollout_wg=None, envs=TheirManager(envs))
    rows = [played[member][turn] for member, turn in ((1, 0), (0, 1), (0, 0))]  # balanced, and one lost
    assert [row["episode"]["won"] for row in rows] == [0.0, 1.0, 1.0]
    assert [row["episode"]["steps"] for row in rows] == [envs.records()[0]["steps"]] * 3
    columns = {name: [row[name] for row in rows] for name in ("traj_uid", "episode")}
    tensors = {"token_level_rewards": torch.zeros(3, 2), "response_mask": torch.tensor([[1, 1], [1, 0], [1, 1]])}
    credit = GroupCredit("alfworld", omega=0.5)
    data = type("Data", (), {"non_tensor_batch": columns, "batch": tensors})()
    told = PairedAdvantage(credit)(data, adv_estimator="grpo", gamma=1.0).batch["advantages"]
    lost, won = GroupCredit("alfworld", omega=0.5).advantages([rows[0]["episode"], rows[1]["episode"]]).tolist()
    assert won > 0 > lost
    torch.testing.assert_close(told, torch.tensor([[lost, lost], [won, 0.0], [won, won]]))
    del columns["episode"]
    with pytest.raises(ConfigError, match="RecordEpisodes"):
        PairedAdvantage(credit)(data)


def ordered(order, split="train"):
    return gymnasium.make("skillc/WebShop-v0", goal_order=order, split=split, compat="upstream", **SHOP).unwrapped


def test_goals_are_drawn_from_the_order_of_each_group():
    envs = build_webshop_envs(3, 4, 2, {}, **SHOP)
    assert envs.goal_idxs.start == 500
    for reset in range(2):
        observations, infos = envs.reset()
        panel = ordered(f"verl-agent:3:4:{reset}")
        for group in range(4):
            mine, _ = panel.reset(options={"task_id": f"synthetic/{group}"})
            assert observations[2 * group] == observations[2 * group + 1] == mine
            alone = envs.groups.envs[2 * group].unwrapped
            goal = alone.goals.goal(int(infos[2 * group]["task_id"].partition("/")[2]))
            assert panel.best_score(f"synthetic/{group}") == alone.best_score(infos[2 * group]["task_id"])
            assert envs.records()[2 * group]["task_id"] == f"{infos[2 * group]['task_id']}@{3 + group}"
            prices = [alone.goals.price(goal, product) for product in range(len(alone.catalog))]
            drawn = panel.goals.goal(group)
            assert [panel.goals.price(drawn, product) for product in range(len(alone.catalog))] == prices


def test_a_purchase_ends_a_member_and_its_prices_are_its_groups():
    envs = build_webshop_envs(0, 1, 2, {}, is_train=False, **SHOP)
    observations, infos = envs.reset()
    assert observations[0].startswith("WebShop [SEP] Instruction: [SEP] ")
    assert infos[0]["available_actions"] == {"has_search_bar": True, "clickables": ["search"]}
    words = observations[0].split(" [SEP] ")[2].replace("]", "")
    _, _, _, infos = envs.step([f"search[{words}]"] * 2)
    shown = infos[0]["available_actions"]["clickables"]
    product = next(label for label in shown if label not in ("back to search", "next >", "< prev"))
    envs.step([f"click[{product}]"] * 2)
    texts, rewards, dones, infos = envs.step(["click[buy now]", "look"])
    assert dones == [True, False]
    assert (rewards[0] == 10.0) == infos[0]["won"] == (infos[0]["task_score"] == 1.0)
    assert infos[0]["available_actions"] == {"has_search_bar": True, "clickables": ["search"]}
    assert envs.step(["search[b]", "look"])[0][0] == texts[0] == envs.render(env_idx=0)


def shop_of(**files):
    return build_webshop_envs(0, 1, 1, {}, env_kwargs=files)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: alfworld(n_plus=1), ConfigError, "pass skills="),
        (lambda: shop_of(file_path="items_shuffle.json"), ConfigError, "without attr_path"),
        (lambda: build_webshop_envs(0, 1, 1, {}, split="train"), ConfigError, "its own split, by is_train"),
        (lambda: shop_of(file_path="no/products.json", attr_path="x"), MissingDataError, r"setup\.sh"),
        (lambda: ordered("verl-agent:3:501", "test"), ConfigError, "without repetition"),
        (lambda: env_spec("coins").chat_format("verl-agent:anywhere"), UnknownNameError, "alfworld, webshop"),
    ],
)
def test_what_cannot_be_played_is_refused(monkeypatch, make, error, said):
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    with pytest.raises(error, match=said):
        make()


def test_files_are_looked_for_where_they_are_named_and_in_the_data_folder(tmp_path, monkeypatch, webshop_data):
    monkeypatch.setenv("WEBSHOP_DATA", str(webshop_data))
    asked = {"file_path": str(tmp_path / "items_shuffle_1000.json"), "attr_path": "x/items_ins_v2_1000.json"}
    envs = shop_of(**asked, observation_mode="text", num_products=None, human_goals=False)
    assert envs.goal_idxs == range(500, 6910)


CONFIG = """
dataset: {data_path: $ALFWORLD_DATA/json_2.1.1/train, eval_id_data_path: /games/valid_seen, num_train_games: 3}
env: {type: AlfredTWEnv, task_types: [1, 4], domain_randomization: True}
general: {training_method: dqn}
rl: {training: {max_nb_steps_per_episode: 7}}
"""


def test_a_configuration_says_what_is_played(tmp_path, monkeypatch):
    place = tmp_path / "config.yaml"
    place.write_text(CONFIG)
    archive = tmp_path / "games.tar.xz"
    archive.touch()
    monkeypatch.setenv("ALFWORLD_DATA", str(archive))
    games = AlfworldGames.read(place, "train", engine="native")
    kinds = ["pick_and_place_simple", "pick_heat_then_place_in_recep"]
    own = {"task_types": kinds, "domain_randomization": True, "max_episode_steps": 7, "engine": "native"}
    assert games.env_kwargs == {"data": archive, "split": "train", **own}
    assert games.listed(["train/b/2", "train/b/1", "train/c/1", "train/a/9"]) == ["train/a/9", "train/b/1", "train/b/2"]
    assert games.file_of("train/a/9") == f"{archive}/json_2.1.1/train/a/9/game.tw-pddl"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALFWORLD_DATA", "~/games.tar.xz")
    assert AlfworldGames.read(place, "train").env_kwargs["data"] == archive
    monkeypatch.setenv("ALFWORLD_DATA", "")
    assert AlfworldGames.read(place, "train").env_kwargs["data"] is None
    monkeypatch.delenv("ALFWORLD_DATA")
    assert AlfworldGames.read(place, "train").env_kwargs["data"] is None
    with pytest.raises(ConfigError, match="config_tw"):
        AlfworldGames.read(place, "eval_in_distribution")
    with pytest.raises(UnknownNameError, match="eval_in_distribution"):
        AlfworldGames.read(place, "valid_seen")
    place.write_text(CONFIG.replace("json_2.1.1/train", "json_2.1.1/my_own"))
    with pytest.raises(ConfigError, match="my_own; rename it, as one of train, valid_seen"):
        AlfworldGames.read(place)
    place.write_text(CONFIG.replace("AlfredTWEnv", "AlfredThorEnv"))
    with pytest.raises(ConfigError, match="AlfredThorEnv"):
        AlfworldGames.read(place)


MADE_UP = """
=== agent_system/environments/prompts/alfworld.py
ALFWORLD_TEMPLATE_NO_HIS = "{current_observation} {{}} ({admissible_actions})"
ALFWORLD_TEMPLATE = "{task_description}/{step_count}/{history_length}/{action_history}/{current_step}/"\
    "{current_observation}/{admissible_actions}"
=== agent_system/environments/env_manager.py
class AlfWorldEnvironmentManager:
    def build_text_obs(self, texts, offered):
        listed = "; ".join(f"<{s}>" for s in offered if s != "help")
        if len(texts) > 60:
            pass
=== agent_system/environments/env_package/alfworld/projection.py
def project(reply):
    return reply[-9:]
=== agent_system/environments/env_package/alfworld/__init__.py
from .envs import build_alfworld_envs
=== agent_system/environments/env_package/webshop/__init__.py
from .projection import p
from .envs import build_webshop_envs
=== agent_system/memory/memory.py
class SimpleMemory:
    def fetch(self, step_num, obs, act):
        return f"{step_num}. {obs} > {act}"
=== verl/trainer/config/ppo_trainer.yaml
env: {history_length: 1}
"""


@pytest.fixture
def checkout(tmp_path):
    """A made-up checkout, with words of its own in the places that are read."""
    for file in MADE_UP.split("\n=== ")[1:]:
        name, _, text = file.partition("\n")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_prompts_are_read_from_a_checkout(checkout):
    chat = env_spec("alfworld").chat_format(f"verl-agent:{checkout}").with_form("conversation")
    assert ChatFormat.from_dict(json.loads(json.dumps(chat.to_dict()))) == chat
    assert (chat.form, chat.window, chat.longest, chat.reply_tail) == ("window", 1, 60, 9)
    asked = {"goal": "do it", "commands": ["help", "look", "go"]}
    assert window_prompt(chat, [], "Hall.", **asked) == [{"role": "user", "content": "Hall. {} (<look>; <go>)"}]
    past = [PastStep("Hall.", "go"), PastStep("Room.", "look")]
    content = "do it/2/1/2. Room. > look/3/Here./<look>; <go>"
    assert window_prompt(chat, past, "Here.", **asked)[0]["content"] == content
    long = window_prompt(chat, past, "H" * 60, **asked)[0]["content"]
    assert long == f"{'H' * 60} {{}} (<look>; <go>)"
    assert window_prompt(chat.with_form("window:0"), past, "Here.", **asked)[0]["content"] == "Here. {} (<look>; <go>)"
    shown = window_prompt(chat, past, "Here.", skill_text="Skill.", **asked)
    assert shown == [{"role": "system", "content": "Skill."}, {"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("prompts/alfworld.py", "", "ALFWORLD_TEMPLATE = 3"),
        ("env_manager.py", "", "class Other: pass"),
        ("memory.py", "", "def"),
        ("projection.py", "", "def p(reply): return reply[-N:]"),
        ("ppo_trainer.yaml", "", "env: 3"),
        ("memory.py", "{step_num}", "{self.step}"),
        ("env_manager.py", '"; ".join', "sep.join"),
        ("prompts/alfworld.py", "{task_description}", "{"),
    ],
)
def test_what_is_no_checkout_is_refused_and_a_file_that_is_none_named(checkout, name, before, after):
    place = next(checkout.rglob(name))
    place.write_text(place.read_text().replace(before, after) if before else after)
    with pytest.raises(ConfigError, match=None if before else name):
        read_chat(checkout)
    place.unlink()
    with pytest.raises(ConfigError, match=name):
        read_chat(checkout)


@given(st.lists(st.sampled_from(["a", "B", "\u4e2d", " ", "<action>", "</action>", "<think>", "</think>"])))
def test_replies_are_read_by_the_rules(parts):
    reply = "".join(parts)
    parsed = parse_tail_reply(reply, 5)
    closed = "<action>" in reply and "</action>" in reply
    thought = "<think>" in reply and "</think>" in reply
    assert parsed.format_valid == (closed and thought and "\u4e2d" not in reply)
    assert parsed.command == parsed.command.lower()
    assert closed or parsed.command == reply.lower()[-5:]


def test_patch_prints_two_lines_and_writes_when_asked(checkout, capsys):
    places = [next(checkout.rglob(f"{name}/__init__.py")) for name in ("alfworld", "webshop")]
    before = [place.read_text() for place in places]
    assert main(["patch", str(checkout)]) == 0
    said = capsys.readouterr()
    assert said.out.count("+from skillc_gym.adapters.verl_agent import build_") == said.out.count("-from .envs") == 2
    assert "--write" in said.err
    assert [place.read_text() for place in places] == before
    assert main(["patch", str(checkout), "--write"]) == 0
    assert places[1].read_text().splitlines() == [
        "from .projection import p",
        "from skillc_gym.adapters.verl_agent import build_webshop_envs",
    ]
    capsys.readouterr()
    assert main(["patch", str(checkout), "--write"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "Both lines are there already\n")
    places[0].write_bytes(b"# licence\r\nfrom .envs import build_alfworld_envs\r\n")
    assert main(["patch", str(checkout), "--write"]) == 0
    ours = b"# licence\r\nfrom skillc_gym.adapters.verl_agent import build_alfworld_envs\r\n"
    assert (places[0].read_bytes(), capsys.readouterr().out.count("\n+")) == (ours, 2)
    places[0].write_text("from .envs import build_alfworld_envs, more\n")
    assert main(["patch", str(checkout)]) == 2
    assert "has no line" in capsys.readouterr().err
    assert main(["patch", "nowhere"]) == 2


def test_a_patch_that_cannot_be_written_changes_nothing(checkout, capsys, monkeypatch):
    places = [next(checkout.rglob(f"{name}/__init__.py")) for name in ("alfworld", "webshop")]
    before, replace = [place.read_bytes() for place in places], Path.replace

    def refuse(draft, path):
        if path == places[1]:
            raise PermissionError(13, "Permission denied")
        return replace(draft, path)

    monkeypatch.setattr(Path, "replace", refuse)
    assert main(["patch", str(checkout), "--write"]) == 2
    assert str(places[1]) in capsys.readouterr().err
    assert [place.read_bytes() for place in places] == before
    places[0].write_bytes(b"\xff")
    assert main(["patch", str(checkout)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_panel_prints_a_task_a_line(capsys):
    assert main(["panel", "--members", "5", "--data", "generated"]) == 0
    said = capsys.readouterr()
    assert said.out.split() == alfworld_panel(None, 0, 5, data="generated")
    assert said.err.startswith("5 draws of ")
    for words in (["--members", "0"], ["--validation", "-1"]):
        assert main(["panel", "--data", "generated", *words]) == 2
        assert "1 member or more" in capsys.readouterr().err
    assert main(["panel", "--data", "generated", "--seed", "-5000"]) == 2
    assert "seed is a whole number from 0" in capsys.readouterr().err


def test_the_page_runs():
    assert run_blocks("verl-agent.md")["advantages"].shape == (8,)


@needs_checkouts
@pytest.mark.slow
@pytest.mark.parametrize("world", ["alfworld", "webshop"])
@pytest.mark.parametrize("place", CHECKOUTS, ids=lambda place: place.name)
def test_a_forks_own_managers_play_whole_batches(place, world, tmp_path, alfworld_data, webshop_data):
    own = tmp_path / "checkout"
    shutil.copytree(place / "agent_system", own / "agent_system")
    shutil.copytree(place / "verl/trainer/config", own / "verl/trainer/config")
    assert main(["patch", str(own), "--write"]) == 0
    found = driven("verl_agent_manager.py", own, world, "50", ALFWORLD_DATA=alfworld_data, WEBSHOP_DATA=webshop_data)
    for part in (found["training"], found["validation"]):
        assert part["members"] == 128
        assert part["prompts"] > 128 * 20
        assert "success_rate" in part["told"]


@needs_checkouts
@pytest.mark.slow
@pytest.mark.parametrize("place", CHECKOUTS, ids=lambda place: place.name)
def test_goals_and_prices_are_those_of_a_forks_own_shop(place, webshop_data):
    assert driven("verl_agent_goals.py", place, webshop_data, "1003")["synthetic"] == 6910


def driven(script, *words, **variables):
    named = {"PYTHONPATH": str(HERE.parents[2]), **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run(
        [sys.executable, str(HERE / script), *map(str, words)],
        env={**os.environ, **named},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
