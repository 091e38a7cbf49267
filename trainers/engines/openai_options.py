"""The options of a server with OpenAI's interface; its key is none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from skillc_gym.errors import ConfigError
from trainers.base import Count, Natural, NotNegative, Positive, check_values
from trainers.engines.registry import read_options

_KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True)
class ServerOptions:
    """Where the server is, how patient to be with it, and what it may cost; no secret may be in it (ConfigError)."""

    base_url: str = "http://127.0.0.1:8000/v1"
    """Address up to ``/v1``."""
    key_variable: str | None = None
    """Environment variable that holds the key; OPENAI_API_KEY if it is set, else no key."""
    timeout: Positive = 120.0
    """Seconds without a byte from the server after which a request is given up and tried again."""
    deadline: Positive = 1800.0
    """Seconds after which a reply is given up however it trickles."""
    retries: Natural = 8
    """How often a request is tried again after 408, 409, 425, 429, 5xx, a broken connection or a timeout."""
    first_wait: NotNegative = 1.0
    """Seconds before the first repetition, doubled with each further one; a server's Retry-After if that is longer."""
    longest_wait: Positive = 120.0
    """Longest wait in seconds, a server's own wish included."""
    requests_per_minute: Positive | None = None
    """Most requests per minute; no limit if None."""
    token_budget: Count | None = None
    """Tokens, read and written since the command began, after which it stops; what was played is kept. None: none."""
    stream: bool = False
    """Ask for replies in pieces, so that ``timeout`` counts from piece to piece."""
    max_tokens_field: str = "max_tokens"
    """What the server calls the longest reply; ``max_completion_tokens`` with some."""
    input_price: NotNegative | None = None
    """Price of a million tokens read, in any currency, for the cost in the report."""
    output_price: NotNegative | None = None
    """Price of a million tokens written."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request."""

    def __post_init__(self) -> None:
        check_values(self, prefix="engine.")
        try:
            address = urlsplit(self.base_url)
            good = address.scheme in ("http", "https") and address.hostname and address.port != 0
            good = good and self.base_url.isprintable()  # what is not, urlsplit leaves out
        except ValueError:  # of a port out of range, or a bracket that is open
            good = False
        if not good:
            raise ConfigError(f"engine.base_url must be like http://host:port/v1, got {self.base_url!r}")
        if (self.input_price is None) != (self.output_price is None):
            raise ConfigError("engine.input_price and engine.output_price belong together; give 0 for what is free")
        if address.username or address.password or address.query:
            raise ConfigError("engine.base_url must not carry a user name, a password or a query: it is recorded")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ServerOptions:
        """Reads a run's options; errors for one that is not there, and for a key: options are recorded."""
        for name in ("api_key", "key"):
            if name in options:
                raise ConfigError(
                    f"engine.{name} would be recorded with the run; put the key into {_KEY_VARIABLE}, or name another "
                    "environment variable with engine.key_variable"
                )
        return read_options(cls, "openai", options)

    def key(self) -> str | None:
        """The key from the environment, or None; a ConfigError if its named variable is not set, or no key."""
        variable = self.key_variable or _KEY_VARIABLE
        found = os.environ.get(variable, "").strip()
        if self.key_variable and not found:
            raise ConfigError(f"engine.key_variable names {variable}, which is not set in the environment")
        if not (found.isascii() and found.isprintable()):
            # Said without the key: whatever is wrong with it, it may still be one.
            raise ConfigError(f"The key in {variable} holds characters other than printable ASCII; set it again")
        return found or None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What so many tokens cost; None without prices."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6
