"""Episodes to look at, side by side as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from skillc_gym.episodes.record import Episode, Turn
from skillc_gym.pages import page, resource

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
