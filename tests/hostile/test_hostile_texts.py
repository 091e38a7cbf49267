"""Skill files, skills in the forms of others, and transcripts that strangers wrote: read or refused, and shown."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from skill_library import Skill, SkillCError, load_library
from skill_library.formats import read_agent_skills, read_bank, read_sections, write_library
from skillc_gym.episodes import read_jsonl, to_html, write_jsonl
from tests.conftest import EPISODE
from tests.hostile.changes import changed, hostile

GOOD = "---\nname: heat\ndescription: Heat it.\ntask_types: [heat, cook]\nlicense: MIT\n---\nOpen the microwave.\n"
OF_YAML = (
    *("&a ", "*a", "<<: ", "!!python/name:os.system ", "!!binary ", "!!timestamp ", "? ", "[", "{a: "),
    *("- ", "|\n  ", ">-\n", "%YAML 1.1\n", "---\n", "...\n", "'", '"\\', "2001-99-99", "0x", "=", "~"),
    *("\t", "\r\n", "\x00", "\x85", "\u2028", "../", "name: heat\n", "\ufeff"),
)
BANK = {
    "general_skills": [{"skill_id": "g1", "title": "Look", "principle": "Look first.", "when_to_apply": "always"}],
    "task_specific_skills": {"heat": [{"title": "Heat", "principle": "Open the microwave."}]},
    "common_mistakes": [{"description": "Haste", "why_it_happens": "hurry", "how_to_avoid": "Wait."}],
}
SECTIONS = "Be calm.\n### general ###\nLook first.\n\n### heat ###\nOpen the microwave.\n"
OF_FORMS = (
    *("###", "### x ###\n", "### ../a ###\n", "\r", "\t", "[", "{}", "null", "1e999", '"title": 3', '"principle": ""'),
    *("Apply when: ", "Mistake: ", "Instead: ", "\\ud800", "\x00", "\x1b[2J", "general", " ", "é😀", "---\n"),
)
OF_PAGES = (
    *("<script>alert(1)</script>", '"><img src=x onerror=y>', "</style>", "<think>", "</think>", '"turns": [],'),
    *("\\ud800", "\\u202e", "\x1b[2J", "[", '{"a":', "9", "1e999", "NaN", "null", "true", '"', "\\", "\n", "\x00"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1e308, float("nan"), "", "<b>", "\ud800", [], [[]], [{}], {}, {"role": "<b>"}),
)
ELEMENTS = "html head meta title style body h1 section h2 small div article span details summary pre b ol li"


@contextmanager
def refused_in_a_short_sentence() -> Iterator[None]:
    said = ""
    try:
        yield
    except SkillCError as error:
        said = str(error)
    assert len(said) < 2_000


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@hostile
def test_a_library_is_read_or_refused_in_a_short_sentence(data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, refused_in_a_short_sentence():
        for name in ("one", "two"):
            write(Path(folder) / name / "SKILL.md", changed(data, GOOD, OF_YAML))
        library = load_library(folder)
        for kind in library.task_types:
            skill = library.for_task(kind)
            assert len(skill.text) <= library.longest
            assert not set(skill.name) & set("/\\\0\n"), "a name that is a path"


@hostile
def test_skills_of_others_are_read_or_refused_and_can_be_kept(data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, refused_in_a_short_sentence():
        skills = imported(data, Path(folder) / "in" / "one")
        assert len({skill.name for skill in skills}) == len(skills)
        assert not any(set(skill.name) & set("/\\\0\n") for skill in skills), "a name that is a path"
        with suppress(SkillCError):
            kept = load_library(str(write_library(skills, Path(folder) / "library"))).skills
            assert {skill.name: skill.text for skill in kept} == {skill.name: skill.text for skill in skills}


def imported(data: Any, place: Path) -> list[Skill]:
    way = data.draw(st.integers(0, 2))
    if way == 0:
        text = changed(data, json.dumps(BANK), OF_FORMS)
        try:
            return read_bank(json.loads(text))
        except (ValueError, RecursionError):
            return read_bank(text)
    if way == 1:
        return read_sections(changed(data, SECTIONS, OF_FORMS))
    write(place / "SKILL.md", changed(data, GOOD, OF_YAML))
    (place / "references").mkdir()
    (place / "references" / "more.md").write_bytes(data.draw(st.binary(max_size=200)))
    return read_agent_skills(place.parent, references=data.draw(st.booleans()))


class Page(HTMLParser):
    """Notices what a page of transcripts never holds."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS.split(), f"a foreign tag {tag}"
        assert all(name in ("class", "lang", "charset", "name", "content", "http-equiv") for name, _ in attrs)


@hostile
def test_transcripts_are_shown_as_text_alone_and_read_the_same_again(data: Any) -> None:
    values = EPISODE.to_dict()
    for _ in range(data.draw(st.integers(0, 3))):
        retype(data, values)
    with tempfile.TemporaryDirectory() as folder, suppress(SkillCError):
        path = write(Path(folder) / "e.jsonl", changed(data, json.dumps(values), OF_PAGES, changes=2))
        episodes = read_jsonl(path)
        Page().feed(to_html(episodes))
        assert repr(read_jsonl(write_jsonl(Path(folder) / "copy.jsonl", episodes))) == repr(episodes)


def retype(data: Any, values: dict[str, Any]) -> None:
    """Puts something else in the place of one field of the episode, its turn or its message."""
    inner = [entry for key in ("turns", "messages") if isinstance(values.get(key), list) for entry in values[key]]
    place = data.draw(st.sampled_from([values, *(entry for entry in inner if isinstance(entry, dict) and entry)]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(st.sampled_from([*VALUES, *OF_PAGES]))
