"""The other end of `skillc_gym.envs.alfworld.engine.textworld`: a process that plays games with upstream's own engine.

It is run as a script by its path, imports nothing of this package, reads one JSON object per line from its standard
input and answers with one per line. Upstream prints, swaps ``sys.stdout`` and overwrites ``sys.argv``: the pipe for
answers is therefore moved to a file descriptor of its own before upstream is imported.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import resource
import sys
from typing import Any


def main() -> None:
    """Answers requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    player = Player()
    for line in sys.stdin.buffer:
        try:
            answer = player.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the other end raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Player:
    """One game at a time, played by upstream."""

    def __init__(self) -> None:
        self._env: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carries out a request: ``load``, ``reset`` or ``step``."""
        if request["op"] == "load":
            self._load(request["path"], cached=request["cached"], naming=request["naming"])
            return {"ok": True, "megabytes": _megabytes()}
        state = self._env.reset() if request["op"] == "reset" else self._env.step(request["command"])[0]
        return {
            "feedback": state.feedback,
            "admissible": list(state.admissible_commands),
            "won": bool(state.won),
            "megabytes": _megabytes(),
        }

    def _load(self, path: str, *, cached: bool, naming: int | None) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

        if cached:
            remember_parses()
        if self._env is not None:
            self._env.close()
        infos = textworld.EnvInfos(won=True, admissible_commands=True)
        random.seed(naming)  # what upstream shuffles with, once per load
        self._env = textworld.start(path, infos, wrappers=[AlfredDemangler(shuffle=naming is not None)])


def _megabytes() -> float:
    """How large this process is; 0 where there is no /proc (its greatest size would include that of its parent)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - pathlib is one import more
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return 0.0


@functools.cache
def remember_parses() -> None:
    """Makes upstream remember what it otherwise parses again and again; its answers stay the same.

    Remembered are pure functions of text alone: the parse of a sentence, the parse of a query, and the translation of a
    problem. Contexts are copied one level deep, since nothing below that level is ever changed.
    """
    import fast_downward
    from textworld.envs.pddl import textgen
    from textworld.logic import Rule

    parse, query, translate = textgen._parse_and_convert, Rule.parse_conjunctive_query, fast_downward.pddl2sas
    parsed = functools.cache(lambda text, rule_name: parse(text, rule_name=rule_name))
    textgen._parse_and_convert = lambda text, rule_name, **_: copy.deepcopy(parsed(text, rule_name))
    textgen.copy_context = lambda context: {
        **context,
        "variables": dict(context["variables"]),
        "mapping": dict(context["mapping"]),
    }
    Rule.parse_conjunctive_query = functools.cache(query)
    fast_downward.pddl2sas = functools.lru_cache(maxsize=2)(translate)


if __name__ == "__main__":
    main()
