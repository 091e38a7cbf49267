"""What a run leaves behind, and what a person sees while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.tracking.files import (
        NO_WEIGHTS,
        iter_records,
        json_line,
        parse_object,
        read_object,
        sha256_of_file,
        weights_sha256,
        write_json,
    )
    from trainers.tracking.policy_settings import complete_settings, playing_settings, same_env, settings_beside
    from trainers.tracking.progress import PlainProgress, Progress, SilentProgress, make_progress
    from trainers.tracking.run_folder import (
        RunFolder,
        continued_revision,
        git_says,
        make_folder,
        one_revision,
        provenance,
        require_clean,
        require_own_folder,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["PlainProgress", "Progress", "SilentProgress", "make_progress"]
__all__ += ["RunFolder", "continued_revision", "git_says", "make_folder", "one_revision", "provenance", "require_clean"]
__all__ += ["complete_settings", "playing_settings", "require_own_folder", "same_env", "settings_beside"]
__all__ += ["NO_WEIGHTS", "iter_records", "json_line", "parse_object", "read_object", "sha256_of_file"]
__all__ += ["weights_sha256", "write_json"]
