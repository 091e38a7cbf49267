"""Skills' tests as the page on evaluation at agentskills.io lays them out: the cases that a skill brings, and results.

The cases stand in ``evals/evals.json`` of a skill's folder. Of the results each case has a folder with ``with_skill/``
and ``without_skill/``, and in each of them ``outputs/`` (what was said and done), ``timing.json`` and ``grading.json``;
``benchmark.json`` sums them up. The environment grades: an episode is one assertion, that its task is solved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from skill_library import SkillFileError, read_bounded
from skill_library.formats import unique
from skillc_gym.envs.registry import short_type
from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import ConfigError, SkillCError
from skillc_lab.skills.effect import SkillTest
from skillc_lab.tables import tokens_of
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking import make_folder, parse_object, write_json

EVALS_FILE = Path("evals") / "evals.json"
"""Where a skill's folder has them."""

_MAX_BYTES, _MAX_EVALS, _MAX_NAME = 262_144, 1_000, 64


@dataclass(frozen=True)
class SkillEval:
    """One test case: tasks of an environment, by one id or by a type's full or short name.

    What success looks like and assertions are for people: an environment cannot grade them.
    """

    name: str
    task_id: str = ""
    task_type: str = ""
    expected_output: str = ""
    assertions: tuple[str, ...] = ()


def read_evals(folder: Path) -> list[SkillEval]:
    """The test cases of a skill, or of every skill of a library; empty if none brings any.

    Raises:
        SkillFileError: A file is not what the page describes, leads out of the folder, or names no task.
    """
    found: list[SkillEval] = []
    for own in sorted({folder / EVALS_FILE, *folder.glob(f"*/{EVALS_FILE}")}):
        if own.exists() or own.is_symlink():
            try:
                if not own.resolve().is_relative_to(folder.resolve()):
                    raise ConfigError(f"it is a link that leads out of {folder}; put a copy there instead")
                found += _evals(parse_object(read_bounded(own, _MAX_BYTES)), own.parent.parent.resolve().name)
            except (SkillCError, OSError, ValueError) as error:
                raise SkillFileError(f"{own}: {error}") from error
    names = Counter(each.name for each in found)
    if twice := next((name for name, times in names.items() if times > 1), None):
        raise SkillFileError(f"{folder}: two test cases would lie in the folder eval-{twice}; give one another id")
    return found


def _evals(values: Mapping[str, Any], skill: str) -> Iterator[SkillEval]:
    if not isinstance(values.get("evals"), list):
        raise ConfigError(f'expected a list under "evals", got {type(values.get("evals")).__name__}')
    if len(values["evals"]) > _MAX_EVALS:
        raise ConfigError(f"it has {len(values['evals']):,} evals; at most {_MAX_EVALS:,} are read")
    for place, entry in enumerate(values["evals"], 1):
        if not isinstance(entry, dict):
            raise ConfigError(f"eval {place} is no object but {type(entry).__name__}")
        yield _eval(f"{skill}-{_id(entry, place)}", entry, place)


def _id(entry: Mapping[str, Any], place: int) -> str:
    """A number or a plain word, since it names a folder."""
    found = entry.get("id", place)
    plain = str(found).replace("-", "").replace("_", "")
    if isinstance(found, bool) or not isinstance(found, int | str) or not (plain.isascii() and plain.isalnum()):
        raise ConfigError(f"eval {place}: id is a number, or letters, digits, - and _; got {str(found)[:40]!r}")
    if len(str(found)) > _MAX_NAME:
        raise ConfigError(f"eval {place}: id is longer than {_MAX_NAME} characters")
    return str(found)


def _eval(name: str, entry: Mapping[str, Any], place: int) -> SkillEval:
    texts = {key: entry.get(key, "") for key in ("task_id", "task_type", "expected_output")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ConfigError(f"eval {place}: {key} is a text; got {type(text).__name__}")
    said = entry.get("assertions", [])
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise ConfigError(f"eval {place}: assertions is a list of texts")
    if bool(texts["task_id"]) == bool(texts["task_type"]):
        raise ConfigError(
            f"eval {place} must name either a task of the environment (task_id) or a type (task_type) beside its "
            "prompt; to leave the file aside, name a panel: --per-type 8"
        )
    return SkillEval(name, **texts, assertions=tuple(said))


# Results --------------------------------------------------------------------------------------------------------------

BENCHMARK = "benchmark.json"
_ARMS = {"with_skill": True, "without_skill": False}


def cases_of(report: PairedReport, evals: Mapping[SkillEval, Sequence[str]]) -> dict[SkillEval, frozenset[str]]:
    """The skill's own test cases with the tasks of each, or, where it brings none, one per task type."""
    if evals:
        return {case: frozenset(tasks) for case, tasks in evals.items()}
    names: dict[str, str] = {}
    for kind in report.per_type:  # each has a folder of its name
        names[kind] = unique(short_type(kind).replace("/", "-"), names.values())
    return {
        SkillEval(name, task_type=kind): frozenset(each.task_id for each in report.outcomes if each.task_type == kind)
        for kind, name in names.items()
    }


def next_iteration(workspace: Path) -> Path:
    """The first ``iteration-N`` without results; one that was interrupted goes on."""
    places = (workspace / f"iteration-{number}" for number in count(1))
    return next(place for place in places if not (place / BENCHMARK).exists())


def write_workspace(
    test: SkillTest, cases: Mapping[SkillEval, frozenset[str]], out: Path, about: Mapping[str, Any]
) -> None:
    """Writes an iteration: what was played for each case, and ``benchmark.json`` with the figures and ``about``."""
    for case, tasks in cases.items():
        for arm, skill in _ARMS.items():
            _write_arm(test.report, case, tasks, skill, out / f"eval-{case.name}" / arm)
    outcomes = test.report.outcomes
    summary: dict[str, Any] = {arm: _summary(outcomes, skill) for arm, skill in _ARMS.items()}
    summary["delta"] = {name: _delta(*(summary[arm][name]["mean"] for arm in _ARMS)) for name in summary["with_skill"]}
    write_json(out / BENCHMARK, {**about, "run_summary": summary, "skill_test": test.to_json()})


def _write_arm(report: PairedReport, case: SkillEval, tasks: frozenset[str], skill: bool, folder: Path) -> None:
    outcomes = [outcome for outcome in report.outcomes if outcome.task_id in tasks]
    arms = [outcome.arm(skill) for outcome in outcomes]
    make_folder(folder / "outputs")
    played = [each for each in report.episodes if each.task_id in tasks and bool(each.condition) is skill]
    write_jsonl(folder / "outputs" / "transcripts.jsonl", played)
    known = [arm.seconds for arm in arms if arm.seconds is not None]
    duration = round(1000 * sum(known)) if len(known) == len(arms) else None
    tokens = sum(arm.tokens or 0 for arm in arms)
    write_json(folder / "timing.json", {"total_tokens": tokens, "duration_ms": duration})
    graded = [_graded(case, outcome, arm) for outcome, arm in zip(outcomes, arms, strict=True)]
    passed, total = sum(arm.won for arm in arms), len(arms)
    rates = {"passed": passed, "failed": total - passed, "total": total, "pass_rate": passed / total}
    ungraded = {"not_graded": list(case.assertions)} if case.assertions else {}
    write_json(folder / "grading.json", {"assertion_results": graded, "summary": rates, **ungraded})


def _graded(case: SkillEval, outcome: PairedOutcome, arm: ArmOutcome) -> dict[str, Any]:
    attempt = f" (attempt {outcome.attempt + 1})" if outcome.attempt else ""
    return {
        "text": f"{outcome.task_id} is solved{attempt}" + (f": {case.expected_output}" if case.expected_output else ""),
        "passed": arm.won,
        "evidence": f"The environment {'says that it is' if arm.won else 'never said so'}: score {arm.score:g}, "
        f"{arm.steps} steps" + (f", cut by {arm.cut}" if arm.cut else ""),
    }


def _summary(outcomes: Sequence[PairedOutcome], skill: bool) -> dict[str, dict[str, float | None]]:
    arms = [outcome.arm(skill) for outcome in outcomes]
    figures: dict[str, Sequence[float]] = {
        "pass_rate": [float(arm.won) for arm in arms],
        "time_seconds": [arm.seconds for arm in arms if arm.seconds is not None],
        "tokens": tokens_of(outcomes, skill),
    }
    return {name: _spread(values) for name, values in figures.items()}


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation over episodes; None of nothing."""
    if not values:
        return {"mean": None, "stddev": None}
    return {"mean": fmean(values), "stddev": stdev(values) if len(values) > 1 else 0.0}


def _delta(with_: float | None, without: float | None) -> float | None:
    return None if with_ is None or without is None else with_ - without
