"""What was read off a page in the browser, and the observations made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skillc_gym.envs.webshop.shop.nodes import SEARCH, Node, named, page_document, page_text, rich_text, shown
from skillc_gym.envs.webshop.shop.pages import read_address


class Control(NamedTuple):
    """Something to click on: a "button", a "link" or an "option" of a group, and what it sends, None for nothing."""

    kind: str
    text: str
    group: str
    value: str | None
    chosen: bool

    @property
    def label(self) -> str:
        """The name by which ``click[...]`` calls it."""
        return self.text if self.kind == "option" else self.text.lower()


@dataclass(frozen=True)
class ParsedPage:
    """A page as it stood in the browser.

    ``state`` is its number: a page that was loaded or exchanged since has another one. ``facts`` is what the site says
    in addition to what is visible, ``nodes`` the texts in order, ``marked`` the identities of those marked as clicked,
    ``controls`` what can be clicked on, ``score`` a purchase's, None before one.
    """

    state: int
    ticket: str
    address: str
    kind: str
    facts: Mapping[str, Any]
    nodes: Sequence[Node]
    marked: frozenset[int]
    controls: tuple[Control, ...]
    score: float | None
    searchable: bool
    html: str | None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> ParsedPage:
        """Makes a parsed of what the script `READ` returns."""
        _, _, ticket, path = found["path"].split("/", 3)
        read = [(Node(kind, text, named(group)), marked) for kind, text, group, marked in found["nodes"]]
        return cls(
            state=found["state"],
            ticket=ticket,
            address=path + found["query"],
            kind=found["kind"],
            facts=json.loads(found["facts"]),
            nodes=shown([node for node, _ in read]),
            marked=frozenset(id(node) for node, marked in read if marked),
            controls=tuple(Control(*control) for control in found["controls"]),
            score=None if found["score"] is None else float(found["score"]),
            searchable=found["searchable"],
            html=found["html"],
        )

    def observation(self, mode: str) -> str:
        """Returns the page in the mode "text", "text_rich" or "html"."""
        if mode == "html":
            return page_document((self.html or "").replace("\r", "&#13;"))
        if mode == "text_rich":
            return rich_text(self.nodes, lambda node: id(node) in self.marked)
        return page_text(self.nodes)

    @property
    def clickables(self) -> list[str]:
        """The labels that can be clicked, as upstream lists them: buttons first."""
        buttons = [node.label for node in self.nodes if node.kind == "button"]
        others = [control.label for control in self.controls if control.kind != "button"]
        return list(dict.fromkeys([*buttons, *others]))

    @property
    def actions(self) -> list[str]:
        """The actions that the page offers."""
        clicks = [f"click[{label}]" for label in self.clickables if label not in ("", SEARCH.label)]
        return ["search[<query>]", *clicks] if self.kind == "index" else clicks

    @property
    def selected(self) -> list[str]:
        """The chosen options, ``group: value``, in the order in which their groups were first chosen from."""
        found = read_address(self.address)
        return [] if found is None else [f"{group}: {value}" for group, value in found.options]

    def control(self, label: str, *, last_group: bool = False) -> int | None:
        """Returns the number of the control that ``click[label]`` means, None if there is none.

        Of options of that name in several groups it is the first that is not chosen; or the last, as upstream has it.
        Of products whose ids differ in case alone it is the first that was not looked at.
        """
        if label == SEARCH.label:
            return None
        named = [(number, one) for number, one in enumerate(self.controls) if one.label == label]
        named = [(number, one) for number, one in named if one.value is not None]
        buttons = [number for number, one in named if one.kind == "button"]
        if buttons or not named:
            return buttons[0] if buttons else None
        if last_group:
            return named[-1][0]
        last = named[-1] if named[0][1].kind == "link" else named[0]  # as the shop in text has it
        return next((number for number, one in named if not one.chosen), last[0])
