"""``python -m skillc_gym.adapters.verl_agent``: our environments in a checkout, and the tasks of its validations."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from skillc_gym.adapters.verl_agent.draws import alfworld_panel
from skillc_gym.errors import ConfigError, SkillCError
from skillc_gym.files import replace_file

_PACKAGES = "agent_system/environments/env_package"


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command; 2 where it was refused, which has been said."""
    parser = argparse.ArgumentParser(prog="python -m skillc_gym.adapters.verl_agent", description=__doc__)
    commands = parser.add_subparsers(required=True)
    patch = commands.add_parser("patch", help="print the change of two import lines, or make it")
    patch.add_argument("checkout", type=Path, help="a checkout of verl-agent or of a fork")
    patch.add_argument("--write", action="store_true", help="change the files")
    patch.set_defaults(run=_patch)
    panel = commands.add_parser("panel", help="print the tasks that a validation in ALFWorld plays, one a line")
    panel.add_argument("--config", type=Path, help="a config_tw.yaml that differs from verl-agent's own")
    panel.add_argument("--seed", type=int, default=0, help="env.seed of the run")
    panel.add_argument("--members", type=int, default=128, help="data.val_batch_size")
    panel.add_argument("--validation", type=int, default=0, help="which one: 0 is the first")
    panel.add_argument("--dataset", default="eval_in_distribution", help="env.alfworld.eval_dataset")
    panel.add_argument("--data", help="folder or archive of games (default: ALFWORLD_DATA)")
    panel.set_defaults(run=_panel)
    options = parser.parse_args(words)
    try:
        options.run(options)
    except SkillCError as error:
        _say(str(error), to=sys.stderr)
        return 2
    return 0


def _patch(options: argparse.Namespace) -> None:
    changes = list(_changes(options.checkout))
    for path, before, after in changes:
        names = f"a/{path.relative_to(options.checkout)}", f"b/{path.relative_to(options.checkout)}"
        _say(*difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=1))
    for done, (path, _, after) in enumerate(changes if options.write else ()):
        try:
            replace_file(path, [after.encode()])
        except SkillCError:
            for other, before, _ in changes[:done]:
                replace_file(other, [before.encode()])
            raise
    if not changes:
        _say("Both lines are there already", to=sys.stderr)
    elif not options.write:
        _say("\nNothing is changed yet: add --write", to=sys.stderr)


def _changes(checkout: Path) -> Iterator[tuple[Path, str, str]]:
    """Each file to change, with its text before and after."""
    for name in ("alfworld", "webshop"):
        path, ours = checkout / _PACKAGES / name / "__init__.py", "from skillc_gym.adapters.verl_agent import"
        try:
            text = path.read_bytes().decode("utf-8")  # line ends stay as they are
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read ({error}): name a checkout of verl-agent or a fork") from error
        line = re.compile(rf"^from \.envs import build_{name}_envs[ \t]*(?=\r?$)", re.MULTILINE)
        changed = line.sub(f"{ours} build_{name}_envs", text)
        if changed != text:
            yield path, text, changed
        elif f"{ours} build_{name}_envs" not in text:
            raise ConfigError(
                f"{path} has no line 'from .envs import build_{name}_envs'; put '{ours} build_{name}_envs' where it "
                "gets that name from"
            )


def _panel(options: argparse.Namespace) -> None:
    data = {} if options.data is None else {"data": options.data}
    drawn = alfworld_panel(options.config, options.seed, options.members, options.dataset, options.validation, **data)
    _say(*drawn)
    _say(f"{len(drawn)} draws of {len(set(drawn))} different tasks", to=sys.stderr)


def _say(*lines: str, to: TextIO | None = None) -> None:
    with contextlib.suppress(BrokenPipeError):  # "| head" has read enough
        if stream := to or sys.stdout:
            stream.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
