"""The laboratory: commands, studies, reports and agents around the library, through its public names."""

from __future__ import annotations

__all__: list[str] = []
