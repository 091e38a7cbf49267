"""A result: a model on a panel, with the outcome of every task; read strictly, and checked by its own outcomes."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from skillc_gym.episodes import iter_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.board.panels import PANELS, BoardPanel
from skillc_lab.tables import read_json
from trainers.config import TrainConfig
from trainers.engines import CHOOSING, ENGINES
from trainers.evaluation import PairedOutcome, PairedReport
from trainers.tracking import NO_WEIGHTS, settings_beside, sha256_of_file

_ABOUT = ("name", "model", "revision", "weights_sha256", "library", "library_sha256", "command", "transcripts_sha256")
_LONGEST = 2_000
_REMEDY = "make results with skillc board add EVALUATION"
_EVALUATING: Mapping[str, Any] = {
    "per_type": None,
    "attempts": 1,
    "agent": "zero-shot",
    "agent_options": {},
    "memory": "own",
}
"""What evaluate is told beside the settings of training, with its defaults."""
_SHA256 = re.compile("[0-9a-f]{64}")
_PLAIN = re.compile(r"[\w .,:;+()/@=%-]*")
"""What may stand in a table: nothing that Markdown or HTML would read."""
_WRAPPED = re.compile(r"\benv[-_]wrappers\b")


@dataclass(frozen=True)
class BoardResult:
    """A checked result on a panel; every figure is computed from the report's outcomes.

    ``about`` says name, model, revision, hash of the weights, skills and their hash, command, hash of the transcripts,
    "" for what is unknown; ``versions`` are packages and revision of this project that it was played with.
    """

    about: Mapping[str, str]
    panel: str
    report: PairedReport
    versions: Mapping[str, Any]

    @property
    def file_name(self) -> str:
        """Of its file, without suffix."""
        return re.sub(r"[\W_]+", "-", f"{self.about['name']} {self.panel}".lower()).strip("-")

    @property
    def own_skills(self) -> bool:
        """Whether other skills than the built-in ones were shown."""
        return self.about["library_sha256"] != PANELS[self.panel].library_sha256

    @property
    def version(self) -> str:
        """The revision, else the beginning of the weights' hash; "" where neither is known, as behind a server."""
        weights = self.about["weights_sha256"]
        return self.about["revision"] or weights[:12] * (weights != NO_WEIGHTS)

    @property
    def notes(self) -> tuple[str, ...]:
        """What tells a row from a model that writes freely, with the built-in skills."""
        found = [f"skills: {self.about['library']}"] if self.own_skills else []
        found += [f"agent: {self.report.agent}"] if self.report.agent not in ("", "zero-shot") else []
        engine = _engine(self.about["command"])
        found += ["chooses among commands"] if engine in CHOOSING else []
        found += [f"engine: {engine}"] if engine and engine not in ENGINES else []
        found += ["environment wrappers"] if _WRAPPED.search(self.about["command"]) else []
        return tuple(found)

    def is_play_of(self, other: BoardResult) -> bool:
        """Whether both tell the same episodes; two models that win nothing may well fail alike."""
        if self.about["transcripts_sha256"] == other.about["transcripts_sha256"]:
            return True
        won = self.report.overall.sr_with + self.report.overall.sr_without > 0
        return won and self.panel == other.panel and self.report.outcomes == other.report.outcomes

    def to_json(self) -> dict[str, Any]:
        """JSON-able values; outcomes figure by figure, which is a third as long."""
        report: dict[str, Any] = json.loads(json.dumps(self.report.to_json()))
        rows = report["outcomes"]
        report["outcomes"] = {name: [row[name] for row in rows] for name in rows[0]}
        return {**self.about, "panel": self.panel, "versions": dict(self.versions), "report": report}


def read_results(folder: Path) -> list[BoardResult]:
    """All results of a folder, by file name; errors as of :func:`read_result`."""
    results: list[BoardResult] = []
    for path in sorted(folder.glob("*.json")):
        result = read_result(path)
        check_distinct(result, results)
        results.append(result)
    return results


def check_distinct(result: BoardResult, others: Iterable[BoardResult]) -> None:
    """Refuses a result that tells the same episodes as another.

    Raises:
        ConfigError: There is such another; the message names it.
    """
    for other in others:
        if result.is_play_of(other):
            raise ConfigError(
                f"{result.file_name}.json has the same episodes as {other.file_name}.json, and one play is one row; "
                "to rename the row, delete the older file"
            )


def read_result(path: Path, name: str | None = None, revision: str | None = None) -> BoardResult:
    """Reads a result and checks it: hash of the panel, limits, and every rate and interval, from the outcomes.

    Name of the row and revision of the model are what the file says, unless others are given.

    Raises:
        ConfigError: It is none, of no panel, or says other figures than its outcomes give.
    """
    given = {"name": name, "revision": revision}
    values = read_json(path) | {key: text for key, text in given.items() if text is not None}
    try:
        return _checked(values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _checked(values: Mapping[str, Any]) -> BoardResult:
    about = {name: values.get(name, "") for name in _ABOUT}
    for name, text in about.items():
        if not isinstance(text, str) or len(text) > _LONGEST or not text.isprintable():
            raise ConfigError(f"{name} is a line of text of at most {_LONGEST:,} characters")
    for name in ("name", "revision", "weights_sha256", "library"):
        _require_plain(name, about[name])
    for name in ("name", "model", "command"):
        if not about[name].strip():
            raise ConfigError(f"it does not say its {name}; {_REMEDY}")
    for name in ("library_sha256", "transcripts_sha256"):
        if not _SHA256.fullmatch(about[name]):
            raise ConfigError(f"{name} is a SHA-256 in hexadecimal digits; {_REMEDY}")
    named, versions, report = (values.get(name) for name in ("panel", "versions", "report"))
    if not isinstance(named, str) or named not in PANELS:
        raise ConfigError(f"panel is one of {', '.join(PANELS)}; got {str(named)[:80]!r}")
    if not isinstance(versions, dict) or not isinstance(report, dict):
        raise ConfigError(f"versions and report are JSON objects; {_REMEDY}")
    _engine(about["command"])
    stored = {**report, "outcomes": _rows(report.get("outcomes"))}
    return BoardResult(about, named, _checked_report(stored, PANELS[named]), versions)


def _engine(command: str) -> str:
    """Who generated; "" for the default."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"command is no line of a shell ({error})") from error
    found = ""
    for word, following in pairwise([*words, ""]):
        name, given, value = word.removeprefix("--").partition("=")
        if name == "engine" and (given or word != name):
            found = value if given else following
    _require_plain("the command's engine", found)
    return found


def _require_plain(name: str, text: str) -> None:
    if not _PLAIN.fullmatch(text):
        raise ConfigError(f"{name} has letters, digits, blanks and .,:;+()/@=%_- alone; got {text!r:.80}")


def _rows(columns: Any) -> list[dict[str, Any]]:
    if not isinstance(columns, dict) or not columns or not all(isinstance(each, list) for each in columns.values()):
        raise ConfigError("report.outcomes is an object with a list for every figure")
    if len({len(each) for each in columns.values()}) != 1:
        raise ConfigError("the lists of report.outcomes differ in length; the file was changed or cut")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _checked_report(stored: Mapping[str, Any], panel: BoardPanel) -> PairedReport:
    """The report, if it is of the panel's tasks and says what its outcomes say."""
    report = PairedReport.from_json(stored)
    _require_plain("report.agent", report.agent)
    if report.panel_sha256 != panel.sha256:
        raise ConfigError(
            f"its tasks are not those of {panel.title} ({panel.data}): the hash is {report.panel_sha256[:12]}, not "
            f"{panel.sha256[:12]}; play {panel.command()}"
        )
    played = Counter(outcome.task_id for outcome in report.outcomes)
    if len(played) != panel.tasks or set(played.values()) != {report.attempts}:
        raise ConfigError(f"it does not play each of the {panel.tasks} tasks equally often")
    for outcome in report.outcomes:
        _check_outcome(outcome, panel)
    again = json.loads(json.dumps(report.to_json()))
    for place, said, found in _differences(stored, again):
        raise ConfigError(f"{place} says {said!r:.60}, and its outcomes give {found!r:.60}; the file was changed")
    return report


def _check_outcome(outcome: PairedOutcome, panel: BoardPanel) -> None:
    for arm in (outcome.with_skill, outcome.without_skill):
        counts = [count for count in (arm.well_formed, arm.admissible) if count is not None]
        if not (0 <= arm.steps <= panel.steps and 0 <= arm.score <= 1 and all(0 <= c <= arm.steps for c in counts)):
            raise ConfigError(
                f"{outcome.task_id}: steps lie between 0 and {panel.steps}, scores between 0 and 1, and no more "
                "replies are counted than there are steps"
            )


def _differences(said: Any, found: Any, place: str = "report") -> Iterator[tuple[str, Any, Any]]:
    """Where a file says something else than what is computed; what older versions did not write is no difference."""
    if isinstance(said, dict) and isinstance(found, dict):
        for name in said:
            yield from _differences(said[name], found.get(name), f"{place}.{name}")
        missing = {"overall", "panel_sha256"} & (found.keys() - said.keys())
        yield from ((f"{place}.{name}", None, found[name]) for name in sorted(missing))
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        for number, (one, other) in enumerate(zip(said, found, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif not _same(said, found):
        yield place, said, found


def _same(said: Any, found: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (said, found)]
    if all(numbers):
        return math.isclose(said, found, rel_tol=1e-9, abs_tol=1e-12)
    return type(said) is type(found) and bool(said == found)


# From an evaluation --------------------------------------------------------------------------------------------------


def evaluation_result(folder: Path, name: str | None = None, revision: str | None = None) -> BoardResult:
    """The result of what ``skillc evaluate`` wrote, checked as a file is, and against its transcripts.

    Name of the row and revision are those of the model, unless others are given.

    Raises:
        MissingDataError: There is no evaluation in the folder, or one without transcripts.
        ConfigError: It is of no panel, or of other transcripts.
    """
    if not (folder / "report.json").is_file():
        raise MissingDataError(f"{folder} holds no evaluation: expected report.json, as skillc evaluate writes it")
    report = PairedReport.load(folder / "report.json")
    found = next((each for each, panel in PANELS.items() if panel.sha256 == report.panel_sha256), None)
    if found is None:
        told = "\n".join(f"  {panel.title}: {panel.command()}" for panel in PANELS.values())
        raise ConfigError(f"{folder} is an evaluation of none of the board's panels. They are played so:\n{told}")
    config, settings = (read_json(folder / file) for file in ("config.json", "evaluation.json"))
    model = _place_free(str(config.get("model", "")))
    about = {
        "name": name or model,
        "model": model,
        "revision": revision or str(settings.get("revision") or ""),
        "weights_sha256": str(settings.get("weights_sha256", "")),
        "library": _place_free(str(settings.get("library") or PANELS[found].env)),
        "library_sha256": str(settings.get("library_sha256", "")),
        "command": _command(model, settings, settings_beside(str(config.get("model", "")), PANELS[found].env)),
        "transcripts_sha256": _check_transcripts(folder / "transcripts.jsonl", report),
    }
    if (grade := str(settings.get("skill_grade") or "full")) != "full":
        about["library"] += f" ({grade})"
    if memory := settings.get("memory_sha256"):
        about |= {"library": "own memory of the policy", "library_sha256": str(memory)}
    result = BoardResult(about, found, report, read_json(folder / "versions.json"))
    return _checked(json.loads(json.dumps(result.to_json())))


def _place_free(text: str) -> str:
    """A name without the folders of the machine that it lies on; ORGANISATION/MODEL stays."""
    head, colon, tail = text.partition(":")
    if colon:  # the host of an address is no folder
        return f"{head if head.startswith('//') else _place_free(head)}:{_place_free(tail)}"
    if not (Path(text).is_absolute() or text.startswith(("~", "."))):
        return text
    name = Path(text).name
    return Path(text).resolve().name if name in ("", "..") else name


def _command(model: str, settings: Mapping[str, Any], beside: Mapping[str, Any]) -> str:
    """A command that does the same as the one that was typed; ``beside``: what the policy's folder would say."""
    defaults = {**TrainConfig(model=model).to_json(), **_EVALUATING}
    words = ["skillc", "evaluate", "--model", model]
    if (data := settings.get("data")) is not None or "data" in beside:
        words += ["--data", {None: "none", "generated": "generated"}.get(data, "DATA")]  # a place on a machine
    for name, value in settings.items():
        same = name in defaults and value in (None, defaults[name]) and beside.get(name, value) == value
        if name in ("model", "data") or name not in defaults or same:
            continue
        option, shared = f"--{name.replace('_', '-')}", "none" if value is None else _without_places(value)
        if isinstance(shared, dict) and name.endswith("_options"):
            group = option.removesuffix("-options")
            words += [word for key, each in shared.items() for word in (f"{group}.{key}", json.dumps(each))]
        else:
            each = shared if isinstance(shared, list) else [shared]
            words += [option, *(one if isinstance(one, str) else json.dumps(one) for one in each)]
    if settings.get("tasks_sha256"):
        words += ["--tasks", "TASKS"]
    return shlex.join(words)


def _without_places(value: Any) -> Any:
    """A setting whose texts are all without the folders of the machine."""
    if isinstance(value, dict):
        return {key: _without_places(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_places(each) for each in value]
    return _place_free(value) if isinstance(value, str) else value


def _check_transcripts(path: Path, report: PairedReport) -> str:
    """The file's hash, if the report says what the episodes in it say."""
    if not path.is_file():
        raise MissingDataError(f"{path} is not there, and outcomes are checked by it; evaluate again into a new folder")
    told: Counter[tuple[str, bool, bool, int, float]] = Counter()
    for episode in iter_jsonl(path):
        told[episode.task_id, bool(episode.condition), episode.won, len(episode), episode.task_score] += 1
    arms = [(each.task_id, skill, each.arm(skill)) for each in report.outcomes for skill in (True, False)]
    if told != Counter((task, skill, arm.won, arm.steps, arm.score) for task, skill, arm in arms):
        raise ConfigError(f"{path} tells other outcomes than report.json; evaluate again into a new folder")
    return sha256_of_file(path)
