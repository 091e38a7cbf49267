"""One grammar: dashed options, pairs and flags mean the same; whatever is wrong is named."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import tyro
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.cli.main import command_names, find_command, main
from skillc_lab.cli.options import _note_new_name, options_of, parse
from skillc_lab.commands.compare import StudyOptions
from trainers.config import Settings, TrainConfig
from trainers.recipes import get_recipe, recipe_names


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
    ("task_types=heat,cool", "--task-types heat cool", "task_types", ("heat", "cool")),
    ("eval_greedy=true", "--eval-greedy", "eval_greedy", True),
    ("require_think=false", "--no-require-think", "require_think", False),
    ("require-think=no", "--require_think false", "require_think", False),
    ("max_episode_steps=none", "--max-episode-steps None", "max_episode_steps", None),
    ("run=", "--run=", "run", ""),
    ("method.omega=0.2", "--method.omega 0.2", "method_options", {"omega": 0.2}),
    ("method.top_k=5", "--method.top-k 5", "method_options", {"top_k": 5}),
    ("method.mask=success", "--method.mask=success", "method_options", {"mask": "success"}),
    ("chat.show_admissible=False", "--chat.show_admissible false", "chat_options", {"show_admissible": False}),
    ('env.generator={"size": "small"}', '--env.generator={"size": "small"}', "env_options",
     {"generator": {"size": "small"}}),
    ('env_options={"a": 1}', '--env-options={"a": 1}', "env_options", {"a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "dashed", "name", "value"), PAIRS)
def test_pairs_and_dashes_mean_the_same(pair: str, dashed: str, name: str, value: Any) -> None:
    words = dashed.split(" ") if "{" not in dashed else [dashed]
    assert getattr(config([pair]), name) == getattr(config(words), name) == value


def test_an_option_has_two_names_while_it_is_renamed(capsys: pytest.CaptureFixture[str]) -> None:
    _note_new_name.cache_clear()
    words = ["method=grpo", "method.omega=0.2", "--kl-coef", "0.5"]
    assert config(words) == config(["preset=grpo", "preset.omega=0.2", "--beta", "0.5"])
    assert capsys.readouterr().err.count("called method now") == 1
    with pytest.raises(UnknownNameError, match="task-sampling"):
        parse(StudyOptions, ["own.yaml", "--task-sampling"], "skillc study")


def test_a_later_word_wins_and_options_of_a_group_add_up() -> None:
    found = config(["steps=3", "--steps", "4", "method.a=1", "--method.b", "2", 'method_options={"a": 0, "c": 3}'])
    assert found.steps == 4
    assert found.method_options == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ("stepz=3", UnknownNameError, "Did you mean 'steps'"),
        ("--stepz 3", UnknownNameError, "Did you mean '--steps'"),
        ("--steps three", ConfigError, "steps='three'"),
        ("--steps", ConfigError, "--steps wants a value"),
        ("steps", ConfigError, "option=value"),
        ("-x", ConfigError, "got '-x'"),
        ("prezet.omega=1", UnknownNameError, "method.x="),
        ("schedule=nope", UnknownNameError, "constant, linear, cosine"),
        ("eval_greedy=maybe", ConfigError, "valid boolean"),
        ("method_options=[1]", ConfigError, "valid dictionary"),
    ],
)
def test_wrong_words_say_what_is_wrong(words: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        config(words.split())


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    if {"-h", "--help"}.intersection(words) or words == ["help"]:
        return
    with contextlib.suppress(ConfigError, UnknownNameError):
        assert isinstance(parse(Toy, words, "toy"), Toy)


def test_places_lists_and_flags() -> None:
    found = parse(Toy, ["here", "--names", "a=1", "b", "--sizes", "3", "--fast", "from=2", "x.deep=[1]"], "toy")
    assert found == Toy(Path("here"), ("a=1", "b"), (3,), True, 2, {"deep": [1]})
    with pytest.raises(ConfigError, match="PLACE is missing: Where"):
        parse(Toy, [], "toy")
    with pytest.raises(ConfigError, match="got 'there'"):
        parse(Toy, ["here", "there"], "toy")


def test_the_settings_are_those_of_the_configuration() -> None:
    names = list(options_of(Settings))
    assert names == [spec.name for spec in fields(TrainConfig)]
    defaults = {name: option.default for name, option in options_of(Settings).items()}
    defaults = {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}
    assert {**TrainConfig(model="m").to_json(), "model": ""} == {**defaults, "model": ""}


@pytest.mark.parametrize("name", command_names())
def test_every_option_is_in_the_help_with_its_meaning(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in ("tools make-policy", "gpu-check"):
        pytest.importorskip("torch", reason="needs the train extra")
    assert main([*name.split(), "--help-all"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for option in options_of(find_command(name).options).values():
        assert len(option.doc) > 3, option
        assert option.typed in said
        assert option.doc.split(".")[0][:40] in said, option.doc


@pytest.mark.parametrize("preset", recipe_names())
def test_the_options_of_a_preset_follow_the_help(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--preset", preset, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"Options of the method {preset} " in said
    for name in get_recipe(preset).options:
        meaning = said.split(f"\n  method.{name}=")[1].split("\n")[1]
        assert meaning.startswith("      "), name


def test_the_help_of_an_unknown_preset_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "train", "preset=skilc"]) == 2
    assert "Did you mean 'skillc'" in capsys.readouterr().err


def test_the_overview_names_every_command_and_unknown_ones_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in command_names() if " " not in name)
    assert main(["trane"]) == 2
    assert "skillc: error: Unknown command 'trane'" in capsys.readouterr().err
    assert main(["--version"]) == 0


@pytest.mark.parametrize("command", ["train", "evaluate", "compare", "plan"])
def test_the_help_shows_what_matters_and_help_all_the_rest(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    short = set(re.findall(r"^[│ ]+(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert 15 <= len(short) <= 20
    assert {"--model", "--engine", "--tasks-per-step" if command != "evaluate" else "--split"} <= short
    assert main([command, "--help-all"]) == 0
    assert len(set(re.findall(r"^[│ ]+(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))) > 80


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("methods", r"contrastive_relabelling +GRPO.* Recommended"),
        ("environments", r"webshop +skillc/WebShop-v0; .*splits train, valid, test"),
        ("starts", r"shipped-hard +env=alfworld: 0.9 M parameters"),
        ("engines", r"vllm +Generates with vLLM"),
    ],
)
def test_names_are_listed_with_a_line_each(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(says, line) for line in lines)
    assert all(len(line.split()) > 2 for line in lines)


def test_tools_stand_apart_and_their_old_forms_still_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == main(["tools"]) == 0
    overview, tools = capsys.readouterr().out.split("usage: skillc tools")
    assert "\n  make-games" not in overview
    assert all(f"  {name} " in tools for name in command_names() if name.startswith("tools "))
    assert main(["tools", "card", "env", "coins"]) == 0
    said, aside = capsys.readouterr()
    assert (main(["card", "env", "coins"]), aside) == (0, "")
    assert capsys.readouterr() == (said, "note: skillc card is called skillc tools card now\n")
    assert main(["tools", "cart"]) == 2
    assert "Did you mean 'tools card'" in capsys.readouterr().err
