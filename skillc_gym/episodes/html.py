"""Episodes side by side as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from skillc_gym.episodes.record import Episode, Turn

__all__ = ["STYLE", "to_fragment", "to_html"]

STYLE = """
.tr { --ink:#1d2330; --soft:#667085; --line:#e4e7ec; --card:#fff; --said:#f7f8fa; --on:#0f766e; --off:#475467;
  --won:#15803d; --lost:#b42318; --warn:#b45309; color:var(--ink); font:15px/1.5 system-ui,sans-serif; }
@media (prefers-color-scheme: dark) { .tr { --ink:#e6e9ef; --soft:#98a2b3; --line:#2b3240; --card:#171b24;
  --said:#1e2430; --on:#2dd4bf; --off:#98a2b3; --won:#4ade80; --lost:#f97066; --warn:#fbbf24; } }
.tr-row { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr)); gap:1rem;
  align-items:start; }
.tr-goal { margin:1.6rem 0 .6rem; font-size:1.1rem; font-weight:600; }
.tr-goal small { display:block; color:var(--soft); font-weight:400; font-size:.8rem; overflow-wrap:anywhere; }
.tr-card { background:var(--card); border:1px solid var(--line); border-radius:12px; overflow:hidden; min-width:0; }
.tr-head { display:flex; flex-wrap:wrap; gap:.5rem; align-items:center; padding:.7rem 1rem;
  border-bottom:1px solid var(--line); }
.tr-head .meta { margin-left:auto; color:var(--soft); font-size:.8rem; }
.tr-pill { border:1px solid currentColor; border-radius:99px; padding:.05rem .6rem; font-size:.8rem; font-weight:600; }
.tr-on { color:var(--on); } .tr-off { color:var(--off); } .tr-won { color:var(--won); } .tr-lost { color:var(--lost); }
.tr-card details { border-bottom:1px solid var(--line); padding:.45rem 1rem; font-size:.86rem; }
.tr-card summary { cursor:pointer; color:var(--soft); }
.tr-card pre { white-space:pre-wrap; overflow-wrap:anywhere; font:.82rem/1.45 ui-monospace,monospace; margin:.5rem 0; }
.tr-turns { list-style:none; margin:0; padding:.3rem 1rem 1rem; counter-reset:turn; }
.tr-turns li { margin-top:.8rem; }
.tr-said { background:var(--said); border-radius:8px; padding:.45rem .7rem; white-space:pre-wrap;
  overflow-wrap:anywhere; }
.tr-think { color:var(--soft); font-style:italic; margin:.35rem .7rem 0; white-space:pre-wrap; overflow-wrap:anywhere; }
.tr-act { margin:.35rem .7rem 0; font:600 .88rem/1.5 ui-monospace,monospace; overflow-wrap:anywhere; }
.tr-act::before { counter-increment:turn; content:counter(turn) "\\00a0\\25b8\\00a0"; color:var(--on); }
.tr-flag { color:var(--warn); font:600 .75rem system-ui,sans-serif; margin-left:.6rem; }
.tr-gain { color:var(--won); font:600 .75rem system-ui,sans-serif; margin-left:.6rem; }
"""
"""The styles of :func:`to_fragment`; every class begins with ``tr``."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
html {{ background:#f2f4f7; color-scheme:light dark; }}
@media (prefers-color-scheme: dark) {{ html {{ background:#0e1117; }} }}
body {{ max-width:90rem; margin:0 auto; padding:1.5rem; }}
h1 {{ font-size:1.4rem; margin:0; }}{style}</style></head>
<body class="tr"><h1>{title}</h1>
{body}
</body></html>
"""


def to_html(episodes: Sequence[Episode] | Sequence[Sequence[Episode]], *, title: str = "Transcripts") -> str:
    """Renders a page that needs no other file.

    Args:
        episodes: Episodes to stand side by side, or several rows of such.
        title: The page's heading.

    Returns:
        A whole HTML document; every recorded text is escaped.
    """
    rows = [[entry] if isinstance(entry, Episode) else list(entry) for entry in episodes]
    if all(isinstance(entry, Episode) for entry in episodes):
        rows = [[episode for row in rows for episode in row]]
    body = "\n".join(to_fragment(row) for row in rows if row)
    return _storable(_PAGE.format(title=_text(title), style=STYLE, body=body))


def to_fragment(episodes: Sequence[Episode]) -> str:
    """Renders one row of episodes as a ``<section>``, for a page with :data:`STYLE` and a parent of class ``tr``."""
    goals = list(dict.fromkeys((episode.goal, episode.task_id) for episode in episodes))
    heads = "".join(f'<h2 class="tr-goal">{_text(g)}<small>{_text(task_id)}</small></h2>' for g, task_id in goals)
    cards = "".join(_card(episode) for episode in episodes)
    return _storable(f'<section>{heads}<div class="tr-row">{cards}</div></section>')


def _card(episode: Episode) -> str:
    turns = "".join(_turn(turn) for turn in episode.turns)
    last = (
        f'<li><div class="tr-said">{_text(episode.final_observation)}</div></li>' if episode.final_observation else ""
    )
    return (
        f'<article class="tr-card">{_head(episode)}{_skill(episode)}{_prompt(episode)}'
        f'<ol class="tr-turns">{turns}{last}</ol></article>'
    )


def _head(episode: Episode) -> str:
    arm = ("on", "with skill") if episode.condition else ("off", "without skill")
    outcome = ("won", "won") if episode.won else ("lost", "not won")
    pills = "".join(f'<span class="tr-pill tr-{kind}">{text}</span>' for kind, text in (arm, outcome))
    score = "" if episode.task_score in (0.0, 1.0) else f" · score {episode.task_score:.2f}"
    meta = f"{len(episode)} steps{score} · seed {_text(episode.seed)}"
    return f'<div class="tr-head">{pills}<span class="meta">{meta}</span></div>'


def _skill(episode: Episode) -> str:
    if not episode.skill_text:
        return ""
    what = "skill" if episode.condition else "shown"
    label = f"{what} {_text(episode.skill)} · {_text(str(episode.skill_sha256)[:12])}"
    return f"<details><summary>{label}</summary><pre>{_text(episode.skill_text)}</pre></details>"


def _prompt(episode: Episode) -> str:
    if not episode.messages:
        return ""
    said = "".join(f"<pre><b>{_text(m['role'])}</b>\n{_text(m['content'])}</pre>" for m in episode.messages)
    return f"<details><summary>first prompt</summary>{said}</details>"


def _turn(turn: Turn) -> str:
    thought = _thought(turn)
    think = f'<div class="tr-think">{_text(thought)}</div>' if thought else ""
    flags = ["malformed reply"] * (not turn.format_valid) + ["not possible"] * (not turn.action_valid)
    marks = "".join(f'<span class="tr-flag">{flag}</span>' for flag in flags)
    gain = f'<span class="tr-gain">+{turn.reward:g}</span>' if turn.reward > 0 else ""
    act = f'<div class="tr-act">{_text(turn.action)}{marks}{gain}</div>'
    return f'<li><div class="tr-said">{_text(turn.observation)}</div>{think}{act}</li>'


def _thought(turn: Turn) -> str:
    """The thought of a well-formed reply; all of a malformed one, unless it is the bare command."""
    if not turn.format_valid:
        return "" if turn.reply.strip() == turn.action else turn.reply.strip()
    # A pattern would try each opening tag up to the end of the reply.
    _, _, inside = turn.reply.partition("<think>")
    thought, closed, _ = inside.partition("</think>")
    return thought.strip() if closed else ""


def _text(value: object) -> str:
    return escape(str(value))


def _storable(page: str) -> str:
    # A model may write half of a surrogate pair, which no file can hold as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")
