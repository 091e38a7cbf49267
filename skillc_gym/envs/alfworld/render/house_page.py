"""The house as a page: furniture by kind, what lies on it, the agent, its hand, and the transcript beside it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

from skillc_gym.envs.alfworld.experts.explorer import parse_goal
from skillc_gym.envs.alfworld.render.house_view import HouseView, Row
from skillc_gym.errors import ConfigError

__all__ = ["to_page"]

_STYLE = """
body { margin:0; background:#f2f4f7; }
.hv { --ink:#1d2330; --soft:#667085; --line:#d7dbe2; --here:#117a4b; --goal:#b45309;
  font:14px/1.45 system-ui,sans-serif; color:var(--ink); display:grid; gap:1rem; padding:1rem;
  grid-template-columns:minmax(0,3fr) minmax(17rem,2fr); align-items:start; }
@media (max-width:44rem) { .hv { grid-template-columns:minmax(0,1fr); } }
.hv section { background:#fff; border:1px solid var(--line); border-radius:12px; padding:.9rem 1.1rem; }
.hv h2 { font-size:1.05rem; margin:0 0 .2rem; } .hv h2::first-letter { text-transform:uppercase; }
.hv .hand { margin:0 0 .8rem; color:var(--soft); } .hv .hand b { color:var(--ink); }
.hv .kind { display:grid; grid-template-columns:8.5rem 1fr; gap:.5rem; padding:.32rem 0; border-top:1px solid #eef0f4; }
.hv .kind > span { padding-top:.22rem; } .hv .goal > span { color:var(--goal); font-weight:600; }
.hv .tiles { display:flex; flex-wrap:wrap; gap:.35rem; }
.hv .tile { border:1px solid var(--line); border-radius:7px; padding:.18rem .5rem; min-width:1.1rem; }
.hv .tile i { font-style:normal; color:var(--soft); font-size:.85em; }
.hv .unseen { background:#f7f8fa; color:#98a2b3; border-style:dashed; }
.hv .closed { border-left:4px solid #475467; } .hv .open { border-left:4px double #98a2b3; }
.hv .here { outline:2px solid var(--here); background:#effaf4; }
.hv .here::before { content:"you "; color:var(--here); font-weight:600; font-size:.85em; }
.hv .tile b { font-weight:500; background:#eef2f7; border-radius:5px; padding:0 .35rem; margin:.08rem 0 .08rem .3rem;
  display:inline-block; }
.hv .tile b.goal { background:#fdebc8; color:#7a3d04; }
.hv .act { font:600 .92em ui-monospace,monospace; margin:.65rem 0 .1rem; }
.hv .said { white-space:pre-wrap; overflow-wrap:anywhere; } .hv .nothing { color:#98a2b3; }
.hv .won { margin:.8rem 0 0; color:var(--here); font-weight:600; }
"""
_NOTHING = "Nothing happens."


def to_page(view: HouseView) -> str:
    """The house and the transcript beside it, as one self-contained page."""
    game = view.world.game
    thing, place = _kinds_of_goal(game.task)
    groups = itertools.groupby(view.rows(), key=lambda row: row.name.rpartition(" ")[0])
    house = "".join(_kind(kind, list(rows), thing, place) for kind, rows in groups)
    turns = "".join(_turn(command, answer) for command, answer in view.transcript)
    won = '<p class="won">The goal holds: won.</p>' if view.world.won else ""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ALFWorld</title>'
        f'<style>{_STYLE}</style></head><body><main class="hv"><section><h2>{escape(game.goal)}</h2>'
        f'<p class="hand">In hand: <b>{escape(view.hand)}</b></p>{house}</section>'
        f"<section><h2>Transcript</h2>{turns}{won}</section></main></body></html>"
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _kinds_of_goal(task: str) -> tuple[str, tuple[str, ...]]:
    """The kinds of the wanted object and of the target or lamp; none for a sentence that is not ALFWorld's."""
    try:
        goal = parse_goal(task)
    except ConfigError:
        return "", ()
    return goal.thing, (goal.place, goal.place + "basin")


def _kind(kind: str, rows: Sequence[Row], thing: str, place: Sequence[str]) -> str:
    tiles = "".join(_tile(row, (thing, *place)) for row in rows)
    goal = " goal" if kind in place else ""
    return f'<div class="kind{goal}"><span>{escape(kind)}</span><div class="tiles">{tiles}</div></div>'


def _tile(row: Row, goals: Sequence[str]) -> str:
    classes = " ".join(filter(None, ("tile", row.state, "here" * row.here, "unseen" * (row.things is None))))
    number = escape(row.name.rpartition(" ")[2])
    said = f" <i>{row.state}</i>" if row.state else ""
    if row.things is not None:
        said += "".join(_thing(name, goals) for name in row.things) or " <i>empty</i>"
    return f'<div class="{classes}">{number}{said}</div>'


def _thing(name: str, goals: Sequence[str]) -> str:
    goal = ' class="goal"' if name.rpartition(" ")[0] in goals else ""
    return f"<b{goal}>{escape(name)}</b>"


def _turn(command: str, answer: str) -> str:
    nothing = " nothing" if answer == _NOTHING else ""
    act = f'<div class="act">&gt; {escape(command)}</div>' if command else ""
    return f'{act}<div class="said{nothing}">{escape(answer)}</div>'
