"""Skill libraries: learned from transcripts, compared, checked for lengths, duplicates, gaps, what tasks give away."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from skill_library import EVERY_TYPE, Skill, SkillLibrary, fit_text
from skill_library.formats import plain_name, unique
from skillc_gym.envs.registry import short_type
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError
from trainers.writers import LLMWriter, NotedWriter, Writer, supported_steps

_ALIKE = 0.9
_LONG = 400
_COMPARED = 2_000
"""Words of a skill that are compared, in time that grows with their product."""
_COUNTED = "step|steps|least|most|than|to|of|in|for|with|by|at|from|up|all|after|about|only|or|and|the|first|last"
"""Words before a number that counts, and names nothing."""
_PAIRED = 200_000
"""Pairs of equal words up to which their order is compared; two texts of 2,000 usual words have some 40,000."""
_NAMED_THING = re.compile(rf"\b(?!(?:{_COUNTED}) )[a-z]+ (?:[2-9]|[1-9]\d+)\b")
_CODE = re.compile(r"\bb0[a-z0-9]{8}\b", re.IGNORECASE)


@dataclass(frozen=True)
class Flaw:
    """Something to look at: what was found, and what to do."""

    skill: str
    """Whose it is; "" for the library as a whole."""
    message: str
    serious: bool
    """Whether an agent would be misled or an episode fail."""


def check_library(library: SkillLibrary, task_types: Iterable[str] = ()) -> list[Flaw]:
    """Finds what would go wrong in episodes: types without a skill, skills for types that do not exist, duplicates.

    The environment's types are left unchecked where none are given.
    """
    known = tuple(task_types)
    missing = [
        Flaw("", f"no skill serves the task type {kind}: episodes of it fail", True)
        for kind in known
        if not library.serves(kind)
    ]
    unknown = [
        Flaw(skill.name, f"serves {kind}, which the environment does not have{_meant(kind, known)}", True)
        for skill in library.skills
        for kind in skill.task_types
        if known and not skill.is_general and kind not in known
    ]
    return [*missing, *unknown, *_duplicates(library)]


def lint_library(library: SkillLibrary) -> list[Flaw]:
    """Finds what makes a skill worse: it is long, or names things of one task."""
    found = []
    for skill in library.skills:
        words = len(skill.text.split())
        if words > _LONG:
            found.append(Flaw(skill.name, f"has {words} words; beyond {_LONG} a prompt grows long", False))
        if named := sorted({*_NAMED_THING.findall(skill.text), *_CODE.findall(skill.text)}):
            found.append(Flaw(skill.name, f"names things of single tasks: {', '.join(named)}", True))
    return found


def diff_libraries(first: SkillLibrary, second: SkillLibrary) -> list[str]:
    """What changed between two libraries, as lines of a unified diff per skill; empty if their texts are equal."""
    old, new = ({skill.name: skill for skill in library.skills} for library in (first, second))
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = (_lines(skills.get(name)) for skills in (old, new))
        lines += difflib.unified_diff(before, after, f"{first.name}/{name}", f"{second.name}/{name}", lineterm="")
    return lines


def _meant(kind: str, known: Sequence[str]) -> str:
    """The type that a short or a mistyped name may mean."""
    full = {short_type(each): each for each in known} | {each: each for each in known}
    near = difflib.get_close_matches(kind, full, n=1)
    return f"; did you mean {full[near[0]]}?" if near else ""


def _duplicates(library: SkillLibrary) -> list[Flaw]:
    read = [(skill, skill.text.split()[:_COMPARED]) for skill in library.skills]
    found = []
    for (skill, words), (other, others) in combinations(read, 2):
        share = _share(words, others)
        if share >= _ALIKE:
            found.append(Flaw(skill.name, f"says nearly the same as {other.name} ({100 * share:.0f} %)", False))
    return found


def _share(words: Sequence[str], others: Sequence[str]) -> float:
    """How much of both is the same, from 0 to 1; 0 where too little can be to matter."""
    if words == others:
        return 1.0
    compared = difflib.SequenceMatcher(None, words, others, autojunk=False)
    in_any_order = compared.quick_ratio()
    if in_any_order < _ALIKE:
        return 0.0
    # Finding what stands where takes time that grows with the pairs of equal words: of a few words said over and over,
    # which their order does not tell apart, seconds.
    counted, against = Counter(words), Counter(others)
    pairs = sum(times * against[word] for word, times in counted.items())
    return in_any_order if pairs > _PAIRED else compared.ratio()


def _lines(skill: Skill | None) -> list[str]:
    if skill is None:
        return []
    short = [f"minimal: {line}" for line in skill.minimal.split("\n")] if skill.minimal else []
    return [f"task_types: {', '.join(skill.task_types)}", *short, *skill.text.split("\n")]


# From transcripts to a library ----------------------------------------------------------------------------------------


def learn_skills(
    episodes: Sequence[Episode], writer: Writer, *, short_names: Mapping[str, str] | None = None
) -> list[Skill]:
    """Writes a skill per task type that the writer has something for, and a general one of what all types share.

    The general skill is the writer's (its drafts without a task type), or else the steps that won episodes of all types
    share. What a type's lost episodes leave out although nearly all won ones do it is added as the mistake to avoid. A
    :class:`NotedWriter` writes what is general and the mistakes itself, and no rule adds to it. Control characters are
    taken out; a text of nothing else is left out. The general skill comes first, then those of types by name.

    Raises:
        ConfigError: The writer wrote nothing, as rules do where no episode was won.
    """
    drafts: dict[str, list[str]] = {}
    for draft in writer.write(episodes):
        if text := fit_text(draft.text):
            drafts.setdefault(draft.task_type, []).append(text)
    ruled = () if isinstance(writer, NotedWriter) else episodes
    written = "\n\n".join(drafts.pop("", []))
    if not drafts and not written:
        raise ConfigError(
            f"No skill could be written from {len(episodes)} episodes, of which {_won(episodes)} were won; "
            f"{_remedy(writer)}"
        )
    skills: list[Skill] = []
    if general := written or _shared_steps(ruled):
        told = "What holds for all task types." if written else "What won episodes of all task types share."
        skills.append(Skill("general", told, (EVERY_TYPE,), general))
    for kind, own in sorted(drafts.items()):
        name = unique(plain_name((short_names or {}).get(kind, kind)), [skill.name for skill in skills])
        text = "\n\n".join([*own, *filter(None, [_mistake(_of_type(kind, ruled))])])
        played = _of_type(kind, episodes)
        skills.append(Skill(name, f"Learned from {len(played)} episodes, {_won(played)} of them won.", (kind,), text))
    return skills


def _of_type(kind: str, episodes: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in episodes if episode.task_type == kind]


def _mistake(episodes: Sequence[Episode]) -> str:
    """What lost episodes leave out most, in a sentence; "" where they leave out nothing."""
    won, lost = [e for e in episodes if e.won], [e for e in episodes if not e.won]
    missed = [step for step in supported_steps(won, lost, 0.9) if step.difference > 0.5] if won and lost else []
    return fit_text(f"Mistake to avoid: to leave out: {'; '.join(step.step for step in missed)}.") if missed else ""


def _shared_steps(episodes: Sequence[Episode]) -> str:
    """Steps that won episodes of every type share; "" with one type alone, or nothing in common."""
    kinds = sorted({episode.task_type for episode in episodes if episode.won})
    shared: list[str] | None = None
    for kind in kinds:
        steps = [s.step for s in supported_steps([e for e in _of_type(kind, episodes) if e.won], [])]
        shared = steps if shared is None else [step for step in shared if step in steps]
    if len(kinds) < 2 or not shared:
        return ""
    lines = [f"{i}. {step}." for i, step in enumerate(shared, 1)]
    return fit_text("\n".join(["General skill: every task needs these steps.", *lines]))


def _remedy(writer: Writer) -> str:
    if not writer.bad_replies:
        return "play more episodes, or take those of an expert"
    fault = f" (the last one: {writer.last_fault})" if isinstance(writer, LLMWriter) else ""
    return (
        f"{writer.bad_replies} replies of the writer could not be read{fault}; take a model that follows formats, or, "
        "where replies are empty, one with a longer context"
    )


def _won(episodes: Sequence[Episode]) -> int:
    return sum(bool(episode.won) for episode in episodes)
