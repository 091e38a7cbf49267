"""Hostile skill files, skills in the forms of others, and transcripts: read, and shown."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import FuzzTarget, Run, changed_text
from skill_library import Skill, SkillCError, SkillLibrary, load_library
from skill_library.formats import read_agent_skills, read_bank, read_sections, write_library
from skillc_gym.episodes import Episode, Turn, read_jsonl, to_ansi, to_html, write_jsonl

_GOOD = "---\nname: heat\ndescription: Heat it.\ntask_types: [heat, cook]\nlicense: MIT\n---\nOpen the microwave.\n"
_OF_YAML = (
    *("&a ", "*a", "<<: ", "!!python/name:os.system ", "!!binary ", "!!timestamp ", "? ", "[", "{a: "),
    *("- ", "|\n  ", ">-\n", "%YAML 1.1\n", "---\n", "...\n", "'", '"\\', "2001-99-99", "0x", "=", "~"),
    *("\t", "\r\n", "\x00", "\x85", "\u2028", "../", "name: heat\n", "\ufeff"),
)


def skills_target(atheris: Any) -> Run:
    """Reads a library of two mutated skills; whatever is accepted must be within its bounds and read the same twice."""
    folder = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")
    files = [Path(folder.name) / name / "SKILL.md" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        for file in files:
            file.write_bytes(_skill(provider))
        library = _read(folder.name) or SkillLibrary("empty", ())
        for kind in library.task_types:
            skill = library.for_task(kind)
            assert len(skill.text) <= library.longest, "a text longer than the longest"
            assert not set(skill.name) & set("/\\\0\n"), "a name that is a path"

    target.__dict__["folder"] = folder
    return target


def _read(folder: str) -> SkillLibrary | None:
    refusal = ""
    try:
        return load_library(folder)
    except SkillCError as error:
        refusal = str(error)
    assert len(refusal) < 2_000, "an endless message"
    return None


def _skill(provider: Any) -> bytes:
    if provider.ConsumeIntInRange(0, 9) == 0:
        return bytes(provider.ConsumeBytes(400))
    text = _GOOD
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        text = changed_text(provider, text, _OF_YAML)
    return text.encode("utf-8", "surrogatepass")


SKILLS = FuzzTarget(
    "Skill files with pieces of YAML put in, repeated or dropped; a library is read or refused in a short sentence.",
    skills_target,
    ("skill_library.", "yaml."),
)

# Skills in others' forms ----------------------------------------------------------------------------------------------

_BANK = {
    "general_skills": [{"skill_id": "g1", "title": "Look", "principle": "Look first.", "when_to_apply": "always"}],
    "task_specific_skills": {"heat": [{"title": "Heat", "principle": "Open the microwave."}]},
    "common_mistakes": [{"description": "Haste", "why_it_happens": "hurry", "how_to_avoid": "Wait."}],
}
_SECTIONS = "Be calm.\n### general ###\nLook first.\n\n### heat ###\nOpen the microwave.\n"
_OF_FORMS = (
    *("###", "### x ###\n", "### ../a ###\n", "\r", "\t", "[", "{}", "null", "1e999", '"title": 3', '"principle": ""'),
    *("Apply when: ", "Mistake: ", "Instead: ", "\\ud800", "\x00", "\x1b[2J", "general", " ", "é😀", "---\n"),
)


def forms_target(atheris: Any) -> Run:
    """Reads mutated banks, texts of sections and Agent Skills; what is accepted is a library that can be kept."""
    folder = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        refusal = ""
        try:
            skills = _imported(provider, Path(folder.name) / "in" / "one")
        except SkillCError as error:
            skills, refusal = [], str(error)
        assert len(refusal) < 2_000, "an endless message"
        assert len({skill.name for skill in skills}) == len(skills), "two skills of one name"
        for skill in skills:
            assert not set(skill.name) & set("/\\\0\n"), "a name that is a path"
            skill.text.encode()
        if skills and provider.ConsumeIntInRange(0, 7) == 0:
            _check_kept(skills)

    target.__dict__["folder"] = folder
    return target


def _check_kept(skills: list[Skill]) -> None:
    """A library of these skills reads as they are; not every run takes the time to write one."""
    with suppress(SkillCError), tempfile.TemporaryDirectory(prefix="skillc-fuzz-") as out:
        read = load_library(str(write_library(skills, Path(out) / "library")))
        assert {skill.name: skill.text for skill in read.skills} == {s.name: s.text for s in skills}, "kept otherwise"


def _imported(provider: Any, place: Path) -> list[Skill]:
    way = provider.ConsumeIntInRange(0, 2)
    text = (json.dumps(_BANK), _SECTIONS, _GOOD)[way]
    for _ in range(provider.ConsumeIntInRange(0, 4)):
        text = changed_text(provider, text, _OF_YAML if way == 2 else _OF_FORMS, 3_000)
    if way == 0:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = text
        return read_bank(values)
    if way == 1:
        return read_sections(text)
    (place / "references").mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_bytes(text.encode("utf-8", "surrogatepass"))
    (place / "references" / "more.md").write_bytes(bytes(provider.ConsumeBytes(200)))
    return read_agent_skills(place.parent, references=provider.ConsumeBool())


FORMS = FuzzTarget(
    "Banks, texts of sections and Agent Skills with pieces put in, dropped or repeated; they are read or refused in a "
    "short sentence, and what is read can be kept as a library and read again.",
    forms_target,
    ("skill_library.", "json"),
)


EPISODE = Episode(
    task_id="split/task/1",
    task_type="heat",
    goal="put a hot mug on the desk",
    condition=1,
    skill="general+heat",
    skill_sha256="0" * 64,
    skill_text="Open the microwave.",
    seed=3,
    group_id=0,
    turns=(Turn("You see a mug.", "<think>so</think><action>take it</action>", "take it", True, False, 0.5),),
    won=True,
    task_score=0.5,
    terminated=True,
    truncated=False,
    messages=[{"role": "system", "content": "You play."}],
    final_observation="You won.",
)
_OF_PAGES = (
    *("<script>alert(1)</script>", '"><img src=x onerror=y>', "</style>", "<think>", "</think>"),
    *("\\ud800", "\\u202e", "\x1b[2J", "[", '{"a":', "9", "1e999", "NaN", "null", "true", '"', "\\", "\n"),
    *("\x00", '"turns": [],'),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1e308, float("nan"), "", "<b>", "\ud800", [], [[]], {}, {"role": "<b>"}),
    *([{}],),
)
_TAGS = frozenset(
    (
        *("html", "head", "meta", "title", "style", "body", "h1", "section", "h2", "small", "div"),
        *("article", "span", "details", "summary", "pre", "b", "ol", "li"),
    )
)


class _Page(HTMLParser):
    """Notices what a page of transcripts never holds."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, f"a foreign tag {tag}"
        assert all(name in ("class", "lang", "charset", "name", "content", "http-equiv") for name, _ in attrs)


def transcripts_target(atheris: Any) -> Run:
    """Reads mutated transcripts; what is accepted is shown as text alone, and reads the same when written again."""
    folder = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")
    path, copy = Path(folder.name) / "e.jsonl", Path(folder.name) / "copy.jsonl"

    def target(data: bytes) -> None:
        path.write_bytes(_transcript(atheris.FuzzedDataProvider(data)))
        try:
            episodes = read_jsonl(path)
        except SkillCError:
            return
        _Page().feed(to_html(episodes))
        assert not any("\x1b" in to_ansi(episode, colour=False) for episode in episodes)
        assert repr(read_jsonl(write_jsonl(copy, episodes))) == repr(episodes), "written and read differently"

    target.__dict__["folder"] = folder
    return target


def _transcript(provider: Any) -> bytes:
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return bytes(provider.ConsumeBytes(400))
    values = EPISODE.to_dict()
    for _ in range(provider.ConsumeIntInRange(0, 3)):
        _change(provider, values)
    text = json.dumps(values)
    for _ in range(provider.ConsumeIntInRange(0, 2) if way == 1 else 0):
        text = changed_text(provider, text, _OF_PAGES)
    return text.encode("utf-8", "surrogatepass")


def _change(provider: Any, values: dict[str, Any]) -> None:
    """Replaces or changes the text of one field of the episode, its turn or its message."""
    place = (values, *(entry for key in ("turns", "messages") for entry in _objects(values.get(key))))
    chosen = place[provider.ConsumeIntInRange(0, len(place) - 1)]
    if not chosen:
        return
    key = list(chosen)[provider.ConsumeIntInRange(0, len(chosen) - 1)]
    if isinstance(chosen[key], str) and provider.ConsumeBool():
        chosen[key] = changed_text(provider, chosen[key], _OF_PAGES)
    else:
        chosen[key] = _VALUES[provider.ConsumeIntInRange(0, len(_VALUES) - 1)]


def _objects(values: Any) -> list[dict[str, Any]]:
    return [entry for entry in values if isinstance(entry, dict)] if isinstance(values, list) else []


TRANSCRIPTS = FuzzTarget(
    "Transcripts with fields retyped and text put in are read or refused; their page holds no tag but its own, and "
    "what goes to a terminal no escape.",
    transcripts_target,
    ("skillc_gym.episodes", "json"),
)
