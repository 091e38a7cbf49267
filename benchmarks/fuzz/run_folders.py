"""Hostile run folders: resumed from and reported on."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import FuzzTarget, Run, changed_text
from benchmarks.fuzz.transcripts import EPISODE
from skill_library import SkillCError
from skillc_lab.report import RunRecords, read_source, render_page
from trainers.config import TrainConfig
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking import RunFolder, read_checkpoint

__all__ = ["TARGET"]

CONFIG = TrainConfig(model="model")
META = {"step": 1, "config": CONFIG.to_json(), "task_digest": "d", "method": {"gap": {"heat": 0.5}}, "counters": {}}
TRAIN = {"step": 1, "event": "train", "success": 0.5, "gap": {"heat": 0.1}, "contrast": {"heat": None}}
VALIDATION = {
    "step": 1,
    "event": "validation",
    "sr_with": {"heat": 0.5},
    "gap_smoothed": {"heat": 0.2},
    "n": {"heat": 2},
    "retired": [{"type": "heat", "reason": "gap"}],
    "retirement": {"by": ["gap", "budget"], "threshold": 0.05, "capacity": [1, 0]},
}
PIECES = ("<script>", "[", '{"a":', "9", "1e999", "-", "NaN", "null", "true", '"', "\\", "\n", "\x00", "../", "\\ud800")
VALUES: tuple[Any, ...] = (None, True, -1, 10**30, 1e308, float("nan"), "", "<script>", "\ud800", [], [[1]], {}, [{}])
TAGS = frozenset(
    word
    for words in (
        ("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "b", "small", "section"),
        ("table", "tr", "th", "td", "details", "summary", "pre", "article", "span", "ol", "li", "br"),
    )
    for word in words
)


class _Page(HTMLParser):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"a foreign tag {tag}"


def run_folders_target(atheris: Any) -> Run:
    """Takes up and reports on a folder one of whose files was changed."""
    place = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")
    root = Path(place.name)
    files = _files(root)

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        chosen = sorted(files)[provider.ConsumeIntInRange(0, len(files) - 1)]
        chosen.write_bytes(_changed(provider, files[chosen]))
        try:
            resume(root)
            report(root)
        finally:
            chosen.write_bytes(files[chosen])

    target.__dict__["place"] = place
    return target


def resume(root: Path) -> None:
    """Reads what a resumed run reads; metrics are read whatever they hold."""
    folder = RunFolder(root)
    assert all(isinstance(record["step"], int) for record in folder.metrics())
    try:
        found = folder.to_resume(CONFIG)
        if found is not None:
            read_checkpoint(found, CONFIG, "d")
    except SkillCError:
        return


def report(root: Path) -> None:
    """Reads what a report reads, and writes its page, without pictures."""
    try:
        source = read_source(root)
    except SkillCError:
        return
    _Page().feed(render_page("title", source, {}))
    if source.run is not None:
        _figures(source.run)


def _figures(run: RunRecords) -> None:
    assert run.total_steps >= run.last_step >= 0
    for kind in run.task_types:
        assert run.panel_size(kind) is not None
        assert all(isinstance(value, float) for value in run.validated("sr_with", kind).values)
        assert all(isinstance(value, float) for value in run.trained("gap", kind).values)
    assert all(isinstance(value, float) for value in run.overall("success").values)
    assert run.threshold is None or isinstance(run.threshold, float)
    assert all(isinstance(size, int) for size in run.capacity)


def _files(root: Path) -> dict[Path, bytes]:
    folder = RunFolder(root)
    folder.prepare(CONFIG, {"panel": []})
    partial = folder.partial(1)
    (partial / "weights").write_bytes(b"w")
    checkpoint = folder.commit(partial, 1, META, 9)
    arms = ArmOutcome(True, 1.0, 3), ArmOutcome(False, 0.5, 9, "steps")
    outcomes = tuple(PairedOutcome(f"t/{n}", "heat", *arms) for n in range(3))
    for record in (VALIDATION, TRAIN):
        folder.append(record)
    folder.write_transcripts("validation-000001", [EPISODE, dataclasses.replace(EPISODE, condition=0)])
    (root / "after").mkdir()
    PairedReport(outcomes, 0, {"temperature": 1.0}).save(root / "after" / "report.json")
    names = ("config.json", "versions.json", "metrics.jsonl", "after/report.json")
    places = [
        *(root / name for name in names),
        *root.glob("transcripts/*"),
        checkpoint / "run.json",
        checkpoint / "weights",
    ]
    return {path: path.read_bytes() for path in places}


def _changed(provider: Any, content: bytes) -> bytes:
    if provider.ConsumeIntInRange(0, 9) == 0:
        return bytes(provider.ConsumeBytes(400))
    lines = content.decode("latin-1").split("\n")
    number = provider.ConsumeIntInRange(0, len(lines) - 1)
    if provider.ConsumeBool():
        text = changed_text(provider, "\n".join(lines), PIECES)
        return text.encode("utf-8", "surrogatepass")
    whole = len(lines) > 3  # a file of one object, not of lines
    found = _parsed("\n".join(lines) if whole else lines[number])
    if found is None:
        return b"".join(line.encode("latin-1") + b"\n" for line in lines[::-1])
    _retype(provider, found)
    if whole:
        return json.dumps(found).encode()
    return "\n".join([*lines[:number], json.dumps(found), *lines[number + 1 :]]).encode()


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _retype(provider: Any, values: dict[str, Any]) -> None:
    """Puts another value in the place of one, at most three levels deep."""
    place: Any = values
    for _ in range(3):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[provider.ConsumeIntInRange(0, len(keys) - 1)]
        if not isinstance(place[key], (dict, list)) or provider.ConsumeBool():
            place[key] = VALUES[provider.ConsumeIntInRange(0, len(VALUES) - 1)]
            return
        place = place[key]


TARGET = FuzzTarget(
    "Run folders with one file changed (metrics, configuration, a checkpoint's description or weights, an evaluation's "
    "report) are resumed from and reported on, or refused; valid lines of metrics are read, and the page holds no tag "
    "but its own.",
    run_folders_target,
    ("skillc_gym.episodes", "skillc_gym.files", "skill_library.", "trainers.tracking", "skillc_lab.report", "json"),
)
