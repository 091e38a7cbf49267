"""Where the helper for lazy exports was first; it serves the gym too."""

from skillc_gym.lazy import lazy_exports

__all__ = ["lazy_exports"]
