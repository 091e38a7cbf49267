"""Recorded episodes: what was shown, said and done, as JSON lines, ATIF and HTML."""

from skillc_gym.episodes.jsonl import iter_jsonl, read_jsonl, to_atif, write_jsonl
from skillc_gym.episodes.record import Episode, EpisodeRecorder, Turn
from skillc_gym.episodes.show import STYLE, to_fragment, to_html

__all__ = [
    "STYLE",
    "Episode",
    "EpisodeRecorder",
    "Turn",
    "iter_jsonl",
    "read_jsonl",
    "to_atif",
    "to_fragment",
    "to_html",
    "write_jsonl",
]
