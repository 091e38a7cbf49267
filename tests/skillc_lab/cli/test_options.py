"""One grammar of options, and how a command ends: its exit status, and one line that says what was wrong."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import Mock

import pytest
import tyro
from hypothesis import given
from hypothesis import strategies as st

from skill_library import Skill, formats
from skillc_gym.errors import ConfigError, StorageError, UnknownNameError
from skillc_lab.agents import AGENTS
from skillc_lab.cli.command import Command, complain, run_command, say
from skillc_lab.cli.main import command_names, find_command, main
from skillc_lab.cli.options import _note_new_name, options_of, parse
from skillc_lab.commands.compare import StudyOptions
from skillc_lab.commands.write_skills import FORMATS
from trainers.backends import BACKENDS
from trainers.base import Registry
from trainers.config import Settings, TrainConfig
from trainers.recipes import ALLOCATIONS, RECIPES, SCHEMES, get_recipe, recipe_names
from trainers.retrieval import RETRIEVALS
from trainers.tracking.loggers import LOGGERS


def config(words: list[str]) -> TrainConfig:
    return parse(Settings, ["--model", "m", *words], "skillc train").config()


@dataclass(frozen=True)
class Toy:
    """A toy."""

    place: Annotated[Path, tyro.conf.Positional]
    """Where."""
    names: tuple[str, ...] = ()
    """Names."""
    sizes: tuple[int, ...] | None = None
    """Sizes."""
    fast: bool = False
    """Fast."""
    from_: Annotated[int, tyro.conf.arg(name="from")] = 0
    """From."""
    x_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of x."""


PAIRS = [
    ("method=grpo", "--method grpo", "method", "grpo"),
    ("steps=40", "--steps=40", "steps", 40),
    ("learning_rate=1e-4", "--learning-rate 1e-4", "learning_rate", 1e-4),
    ("eval_greedy=true", "--eval-greedy", "eval_greedy", True),
    ("require-think=no", "--no-require-think", "require_think", False),
    ("max_episode_steps=none", "--max-episode-steps None", "max_episode_steps", None),
    ("method.omega=0.2", "--method.omega 0.2", "method_options", {"omega": 0.2}),
    ("method.top_k=a", "--method.top-k=a", "method_options", {"top_k": "a"}),
    ('env.generator={"a":1}', '--env.generator={"a":1}', "env_options", {"generator": {"a": 1}}),
]


@pytest.mark.parametrize(("pair", "dashed", "name", "value"), PAIRS)
def test_pairs_and_dashes_mean_the_same(pair, dashed, name, value):
    assert getattr(config([pair]), name) == getattr(config(dashed.split()), name) == value


def test_an_option_has_two_names_while_it_is_renamed(capsys):
    _note_new_name.cache_clear()
    words = ["method=grpo", "method.omega=0.2", "--kl-coef", "0.5"]
    assert config(words) == config(["preset=grpo", "preset.omega=0.2", "--beta", "0.5"])
    assert capsys.readouterr().err.count("called method now") == 1
    with pytest.raises(UnknownNameError, match="task-sampling"):
        parse(StudyOptions, ["own.yaml", "--task-sampling"], "skillc study")


def test_a_later_word_wins_and_options_of_a_group_add_up():
    found = config(["steps=3", "--steps", "4", "method.a=1", "--method.b", "2", 'method_options={"a": 0, "c": 3}'])
    assert found.steps == 4
    assert found.method_options == {"a": 0, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ("stepz=3", UnknownNameError, "Did you mean 'steps'"),
        ("--stepz 3", UnknownNameError, "Did you mean '--steps'"),
        ("--steps three", ConfigError, "steps='three'"),
        ("--steps", ConfigError, "--steps wants a value"),
        ("prezet.omega=1", UnknownNameError, "method.x="),
        ("--no-eval-greedy=false", ConfigError, "takes no value, got 'false'; write"),
        ("method_options=[1]", ConfigError, "valid dictionary"),
    ],
)
def test_wrong_words_say_what_is_wrong(words, error, says):
    with pytest.raises(error, match=says):
        config(words.split())


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    if {"-h", "--help"}.intersection(words) or words == ["help"]:
        return
    with contextlib.suppress(ConfigError, UnknownNameError):
        assert isinstance(parse(Toy, words, "toy"), Toy)


def test_places_lists_and_flags():
    found = parse(Toy, ["here", "--names", "a=1", "b", "--sizes", "3", "--fast", "from=2", "x.deep=[1]"], "toy")
    assert found == Toy(Path("here"), ("a=1", "b"), (3,), True, 2, {"deep": [1]})
    with pytest.raises(ConfigError, match=r"PLACE is missing.*--names took a b here; put PLACE first"):
        parse(Toy, ["--fast", "--names", "a", "b", "here"], "toy")


def test_lists_are_split_at_commas_and_a_methods_options_stay_with_it():
    for words in ("here --names heat,cool x --sizes 0,1 2", "here names=heat,cool,x sizes=0,1,2"):
        assert parse(Toy, words.split(), "toy") == Toy(Path("here"), ("heat", "cool", "x"), (0, 1, 2))
    methods = ("grpo", "skillc:omega=0.2,rho=0.5", "mine:RECIPE:a=1", "ppo")
    for words in (["--names", ",".join(methods)], ["--names", *methods], [f"names={','.join(methods)}"]):
        assert parse(Toy, ["here", *words], "toy").names == methods
    assert parse(Toy, ["here", "--names", "one, two", "a/b,c"], "toy").names == ("one, two", "a/b,c")


def test_the_settings_are_those_of_the_configuration():
    defaults = {name: option.default for name, option in options_of(Settings).items()}
    assert list(defaults) == [spec.name for spec in fields(TrainConfig)]
    assert TrainConfig(**{**defaults, "model": "m"}) == TrainConfig(model="m")


@pytest.mark.parametrize("name", command_names())
def test_every_option_is_in_the_help_with_its_meaning(name, says):
    if name in ("tools make-policy", "gpu-check"):
        pytest.importorskip("torch", reason="needs the train extra")
    said = " ".join(says(f"{name} --help-all").replace("│", " ").split())
    for option in options_of(find_command(name).options).values():
        assert len(option.doc) > 3, option
        assert option.typed in said
        assert option.doc.split(".")[0][:40] in said, option.doc


@pytest.mark.parametrize("preset", recipe_names())
def test_the_options_of_a_preset_follow_the_help(preset, says):
    said = says(f"train --preset {preset} --help")
    assert f"Options of the method {preset} " in said
    meanings = dict(re.findall(r"\n  method\.([\w.]+)=.*\n      (.*)", said))
    assert list(meanings) == list(get_recipe(preset).options)
    assert preset != "contrastive_relabelling" or "past rollouts" in meanings["memory"], "a part is called so, too"


def test_the_overview_names_every_command_and_unknown_names_the_nearest(says):
    overview, tools = says("help"), says("tools")
    assert says("") == says("help help") == overview
    assert "An agent has options of its own" in says("help evaluate --agent")
    assert all(f"  {name} " in (tools if name.startswith("tools ") else overview) for name in command_names())
    assert "\n  make-games" not in overview
    says("--version")
    assert "skillc: error: Unknown command 'trane'" in says("trane", status=2)
    assert "Did you mean 'tools card'" in says("tools cart", status=2)
    assert "Did you mean 'skillc'" in says("help train preset=skilc", status=2)


@pytest.mark.parametrize("command", ["train", "evaluate", "compare", "plan"])
def test_the_help_shows_what_matters_and_help_all_the_rest(command, says):
    pages = (says(f"{command} {flag}") for flag in ("--help", "--help-all"))
    short, whole = (set(re.findall(r"^[│ ]+(--[a-z-]+)", page, re.MULTILINE)) for page in pages)
    assert 15 <= len(short) <= 20
    assert {"--model", "--engine", "--tasks-per-step" if command != "evaluate" else "--split"} <= short
    assert len(whole) > 80


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("methods", r"guarded_imitation +GRPO.* Recommended"),
        ("environments", r"webshop +skillc/WebShop-v0; .*splits train, valid, test"),
    ],
)
def test_names_are_listed_with_a_line_each(command, line, says):
    lines = says(command).splitlines()
    assert any(re.match(line, each) for each in lines)
    assert all(len(each.split()) > 2 for each in lines)


def test_old_forms_of_tools_still_work(capsys):
    assert main(["tools", "card", "env", "coins"]) == 0
    said, aside = capsys.readouterr()
    assert (main(["card", "env", "coins"]), aside) == (0, "")
    assert capsys.readouterr() == (said, "note: skillc card is called skillc tools card now\n")


# How a command ends ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nothing:
    """Does what it is told."""

    seed: int = 0
    """A seed."""


def ran(run: Callable[[Nothing], int], *words: str) -> int:
    return run_command(Command(Nothing, run, "stopped; go on"), words, "skillc toy")


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (ConfigError("No."), 2, "skillc toy: error: No.\n"),
        (StorageError("The disk is full."), 1, "skillc toy: error: The disk is full.\n"),
        (KeyboardInterrupt(), 130, "skillc toy: stopped; go on"),
        (ModuleNotFoundError("No module named 'torch'", name="torch.nn"), 2, "pip install 'skillc-gym[train]'"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_status(error, status, says, capsys):
    assert ran(Mock(side_effect=error)) == status
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_sigterm_ends_a_command_as_ctrl_c_does(capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert ran(lambda _: os.kill(os.getpid(), signal.SIGTERM) or 0) == 130
    assert capsys.readouterr().err == "skillc toy: stopped; go on\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_strangers_wrote_steers_no_terminal(capsys):
    say("a\x1bc\tb\x9b2J\u202e")
    complain("\x1b]0;x\x07")
    assert capsys.readouterr() == ("a\ufffdc\tb\ufffd2J\ufffd\n", "\ufffd]0;x\ufffd\n")


@pytest.mark.parametrize("error", [KeyError("x"), ModuleNotFoundError("No module named 'trainerz'", name="trainerz")])
def test_a_bug_keeps_its_traceback(error):
    with pytest.raises(type(error)):
        ran(Mock(side_effect=error))


@pytest.mark.parametrize(("words", "both"), [("methods", True), ("train --help", False)])
def test_a_reader_that_has_gone_ends_it_quietly(words, both):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "skillc_lab", *words.split()]
    ended = subprocess.run(command, stdout=writing, stderr=writing if both else subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr or b"") == (141, b"")


@pytest.mark.parametrize(("words", "closed", "status"), [("methods", 1, 0), ("no", 2, 2)])
def test_closed_streams_are_no_faults(words, closed, status):
    command = [sys.executable, "-m", "skillc_lab", words]
    ended = subprocess.run(command, preexec_fn=lambda: os.close(closed), capture_output=True, check=False)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (status, False)


def test_letters_that_standard_output_cannot_write_are_spelled(tmp_path):
    (tmp_path / "\xe9").mkdir()
    formats.write_library([Skill("look", "For all.", ("*",), "Look.")], tmp_path / "\xe9" / "one")
    command = [sys.executable, "-m", "skillc_lab", "tools", "convert-skills", "\xe9/one", "\xe9/two"]
    asked = {"cwd": tmp_path, "env": {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path.cwd())}}
    ended = subprocess.run(command, capture_output=True, check=False, **asked)
    assert (ended.returncode, b"\\xe9/two" in ended.stdout) == (0, True)


# What is named ``module:NAME``, held against what it must be, of whichever kind ---------------------------------------

REGISTRIES = [AGENTS, ALLOCATIONS, BACKENDS, FORMATS, LOGGERS, RECIPES, RETRIEVALS, SCHEMES]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_an_object_of_another_kind_is_told_in_one_line(registry: Registry) -> None:
    assert all(registry.wanted.fits(registry.get(name)) for name in registry.names())
    with pytest.raises(ConfigError, match=rf"The {registry.kind} 'math:pi' must be .*; got 3\.14"):
        registry.get("math:pi")
