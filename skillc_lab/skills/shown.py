"""What recorded episodes were shown: which texts, how often, whether a library still says the same; as a table too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skill_library import GRADES, SkillFileError, SkillLibrary, SkillText
from skillc_gym.envs.registry import short_type
from skillc_gym.episodes import Episode, iter_jsonl
from skillc_gym.pages import printable
from skillc_lab.skills.libraries import Flaw
from skillc_lab.tables import Table
from trainers.memory import specific_text

Standing = Literal["same", "same and more", "its own alone", "changed", "not in it"]
"""How a shown text stands to a library: equal to its text; that and more behind it, as agents add it; equal to the task
type's own skills without the general ones, as some memories show it; under the name of its skill another text; or no
skill of that name for the task type."""

_COPIES = "eval-*/*/outputs/transcripts.jsonl"


@dataclass(frozen=True)
class ShownText:
    """One text as it was recorded, and the episodes of a task type and a condition that were shown it."""

    task_type: str
    condition: int
    grade: str
    """How much of the skill it was; "" where nobody said."""
    skill: str
    """The skills' names, such as ``general+heat``."""
    text: str
    """"" if the episodes were shown none."""
    recorded_sha256: str
    episodes: int
    absent: int = 0
    """How many of them kept a first prompt that does not hold the text."""

    @property
    def sha256(self) -> str:
        """Hex digest of the text in UTF-8, "" without a text."""
        return SkillText(self.skill, self.text).sha256 if self.text else ""


def episode_files(place: Path) -> list[Path]:
    """A file of recorded episodes, or a folder's at any depth: ``transcripts*.jsonl`` and ``transcripts/*.jsonl``.

    What a skill's test copies to its cases (``eval-NAME/with_skill/outputs``) is left out where the test's own file is.
    """
    if place.is_file():
        return [place]
    found = sorted(place.absolute().rglob("*.jsonl"))
    named = [path for path in found if path.name.startswith("transcripts") or path.parent.name == "transcripts"]
    return [path for path in named if not (path.match(_COPIES) and path.parents[3] / path.name in named)]


def read_episodes(files: Iterable[Path]) -> Iterator[Episode]:
    """Reads the episodes of several files one by one; an error names the file and the line."""
    for file in files:
        yield from iter_jsonl(file)


def shown_texts(episodes: Iterable[Episode]) -> list[ShownText]:
    """Groups episodes by task type, condition (with the skill first) and the text they were shown, or none."""
    counts: Counter[tuple[str, int, str, str, str, str]] = Counter()
    absent: Counter[tuple[str, int, str, str, str, str]] = Counter()
    for e in episodes:
        key = (e.task_type, e.condition, e.skill_grade, e.skill, e.skill_text, e.skill_sha256)
        counts[key] += 1
        absent[key] += not _prompted(e)
    return [ShownText(*key, counts[key], absent[key]) for key in sorted(counts, key=lambda key: (key[0], -key[1], key))]


def standing(shown: ShownText, library: SkillLibrary) -> Standing | None:
    """Holds a text against what the library says today at its grade, or at any where none is known."""
    if not shown.text:
        return None
    if not library.serves(shown.task_type):
        return "not in it"
    grades = (shown.grade,) if shown.grade in GRADES else ("full", "minimal")
    told = [found for grade in grades if (found := _at(library, grade))]
    texts = [each.for_task(shown.task_type) for each in told]
    if any(shown.text == each.text for each in texts):
        return "same"
    # Agents add their names with their texts; without one, paragraphs are missing in the library.
    more = (each for each in texts if each.text and shown.skill.startswith(f"{each.name}+"))
    if any(shown.text.startswith(each.text + "\n\n") for each in more):
        return "same and more"
    if any(shown.text == specific_text(each, shown.task_type).text for each in told):
        return "its own alone"
    named = any(each.name and f"{shown.skill}+".startswith(f"{each.name}+") for each in texts)
    return "changed" if named else "not in it"


def _at(library: SkillLibrary, grade: str) -> SkillLibrary | None:
    """The library at a grade; None of a control that has nothing to show there."""
    try:
        return library.graded(grade)
    except SkillFileError:
        return None


def check_shown(shown: Sequence[ShownText], library: SkillLibrary | None = None) -> list[Flaw]:
    """Finds records that contradict themselves, and texts that are not of the library that should have been read."""
    flaws = []
    for each in shown:
        name = f"{each.skill or 'a text without a name'}, shown for {each.task_type or 'no task type'}"
        flaws += [Flaw(printable(name), fault, True) for fault in _faults(each, library)]
    return flaws


def _prompted(episode: Episode) -> bool:
    """Whether the kept prompt holds the text; True where either is missing."""
    if not episode.skill_text or not episode.messages:
        return True
    return any(episode.skill_text in message.get("content", "") for message in episode.messages)


def _faults(shown: ShownText, library: SkillLibrary | None) -> Iterator[str]:
    if shown.text and shown.recorded_sha256 not in ("", shown.sha256):
        yield f"the recorded hash {shown.recorded_sha256[:12]} is not that of the recorded text; the file was altered"
    if shown.absent:
        yield f"{shown.absent} of {shown.episodes} episodes kept a first prompt that does not hold the text"
    if library is None or not shown.condition or shown.grade == "none":
        return  # without the skill an agent's notes are shown, which are no skill of the library
    held = {"changed": "another text for it today", "not in it": "no such skill for this task type"}
    if told := held.get(standing(shown, library) or ""):
        yield f"the library {library.name} has {told}; {shown.episodes} episodes read this one"


# In words -------------------------------------------------------------------------------------------------------------


def shown_table(
    shown: Sequence[ShownText], library: SkillLibrary | None = None, count: Callable[[str], int] | None = None
) -> str:
    """A line per text, with its tokens if they can be counted, and how it stands to a library."""
    heads = ["type", "condition", "skill", "grade", "episodes", "words", "tokens", "sha256"]
    rows = [_row(each, count) for each in shown]
    if library is not None:
        heads.append(f"{library.name} today")
        rows = [[*row, standing(each, library) or "-"] for row, each in zip(rows, shown, strict=True)]
    return Table(heads, rows, numbers=(4, 5, 6)).text()


def shown_text(shown: ShownText) -> str:
    """A text in full, behind a line that says who read it."""
    who = f"{shown.episodes} episodes of {shown.task_type} {_condition(shown)} the skill read {shown.skill}"
    what = f"{shown.grade or 'of no recorded grade'}, sha256 {shown.sha256[:12]}"
    return printable(f"{who} ({what}):\n\n{shown.text}\n")


def _row(shown: ShownText, count: Callable[[str], int] | None) -> list[str]:
    words = str(len(shown.text.split())) if shown.text else ""
    tokens = str(count(shown.text)) if shown.text and count else ""
    named = [short_type(shown.task_type), _condition(shown), shown.skill, shown.grade]
    return [printable(cell) or "-" for cell in [*named, str(shown.episodes), words, tokens, shown.sha256[:12]]]


def _condition(shown: ShownText) -> str:
    return "with" if shown.condition else "without"
