"""A policy carries its settings: commands take them where nothing else is given, and say so."""

import json
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.envs.registry import warm_started_names
from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab.cli.main import find_command
from skillc_lab.cli.main import main as skillc
from skillc_lab.cli.options import parse
from trainers.base import shipped_names, shipped_policy
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport
from trainers.tracking.policy_settings import (
    SETTINGS_FILE,
    complete_settings,
    same_env,
    save_policy_settings,
    unlike_policy,
)

CARRIED = {"chat": "compact", "max_reply_tokens": 20, "max_episode_steps": 20, "eval_temperature": 0.4}


def typed(command: str, *words: str) -> TrainConfig:
    found = find_command(command)
    options: Any = parse(found.options, words, command, complete=found.complete)
    return getattr(options, "settings", options).config()


def completed(**given: Any) -> tuple[dict[str, Any], list[str]]:
    return complete_settings(given, learning=False)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The settings of a policy whose data lie here."""
    (tmp_path / "games").mkdir()
    (tmp_path / "policy").mkdir()
    config = TrainConfig(model="m", data=str(tmp_path / "games"), chat="compact", max_episode_steps=7)
    save_policy_settings(tmp_path / "policy", config.with_(chat_options={"role": "robot", "reply": ""}))
    return tmp_path / "policy"


@pytest.mark.parametrize(("env", "name"), [(env, name) for env in warm_started_names() for name in shipped_names(env)])
def test_shipped_policies_need_nothing_else(env: str, name: str) -> None:
    config = typed("evaluate", f"model={name}", f"env={env}")
    assert (shipped_policy(env, name) / SETTINGS_FILE).is_file()
    assert (config.chat, config.max_context) == ("compact", 2048)
    assert config.split == {"alfworld": "valid_unseen", "webshop": "test"}[env]
    assert config.data == (None if "real" in name else "generated")


def test_commands_take_the_settings_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    playing, learning = typed("evaluate", "model=shipped"), typed("train", "model=shipped")
    assert {name: getattr(playing, name) for name in CARRIED} == {n: getattr(learning, n) for n in CARRIED} == CARRIED
    assert (playing.learning_rate, learning.learning_rate, learning.split) == (1e-6, 3e-4, "train")
    assert "shipped was made with data=generated env.generator=" in capsys.readouterr().err


def test_what_the_user_gives_wins_and_warns(policy: Path) -> None:
    found, said = completed(model=str(policy), chat="default", chat_options={"reply": "", "separator": " "}, seed=3)
    assert (found["chat"], found["seed"], found["max_episode_steps"]) == ("default", 3, 7)
    assert found["chat_options"] == {"reply": "", "separator": " "}, "the others changed another wording"
    assert "was made with chat=compact, and chat=default was given" in said[0]
    agreeing, said = completed(model=str(policy), chat="compact", data=str(policy / ".." / "games"))
    assert agreeing["max_episode_steps"] == 7
    mixed = completed(model=str(policy), chat_options={"separator": " "})[0]
    assert mixed["chat_options"] == {"role": "robot", "reply": "", "separator": " "}
    assert not any("Warning" in line for line in said)


def test_a_wording_in_a_folder_is_known_from_every_other_one(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(policy.parent)
    (policy.parent / "checkout").mkdir()
    save_policy_settings(policy, TrainConfig(model="m", chat="verl-agent:checkout"))
    monkeypatch.chdir("/")
    assert completed(model=str(policy))[0]["chat"] == f"verl-agent:{policy.parent / 'checkout'}"
    monkeypatch.chdir(policy.parent)
    same = TrainConfig(model=str(policy), chat="verl-agent:checkout")
    assert unlike_policy(same) == ""
    path = policy / SETTINGS_FILE  # of a version that kept the place as it was given
    path.write_text(path.read_text().replace(f"{policy.parent}/checkout", "checkout"))
    assert not any("Warning" in line for line in completed(model=str(policy), chat=same.chat)[1])


def test_other_data_and_other_environments_have_tasks_of_their_own(policy: Path) -> None:
    assert "max_episode_steps" not in completed(model=str(policy), data="generated")[0]
    elsewhere = completed(model=str(policy), env="webshop")[0]
    assert (elsewhere["env"], elsewhere["chat"], "data" in elsewhere) == ("webshop", "compact", False)
    (policy / ".." / "games").rmdir()
    found, said = completed(model=str(policy))
    assert found["data"] is None
    assert "which is not here" in said[0]
    found, said = completed(model=str(policy), data="mine")
    assert (found["data"], any("is not here" in line for line in said)) == ("mine", False)


def test_an_environment_is_the_same_by_its_id() -> None:
    by_name, by_id = completed(model="shipped"), completed(model="shipped", env="skillc/ALFWorld-v0")
    assert (by_id[0] | {"env": "alfworld"}, by_id[1]) == by_name
    assert "env" not in unlike_policy(TrainConfig(model="shipped", env="skillc/ALFWorld-v0"))
    assert not same_env("own_package:Env-v0", "alfworld"), "code is not run for it"


def test_a_policy_that_learned_to_choose_is_played_so(policy: Path) -> None:
    config = TrainConfig(model="m", data="generated", engine="choosing", engine_options={"never": ["help"]})
    save_policy_settings(policy, config)
    found, said = completed(model=str(policy))
    assert (found["engine"], found["engine_options"]) == ("choosing", {"never": ["help"]})
    assert "engine=choosing" in said[-1]
    found, said = completed(model=str(policy), engine="transformers")
    assert (found["engine"], "engine_options" in found) == ("transformers", False)
    assert "was made with engine=choosing, and engine=transformers was given" in said[0]
    save_policy_settings(policy, config.with_(engine="vllm", engine_options={}))
    assert "engine" not in completed(model=str(policy))[0]


def test_a_folder_of_the_same_name_is_no_data_and_a_policy_without_the_file_behaves_as_before(tmp_path, monkeypatch):
    assert completed(model=str(tmp_path), seed=1) == ({"model": str(tmp_path), "seed": 1}, [])
    assert unlike_policy(TrainConfig(model=str(tmp_path))) == ""
    assert "chat=default was played" in unlike_policy(TrainConfig(model="shipped"))
    (tmp_path / "generated").mkdir()
    monkeypatch.chdir(tmp_path)
    save_policy_settings(tmp_path, TrainConfig(model="m", data="generated"))
    assert json.loads((tmp_path / SETTINGS_FILE).read_text())["playing"]["data"] == "generated"
    assert not any("Warning" in line for line in completed(model=str(tmp_path), data="generated")[1])
    assert "Warning" not in "".join(completed(model=str(tmp_path), library="alfworld")[1]), (
        "it is the environment's own"
    )
    assert "library=webshop was given" in completed(model=str(tmp_path), library="webshop")[1][0]
    (tmp_path / "mine").mkdir()
    save_policy_settings(tmp_path, TrainConfig(model="m", library="mine:blank"))
    kept = json.loads((tmp_path / SETTINGS_FILE).read_text())["playing"]["library"]
    assert kept == f"{tmp_path.resolve() / 'mine'}:blank", "a control of a library is found from any folder"


BAD = ("{", '{"version": 0}', '{"version": 1, "playing": {}}', '{"version": 1, "playing": {"run": 1}, "learning": {}}')


@pytest.mark.parametrize(
    ("content", "remedy"), [*((each, "is damaged .*delete the file") for each in BAD), ('{"version": 2}', "update")]
)
def test_a_bad_file_or_one_of_a_newer_version_is_a_clear_error(tmp_path: Path, content: str, remedy: str) -> None:
    (tmp_path / SETTINGS_FILE).write_text(content)
    with pytest.raises(CheckpointError, match=rf"{SETTINGS_FILE} .*{remedy}"):
        completed(model=str(tmp_path))


@pytest.mark.parametrize(
    "named",
    [
        {"env_wrappers": {"os:system": {}}},
        {"env": "module:Env"},
        {"engine": "openai", "engine_options": {"base_url": "http://evil.example/v1", "key_variable": "SECRET"}},
        {"engine": "module:ENGINE"},
        {"env_options": {"engine": "textworld"}},
        {"env_options": {"noun_tagger": "/a/package/of/spacy"}},
    ],
)
def test_code_and_servers_are_taken_from_whoever_asks_and_no_policy(policy: Path, named: dict[str, Any]) -> None:
    file = policy / SETTINGS_FILE
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "playing": {**found["playing"], **named}}))
    with pytest.raises(ConfigError, match="which is code or a server of its own"):
        completed(model=str(policy))
    assert completed(model=str(policy), **named)[0]["model"] == str(policy)
    server, more = {"engine": "openai", "engine_options": {"timeout": 9}}, {"env_options": {"goal_order": "products"}}
    if "engine" in named:
        assert completed(model=str(policy), **server)[0]["engine_options"] == {"timeout": 9}, "no address, no key"
    if "env_options" in named:
        with pytest.raises(ConfigError, match="which is code or a server of its own"):
            completed(model=str(policy), **more)


def test_the_wrong_chat_is_warned_about_and_the_folder_keeps_one_evaluation(tmp_path, monkeypatch, capsys) -> None:
    pytest.importorskip("transformers", reason="needs the train extra")
    monkeypatch.chdir(tmp_path)

    def evaluate(*words: str) -> int:
        return skillc(["evaluate", "model=shipped", "task_types=heat", "per_type=1", "max_episode_steps=3", *words])

    assert evaluate("chat=default", "form=window:1") == 0
    folder = Path("evaluations") / "shipped-valid_unseen"
    warning = "Likely cause: it was made with chat=compact form=conversation, and chat=default form=window:1 was played"
    assert warning in capsys.readouterr().out
    before = (folder / "report.json").read_bytes()
    assert warning in PairedReport.load(folder / "report.json").warning
    assert evaluate() == 2
    assert "holds another evaluation: chat was 'default', is 'compact'" in capsys.readouterr().err
    assert evaluate("chat=default", "form=window:1") == 0
    assert (folder / "report.json").read_bytes() == before
    (panel := tmp_path / "panel.txt").write_text(f"{PairedReport.load(folder / 'report.json').tasks[0]}\n")
    (model := tmp_path / "model").mkdir()
    (model / "config.json").write_text("{}")
    assert skillc(["evaluate", "model=shipped", "task_types=heat", "per_type=1", f"out={model}"]) == 2
    assert "holds something else" in capsys.readouterr().err
    out = f"out={tmp_path / 'of_a_list'}"
    words = ["evaluate", "model=shipped", "task_types=heat", "max_episode_steps=3", out]
    assert skillc([*words, f"tasks={panel}"]) == 0
    assert skillc(words) == 2
    assert "tasks_sha256 was" in capsys.readouterr().err
