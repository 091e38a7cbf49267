"""``skillc doctor``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillc_lab.commands.cli.command import Command
from skillc_lab.commands.cli.console import say
from skillc_lab.commands.doctor import Questions, examine
from skillc_lab.commands.findings import as_json, as_text

__all__ = ["COMMAND", "DoctorOptions"]


@dataclass(frozen=True)
class DoctorOptions:
    """Say what is installed, which data and devices are seen, what will run, and what mends the rest.

    The exit status is 0 unless something that was asked for here by name cannot run.

    Example: skillc doctor --env alfworld --data generated --model shipped
    """

    env: str | None = None
    """Environment that shall run; all if none."""
    data: str | None = None
    """Its data: a folder, an archive, or "generated"; none looks where the environment looks."""
    model: str | None = None
    """Checkpoint whose context limit is held against the environment's episodes."""
    engine: str | None = None
    """Engine that shall generate."""
    form: str = "conversation"
    """Form of the prompts, as in training."""
    max_context: int | None = None
    """Longest row in tokens, as in training; its default if none."""
    json: bool = False
    """Write JSON."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment, as in training; singly as env.generator='{"size": "small"}'."""

    def questions(self) -> Questions:
        """What is asked."""
        options: dict[str, Any] = {"form": self.form, "env_options": self.env_options}
        if self.max_context is not None:
            options["max_context"] = self.max_context
        return Questions(self.env, self.data, self.model, self.engine, options)


def doctor(options: DoctorOptions) -> int:
    """Runs the command; 2 if something that was asked for cannot run."""
    findings = examine(options.questions())
    say(json.dumps(as_json(findings), indent=2) if options.json else as_text(findings))
    return 2 if any(finding.asked and finding.status == "missing" for finding in findings) else 0


COMMAND = Command(DoctorOptions, doctor)
