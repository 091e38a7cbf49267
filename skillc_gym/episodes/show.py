"""Episodes to look at: side by side as one self-contained HTML page, or as coloured text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillc_gym.episodes.record import Episode, Turn
from skillc_gym.pages import page, printable, resource

STYLE = resource("skillc_gym.episodes", "transcripts.css")
"""The styles of :func:`to_fragment`; every class begins with ``tr``."""


def to_html(episodes: Sequence[Episode] | Sequence[Sequence[Episode]], *, title: str = "Transcripts") -> str:
    """Renders episodes side by side, or several rows of such, as a page that needs no other file."""
    rows = [[entry] if isinstance(entry, Episode) else list(entry) for entry in episodes]
    if all(isinstance(entry, Episode) for entry in episodes):
        rows = [[episode for row in rows for episode in row]]
    sections = [to_fragment(row) for row in rows if row]
    return page("skillc_gym.episodes", "page.html", title=title, style=STYLE, sections=sections)


def to_fragment(episodes: Sequence[Episode], names: Sequence[str] = ()) -> str:
    """Renders one row of episodes as a ``<section>``, for a page with :data:`STYLE` and a parent of class ``tr``.

    ``names`` stand over each; without them it is told whether it saw the skill.
    """
    goals = list(dict.fromkeys((episode.goal, episode.task_id) for episode in episodes))
    values = {"episodes": episodes, "names": names, "goals": goals, "thought": _thought}
    return page("skillc_gym.episodes", "transcripts.html", **values)


def _thought(turn: Turn) -> str:
    """The thought of a well-formed reply; all of a malformed one, unless it is the bare command."""
    if not turn.format_valid:
        return "" if turn.reply.strip() == turn.action else turn.reply.strip()
    # A pattern would try each opening tag up to the end of the reply.
    _, _, inside = turn.reply.partition("<think>")
    thought, closed, _ = inside.partition("</think>")
    return thought.strip() if closed else ""


_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = 1, 2, 31, 32, 33, 36


def to_ansi(episode: Episode, *, colour: bool = True) -> str:
    """Renders an episode as text that ends with a line end, with ANSI colours unless told otherwise."""

    def paint(text: str, code: int) -> str:
        text = printable(text)  # a model's may hold escape sequences, which must not reach the terminal
        return f"\x1b[{code}m{text}\x1b[0m" if colour else text

    shown = f", shown {episode.skill}" if episode.skill else ""
    arm = f"with skill {episode.skill}" if episode.condition else f"without skill{shown}"
    lines = [paint(f"{episode.task_id}  ({arm}, seed {episode.seed})", _BOLD)]
    for number, turn in enumerate(episode.turns, start=1):
        lines += [paint(turn.observation, _DIM), f"{number:>3} {paint('> ' + turn.action, _CYAN)}{_flags(turn, paint)}"]
    lines.append(paint(episode.final_observation, _DIM))
    outcome = paint("won", _GREEN) if episode.won else paint("not won", _RED)
    lines.append(f"{outcome} after {len(episode)} steps, return {episode.episode_return:g}")
    return "\n".join(lines) + "\n"


def _flags(turn: Turn, paint: Callable[[str, int], str]) -> str:
    flags = ["malformed"] * (not turn.format_valid) + ["not possible"] * (not turn.action_valid)
    return "".join("  " + paint(f"[{flag}]", _YELLOW) for flag in flags)
