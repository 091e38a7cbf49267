"""Tickets: an episode's unforgeable name in addresses, which says its task and who is playing."""

from __future__ import annotations

import base64
import hmac
import secrets
from hashlib import sha256
from typing import NamedTuple

__all__ = ["AGENT", "AUDIENCES", "PERSON", "Ticket", "TicketIssuer"]

AGENT, PERSON = "a", "p"
AUDIENCES = (AGENT, PERSON)
_MAC_BYTES = 10
_LONGEST = 80


class Ticket(NamedTuple):
    """What a ticket says.

    Attributes:
        audience: `AGENT`, or `PERSON`, who sees the parts of the score at the end.
        task: The index of the goal.
        nonce: Tells episodes of one task apart.
    """

    audience: str
    task: int
    nonce: str


class TicketIssuer:
    """Issues and reads tickets. It remembers nothing: who knows the secret reads all tickets issued with it.

    Args:
        secret: Signs tickets; a random one by default, so that tickets end with the site.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def issue(self, task: int, audience: str = AGENT) -> str:
        """Returns a new ticket for a task, in letters, digits and hyphens."""
        return self._signed(f"{audience}{task}-{secrets.token_hex(5)}")

    def read(self, name: str) -> Ticket | None:
        """Reads a ticket; None for one that was not issued here."""
        said, _, _ = name.rpartition("-")
        if len(name) > _LONGEST or not name.isascii() or not hmac.compare_digest(self._signed(said), name):
            return None
        task, _, nonce = said[1:].partition("-")
        return Ticket(said[0], int(task), nonce)

    def _signed(self, said: str) -> str:
        mac = hmac.new(self._secret, said.encode(), sha256).digest()[:_MAC_BYTES]
        return f"{said}-{base64.b32encode(mac).decode().lower()}"
