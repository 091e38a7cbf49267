"""``skillc learn-skills``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from skill_library import load_library
from skill_library.formats import require_free, write_library
from skillc_gym.envs.registry import EnvSpec, described_env
from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.files import replace_file
from trainers.commands.cli.command import Command
from trainers.commands.cli.console import say
from trainers.memory.step_writer import StepWriter
from trainers.memory.writer import Writer
from trainers.skills.learn import learn_skills
from trainers.skills.noted_writer import NotedWriter
from trainers.tracking.json_files import json_line

__all__ = ["COMMAND", "LearnSkillsOptions"]


@dataclass(frozen=True)
class LearnSkillsOptions:
    """Write a skill library from the transcripts of training tasks: a skill per task type, general ones, mistakes.

    The writer "steps" abstracts by rule what won episodes share and lost ones lack; "model" asks the language model of
    --model, with --notes first for a note on every episode, then for skills and mistakes by task type from the notes,
    then for what is general; the notes stand in notes.jsonl beside the skills. Tasks of other splits than that of the
    training tasks are refused, so that no test task teaches.

    Example: skillc learn-skills --from runs/mine/transcripts/train-000010.jsonl --out my-skills
    """

    from_: Annotated[tuple[Path, ...], tyro.conf.arg(name="from")] = ()
    """Files of transcripts in JSON lines."""
    out: Path = Path("learned-skills")
    """New folder for the library."""
    env: str = "alfworld"
    """Environment of the episodes; it knows the short names of its task types."""
    split: str | None = None
    """Split that the tasks must be of; the environment's training tasks if none."""
    writer: Literal["steps", "model"] = "steps"
    """Who writes."""
    model: str | None = None
    """Language model for the writer "model": a folder or name of a transformers checkpoint."""
    engine: str = "transformers"
    """Engine that the model runs on: transformers, vllm, openai (a server), or one of your own as module:NAME."""
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the engine; on the command line ``engine.base_url=http://host:port/v1``."""
    seed: int = 0
    """Seed of the model's replies."""
    notes: bool = False
    """Whether the model writes a note on every episode first."""


def learn(options: LearnSkillsOptions) -> int:
    """Runs the command."""
    if not options.from_:
        raise ConfigError("Name the transcripts to learn from: --from FILE ...")
    require_free(options.out)
    spec = described_env(options.env)
    episodes = [episode for path in options.from_ for episode in read_jsonl(path)]
    _check_split(spec, options.split or spec.training_split, [episode.task_id for episode in episodes])
    writer = _writer(options)
    library = load_library(write_library(learn_skills(episodes, writer, short_names=spec.task_types), options.out))
    if isinstance(writer, NotedWriter):
        replace_file(options.out / "notes.jsonl", [json_line(asdict(note)) for note in writer.notes])
    bad = f"; {writer.bad_replies} replies could not be read" if writer.bad_replies else ""
    say(f"{len(library.skills)} skills from {len(episodes)} episodes: {options.out}{bad}")
    return 0


def _check_split(spec: EnvSpec, split: str, task_ids: Sequence[str]) -> None:
    if spec.splits and split not in spec.splits:
        raise unknown_name("split", split, spec.splits)
    foreign = [task for task in task_ids if spec.split_of_task(task) not in ("", split)]
    if foreign:
        raise ConfigError(
            f"{len(foreign)} episodes are not of the split {split!r}, such as {foreign[0]}; skills are learned from "
            "training tasks only. Name their split by --split if that is what you want."
        )


def _writer(options: LearnSkillsOptions) -> Writer:
    if options.writer == "steps":
        if options.notes or options.model is not None:
            raise ConfigError("The writer steps asks no language model; name one by --writer model --model FOLDER")
        return StepWriter()
    if options.model is None:
        raise ConfigError("The writer model needs a language model: --model FOLDER")
    from trainers.config import TrainConfig
    from trainers.evaluation.player import policy_player
    from trainers.memory.model_writer import ModelWriter

    config = TrainConfig(
        model=options.model, env=options.env, engine=options.engine, engine_options=options.engine_options
    )
    kind = NotedWriter if options.notes else ModelWriter
    return kind(policy_player(config).speaker(options.seed), name=options.model)


COMMAND = Command(LearnSkillsOptions, learn, "interrupted; no library was written.")
