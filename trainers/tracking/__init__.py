"""What a run leaves behind, and what a person sees while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.tracking.checkpoints import read_checkpoint
    from trainers.tracking.json_files import iter_records, json_line, parse_object, read_object, write_json
    from trainers.tracking.policy_settings import complete_settings, save_policy_settings
    from trainers.tracking.progress import PlainProgress, Progress, SilentProgress, make_progress, short_type
    from trainers.tracking.revision import one_revision, require_clean
    from trainers.tracking.run_folder import RunFolder, make_folder, provenance
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "PlainProgress",
    "Progress",
    "RunFolder",
    "SilentProgress",
    "complete_settings",
    "iter_records",
    "json_line",
    "make_folder",
    "make_progress",
    "one_revision",
    "parse_object",
    "provenance",
    "read_checkpoint",
    "read_object",
    "require_clean",
    "save_policy_settings",
    "short_type",
    "write_json",
]
