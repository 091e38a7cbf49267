"""``skillc learn-skills``: write a skill library from transcripts.

``skillc tools convert-skills``: read skills of another form into a library, or write a library in another form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from skill_library import BUILT_IN, Skill, SkillFileError, decode, load_library, read_bounded
from skill_library.formats import SkillFormat, assign_types, write_library
from skillc_gym.envs.registry import EnvSpec, described_env
from skillc_gym.episodes import Episode, read_jsonl
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, complain, require_empty, say
from skillc_lab.skills.libraries import learn_skills
from trainers.base import Registry, instance_of
from trainers.engines import ENGINES, check_engine
from trainers.tracking import json_line, make_folder
from trainers.writers import ModelWriter, NotedWriter, StepWriter

_LONGEST_REPLY = 2048
"""In tokens: six texts of 600 characters, and a thought before them."""


@dataclass(frozen=True)
class LearnSkillsOptions:
    """Write a skill library from the transcripts of training tasks: a skill per task type, general ones, mistakes.

    The writer "steps" abstracts by rule what won episodes share and lost ones lack; "model", or the name of an engine,
    asks the language model of --model: first for a note on each of up to eight won and eight lost episodes of a task
    type, then for skills and mistakes by type from the notes, then for what is general; the notes stand in notes.jsonl
    beside the skills. A server's replies are kept beside --out until the library is written. With --no-notes it writes
    skills by type from the episodes at once. Tasks of other splits than that of the training tasks are refused, so that
    no test task teaches.

    Examples: skillc learn-skills --from runs/mine/transcripts/train-000010.jsonl --out my-skills;
    skillc learn-skills --from FILE --writer openai --model NAME --engine.base_url http://host:port/v1
    """

    from_: Annotated[tuple[Path, ...], tyro.conf.arg(name="from")] = ()
    """Files of transcripts in JSON lines."""
    out: Path = Path("learned-skills")
    """New folder for the library."""
    env: str = "alfworld"
    """Environment of the episodes; it knows the short names of its task types."""
    split: str | None = None
    """Split that the tasks must be of; the environment's training tasks if none. "all" takes any: in a goal_order of
    one's own a task's number tells no split."""
    writer: str = "steps"
    """Who writes: steps (rules), model (a language model on --engine), or that engine by its name: transformers, vllm,
    openai or module:NAME, so that --writer openai means --writer model --engine openai."""
    model: str | None = None
    """Language model that writes: a folder or name of a transformers checkpoint, or what a server calls it."""
    engine: str | None = None
    """Engine that the model runs on: transformers (if none), vllm, openai (a server), or one of your own as
    module:NAME."""
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the engine; on the command line ``engine.base_url=http://host:port/v1``."""
    seed: int = 0
    """Seed of the model's replies."""
    notes: Annotated[bool | None, tyro.conf.arg(constructor=bool)] = None
    """Whether the model first writes a note on each episode; a model does if neither is said."""


def _learn(options: LearnSkillsOptions) -> int:
    if not options.from_:
        raise ConfigError("Name the transcripts to learn from: --from FILE ...")
    require_empty(options.out)
    spec, engine = described_env(options.env), _engine(options)
    episodes = [episode for path in options.from_ for episode in read_jsonl(path)]
    _check_tasks(spec, options.split or spec.training_split, episodes)
    out = options.out.resolve()
    replies = out.with_name(f"{out.name}.replies.jsonl")
    writer, kept = (StepWriter(), False) if engine is None else _model_writer(options, engine, replies)
    library = load_library(write_library(learn_skills(episodes, writer, short_names=spec.task_types), options.out))
    if isinstance(writer, NotedWriter):
        replace_file(options.out / "notes.jsonl", [json_line(asdict(note)) for note in writer.notes])
    if kept:
        replies.unlink(missing_ok=True)
    beside = f"; {len(writer.notes)} notes" if isinstance(writer, NotedWriter) else ""
    beside += f"; {writer.bad_replies} replies could not be read" if writer.bad_replies else ""
    say(f"{len(library.skills)} skills from {len(episodes)} episodes: {options.out}{beside}")
    return 0


def _check_tasks(spec: EnvSpec, split: str, episodes: Sequence[Episode]) -> None:
    if split == "all":
        return
    if spec.splits:
        require_name("split", split, spec.splits)
    known = set(spec.task_types)
    other = sorted({episode.task_type for episode in episodes} - known) if known else []
    if other:  # whose splits this environment does not know
        raise ConfigError(
            f"{spec.name} has no task type {other[0]!r}: name by --env where they were played, or take --split all"
        )
    foreign = [each.task_id for each in episodes if spec.split_of_task(each.task_id) not in ("", split)]
    if foreign:
        raise ConfigError(
            f"{len(foreign)} episodes are not of the split {split!r}, such as {foreign[0]}; skills are learned from "
            "training tasks only. Name their split by --split if that is what you want, or --split all for any."
        )


def _engine(options: LearnSkillsOptions) -> str | None:
    """The engine of the model that writes; None for rules."""
    if options.writer == "steps":
        _refuse_model(options)
        return None
    if ":" not in options.writer:
        remedy = "An engine of your own is named as my_module:ENGINE."
        require_name("writer", options.writer, ["steps", "model", *ENGINES], remedy)
    if options.model is None:
        raise ConfigError(f"The writer {options.writer} needs a language model: --model NAME")
    engine = (options.engine or "transformers") if options.writer == "model" else options.writer
    if options.engine not in (None, engine):
        raise ConfigError(
            f"--writer {engine} and --engine {options.engine} name two engines; leave --engine out, or write "
            f"--writer model --engine {options.engine}"
        )
    check_engine(engine)
    return engine


def _refuse_model(options: LearnSkillsOptions) -> None:
    given = {
        "--model": options.model is not None,
        "--engine": options.engine is not None,
        "--engine.OPTION": bool(options.engine_options),
        "--notes": bool(options.notes),
    }
    for_a_model = [name for name, here in given.items() if here]
    if for_a_model:
        raise ConfigError(
            f"The writer steps asks no language model, so it has no use for {' and '.join(for_a_model)}; let a model "
            "write by --writer model --model NAME, or leave that out"
        )


def _model_writer(options: LearnSkillsOptions, engine: str, replies: Path) -> tuple[ModelWriter, bool]:
    """The writer, and whether its replies are kept in that file, as a server's are."""
    from trainers.config import TrainConfig
    from trainers.evaluation import policy_player

    name = str(options.model)
    player = policy_player(
        TrainConfig(
            model=name,
            env=options.env,
            engine=engine,
            engine_options=options.engine_options,
            form="window:5",  # each question is a chat of its own, whatever a template makes of earlier turns
            max_reply_tokens=_LONGEST_REPLY,
        )
    )
    if not player.writes:
        raise ConfigError(
            f"{name} on the engine {engine} says nothing but commands, so it writes no skills; name a language model, "
            "on an engine that generates"
        )
    kind = ModelWriter if options.notes is False else NotedWriter
    make_folder(options.out)  # before any reply is paid for
    return kind(player.chat(options.seed, replies), name=name), player.usage() is not None


# Other forms ----------------------------------------------------------------------------------------------------------

FORMATS = Registry(
    "form of skills", "skill_library.formats", "FORMAT", "skillc_gym.skill_formats", instance_of(SkillFormat)
)
"""Forms by name; a package adds one by an entry point of the group, naming a `SkillFormat`."""

_MOST_BYTES = 16_777_216


@dataclass(frozen=True)
class ConvertSkillsOptions:
    """Read skills of another form into a library, or write a library in another form.

    The form of what is read is found out: a folder of SKILL.md files (this project's or others'), a text with
    sections (### NAME ###, as with Skill0), or a bank in JSON (as with SkillRL).

    Example: skillc tools convert-skills bank.json my_skills --env alfworld --types examine=look_at_obj_in_light
    """

    source: Annotated[str, tyro.conf.Positional]
    """What to read: a folder, a file, or a library or its control by name."""
    target: Annotated[Path, tyro.conf.Positional]
    """What to write: a new folder, or a file with --to sections and --to bank."""
    to: str = "library"
    """Form to write: library (folders that pass agentskills.io's validator; agent-skills is the same), sections (a
    text), bank (JSON), or one of your own as module:NAME."""
    form: str | None = None
    """Form of the source, by the same names, where it is not found out."""
    env: str | None = None
    """Environment whose task types the skills are for; types stay as the source calls them if none."""
    types: tuple[str, ...] = ()
    """What the source's types are in the environment, as OLD=NEW; * makes a skill general."""
    references: bool = False
    """Put the texts of a skill's folder references behind its own."""


def _convert(options: ConvertSkillsOptions) -> int:
    if os.path.lexists(options.target) and not options.target.is_dir():
        raise ConfigError(f"{options.target} exists, and nothing is overwritten; name another file or folder")
    skills = _read(options)
    types, by_skill = _types(options, skills)
    if types:
        skills = assign_types(skills, types, by_skill)
    form = FORMATS.get(options.to)
    if form.folder:
        form.write(skills, options.target)
    else:
        replace_file(options.target, [form.write(skills).encode("utf-8")])
        if short := sum(bool(skill.minimal) for skill in skills):
            complain(f"note: a file has no place for the short texts (metadata.minimal) of {short} skills")
    kinds = sorted({kind for skill in skills for kind in skill.task_types})
    say(f"{len(skills)} skills for {', '.join(kinds)}: {options.target}")
    return 0


def _read(options: ConvertSkillsOptions) -> list[Skill]:
    source = Path(options.source)
    if options.references and not source.is_dir():
        raise ConfigError("--references is about folders of skills; leave it out for a file or a library by its name")
    if options.source in BUILT_IN or not (source.is_dir() or source.is_file()):
        library = load_library(options.source)
        if options.form:
            raise ConfigError(f"--form is the form of a file or folder; leave it out for the library {options.source}")
        return list(library.skills)
    form: SkillFormat = FORMATS.get(options.form) if options.form else _form_of(source)
    if form.folder:
        return form.read(source, references=options.references)
    try:
        return form.read(decode(read_bounded(source, _MOST_BYTES)))
    except RecursionError as error:
        raise SkillFileError(f"{source}: nested too deep") from error
    except ValueError as error:
        raise SkillFileError(f"{source}: {error}") from error


def _form_of(source: Path) -> SkillFormat:
    forms: list[SkillFormat] = [FORMATS.get(name) for name in FORMATS.names()]
    if source.is_dir():
        return next(form for form in forms if form.folder)
    claimed = [form for form in forms if not form.folder and source.suffix in form.suffixes]
    return claimed[0] if claimed else next(form for form in forms if "" in form.suffixes)


def _types(
    options: ConvertSkillsOptions, skills: Sequence[Skill]
) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    """The environment's types by what they are called, and what was typed: a type's name may be a skill's, too."""
    typed: dict[str, Sequence[str]] = {}
    source = {kind for skill in skills for kind in skill.task_types}
    known: Mapping[str, str] = described_env(options.env).task_types if options.env else {}
    types: dict[str, Sequence[str]] = {name: (kind,) for kind, short in known.items() for name in (kind, short)}
    types = types or {kind: (kind,) for kind in source}
    meant = dict(types)  # what a name says after = does not depend on what was renamed before it
    for word in options.types:
        old, equals, new = word.partition("=")
        if not equals or not new or (known and new not in types and new != "*"):
            raise ConfigError(f"--types wants OLD=NEW with NEW one of {', '.join([*known, '*'])}; got {word!r}")
        if old not in source.union(skill.name for skill in skills):
            raise ConfigError(
                f"--types: the source has no type or skill {old!r}; types are {', '.join(sorted(source))}"
            )
        types[old] = typed[old] = meant.get(new, (new,))
    return types, typed


COMMANDS: dict[str, Command[Any]] = {
    "learn-skills": Command(
        LearnSkillsOptions,
        _learn,
        "interrupted; no library was written. The same command goes on from a server's replies so far.",
    ),
    "tools convert-skills": Command(ConvertSkillsOptions, _convert),
}
