"""The site's routes: tickets and addresses in, pages out."""

from __future__ import annotations

import itertools
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from skillc_gym.envs.webshop.shop.pages import Page, is_receipt
from skillc_gym.envs.webshop.site.access import AGENT, PERSON, UPSTREAM, Guard, Ticket, TicketIssuer
from skillc_gym.envs.webshop.site.episodes import Recording, Replay
from skillc_gym.envs.webshop.site.front import Pairs, ShopFront, picture, render, shop_page
from skillc_gym.errors import SkillCError, needs_extra
from skillc_gym.pages import resource
from skillc_gym.version import __version__

with needs_extra("Starlette", "browser"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

logger = logging.getLogger(__name__)

_STATIC = {"shop.css": "text/css", "shop.js": "text/javascript", "icon.svg": "image/svg+xml"}
_LARGEST_FORM = 1 << 16
_MOST_BOUGHT = 2_000
_FOREVER = {"cache-control": "public, max-age=86400"}
_MISSING = "There is no such page. Its address may be cut short, or the site has been restarted since."


class Site:
    """The shop over HTTP: an ASGI application, called with a scope. Arguments are those of `open_site`."""

    def __init__(
        self,
        front: ShopFront,
        *,
        hosts: frozenset[str] | None = None,
        token: str | None = None,
        recording: Recording | None = None,
        replays: Sequence[Sequence[Replay]] = (),
        upstream_routes: bool = False,
    ) -> None:
        self.front, self.tickets, self.token = front, TicketIssuer(), token
        self._recording, self._replays = recording, replays
        self._generator = np.random.default_rng()
        self._states = itertools.count(1)
        self._bought: OrderedDict[str, str] = OrderedDict()
        routes = self._routes() + [Route("/{session}", self._session)] * upstream_routes
        self._app = Guard(Starlette(routes=routes, exception_handlers=_HANDLERS), hosts, token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        await self._app(scope, receive, send)

    def buy(self, ticket: str, address: str) -> str:
        """Notes what was bought with a ticket; returns the receipt's address, the first one's where that ends it."""
        if ticket not in self._bought or not self.front.core.fixes.purchase_ends:
            self._bought[ticket] = address
            if len(self._bought) > _MOST_BOUGHT:
                self._bought.popitem(last=False)
        return self._bought[ticket]

    def _routes(self) -> list[Route]:
        return [
            Route("/", self._start),
            Route("/about.json", self._about),
            Route("/episodes", self._open, methods=["POST"]),
            Route("/e/{ticket}/{kind}", self._show),
            Route("/e/{ticket}/{kind}", self._act, methods=["POST"]),
            Route("/picture", self._picture),
            Route("/replays", self._rows),
            Route("/replays/{row}", self._row),
            Route("/static/{name}", _static),
        ]

    async def _start(self, request: Request) -> Response:
        goals, products = self.front.goals, len(self.front.core.catalog)
        offered = {"recorded": self._recording is not None, "replays": bool(self._replays)}
        return HTMLResponse(render("start.html", goals=goals, products=products, **offered))

    async def _about(self, request: Request) -> Response:
        goals = self.front.goals.range
        return JSONResponse(
            {"skillc_gym": __version__, "shop": self.front.identity, "goals": [goals.start, goals.stop]}
        )

    async def _open(self, request: Request) -> Response:
        """Opens an episode: for a person who sent a form, or for a program that sent JSON."""
        body, by_program = await _body(request), request.headers.get("content-type", "").startswith("application/json")
        asked = _json_task(body) if by_program else dict(_pairs(body)).get("task")
        ticket = self.tickets.issue(self._task(asked), AGENT if by_program else PERSON)
        address = f"/e/{ticket}/home"
        return JSONResponse({"ticket": ticket, "address": address}) if by_program else RedirectResponse(address, 303)

    def _task(self, asked: Any) -> int:
        goals = self.front.goals
        if asked in (None, ""):
            return self.front.core.draw_goal(self._generator)
        name = asked if isinstance(asked, str) and "/" in asked else goals.kind + f"/{asked!s:.20}"
        try:
            return goals.index(name)
        except SkillCError as error:
            raise HTTPException(404, str(error)) from error

    async def _session(self, request: Request) -> Response:
        """Opens an episode of the goal that upstream's name of a session means, the same one at every visit."""
        session = request.path_params["session"]
        draw, generator = self.front.core.draw_goal, np.random.default_rng(list(session.encode()))
        task = self._task(session.rpartition("_")[2] or "?") if "fixed" in session else draw(generator)
        return RedirectResponse(f"/e/{self.tickets.issue(task, UPSTREAM)}/home", 303)

    async def _show(self, request: Request) -> Response:
        ticket, page = self._place(request)
        if self._recording is not None and ticket.audience == PERSON:
            self._note_visit(self._recording, request, ticket, page)
        view = self.front.view(ticket.task, page, person=ticket.audience == PERSON)
        searchable = self.front.searchable(page)
        html = shop_page(view, state=next(self._states), searchable=searchable, audience=ticket.audience)
        return HTMLResponse(html, headers={"cache-control": "no-store"})

    async def _act(self, request: Request) -> Response:
        ticket, page = self._place(request)
        sent = _pairs(await _body(request))
        target, name = self.front.follow(ticket.task, page, sent), request.path_params["ticket"]
        action = self.front.action(page, sent)
        if self._recording is not None and ticket.audience == PERSON and target is not None and action is not None:
            self._recording.note(name, ticket.task, page, action, target)
        address = self.front.address(page if target is None else target)
        if target is not None and target.kind == "done":
            address = self.buy(name, address)
        return RedirectResponse(f"/e/{name}/{address}", 303)

    def _note_visit(self, recording: Recording, request: Request, ticket: Ticket, page: Page) -> None:
        # A longer one is of no page of this site.
        try:
            came_from = urlsplit(request.headers.get("referer", "")[:_LARGEST_FORM])
        except ValueError:
            return
        *_, name, kind = ("", "", *came_from.path.split("/"))[-3:]
        before = self.front.page_at(f"{kind}?{came_from.query}")
        if before is None or name != request.path_params["ticket"]:
            return
        if before.kind == "results" and page.kind == "item":
            recording.note(name, ticket.task, before, f"click[{self.front.asin(page).lower()}]", page)

    async def _rows(self, request: Request) -> Response:
        if not self._replays:
            raise HTTPException(404, "No recorded episodes are shown here.")
        return HTMLResponse(render("replays.html", rows=self._replays))

    async def _row(self, request: Request) -> Response:
        number = request.path_params["row"]
        # A number of thousands of digits is none that Python would read.
        if number not in map(str, range(len(self._replays))):
            raise HTTPException(404, "There is no such recorded episode.")
        row, asked = self._replays[int(number)], dict(_query(request)).get("step", "0")
        last = max(len(replay.episode.turns) for replay in row)
        step = min(int(asked[:6]), last) if asked.isascii() and asked.isdecimal() else 0
        sides = [replay.moment(step, self.tickets.issue(replay.task)) for replay in row]
        for side in (each for each in sides if is_receipt(each["address"])):
            self.buy(side["ticket"], side["address"])  # a receipt is shown for what was bought only
        return HTMLResponse(render("replay.html", sides=sides, step=step, last=last, goal=row[0].episode.goal))

    async def _picture(self, request: Request) -> Response:
        catalog = self.front.core.catalog
        asin = dict(_query(request)).get("asin", "")
        index = catalog.index_of(asin)
        if index is None:
            raise HTTPException(404, "There is no product of that id.")
        return Response(picture(asin, catalog.product(index).category), media_type="image/svg+xml", headers=_FOREVER)

    def _place(self, request: Request) -> tuple[Ticket, Page]:
        ticket = self.tickets.read(request.path_params["ticket"])
        if ticket is None or ticket.task not in self.front.goals.range:  # before anything is searched for
            raise HTTPException(404, _MISSING)
        query = request.scope["query_string"].decode("latin-1")
        page = self.front.page_at(f"{request.path_params['kind']}?{query}")
        if page is None:
            raise HTTPException(404, _MISSING)
        if page.kind == "done" and self._bought.get(request.path_params["ticket"]) != self.front.address(page):
            raise HTTPException(404, "There is no such receipt: this was not bought.")
        return ticket, page


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "There is no such file.")
    text = resource("skillc_gym.envs.webshop.site.static", name)
    return Response(text, media_type=_STATIC[name], headers=_FOREVER)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise HTTPException(413, f"A form holds {_LARGEST_FORM:,} bytes at most.")
    return bytes(body)


def _json_task(body: bytes) -> Any:
    try:
        return json.loads(body).get("task")
    except (ValueError, RecursionError, AttributeError) as error:
        raise HTTPException(400, 'Expected a JSON object such as {"task": 7}.') from error


def _pairs(body: bytes) -> Pairs:
    try:
        return parse_qsl(body.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=1_000)
    except ValueError as error:
        raise HTTPException(400, "That form cannot be read.") from error


def _query(request: Request) -> Pairs:
    return _pairs(request.scope["query_string"])


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    titles = {404: "No such page", 405: "Not here", 413: "Too much", 400: "Not understood"}
    page = render("error.html", title=titles.get(error.status_code, "Not possible"), message=error.detail)
    return HTMLResponse(page, error.status_code, headers=dict(error.headers or {}))


async def _broken(request: Request, error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return HTMLResponse(render("error.html", title="Something broke", message="The site's log says what."), 500)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # to nobody: the visitor left in the middle of a form


_HANDLERS: dict[Any, Any] = {HTTPException: _failed, ClientDisconnect: _gone, Exception: _broken}
