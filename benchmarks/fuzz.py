"""Fuzzes what reads the input of strangers: hypothesis's tests in ``tests/hostile``, driven by atheris's coverage.

python -m benchmarks.fuzz loader --seconds 600

An exception, an input that takes long, or more memory than the limit ends the run; the input is written to
``--findings``.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.errors import missing_extra

TARGETS: Mapping[str, str] = {
    "addresses": "servers:test_no_address_fails_runs_code_or_leads_out_of_the_site",
    "alfworld-actions": "players:test_houses_take_any_text",
    "answers": "servers:test_an_answer_becomes_a_reply_or_a_short_printable_error_without_the_key",
    "archives": "players:test_an_archive_with_changed_bytes_is_read_or_refused",
    "importers": "texts:test_skills_of_others_are_read_or_refused_and_can_be_kept",
    "loader": "players:test_a_game_with_changed_fields_is_played_or_refused",
    "skills": "texts:test_a_library_is_read_or_refused_in_a_short_sentence",
    "stepper": "players:test_the_engine_answers_as_it_offers_and_goes_back_exactly",
    "transcripts": "texts:test_transcripts_are_shown_as_text_alone_and_read_the_same_again",
    "webshop-actions": "players:test_shops_take_any_text",
    "writers": "servers:test_what_writers_keep_of_replies_is_bounded_and_can_be_stored",
}
"""Each boundary with its module of ``tests/hostile`` and its test."""
_SEEN = (
    *("skill_library.", "skillc_gym.", "trainers.engines.openai", "trainers.writers"),
    *("json", "yaml.", "tarfile", "zipfile", "urllib.parse", "openai._streaming", "openai._response"),
)
"""Modules whose branches the fuzzer sees; all that is imported would take minutes."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the fuzzer until the time is over or something breaks; it never returns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--memory", type=int, default=1024, help="limit in MiB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("runs/fuzz"), help="folder of inputs that broke a target")
    options = parser.parse_args(words)
    try:
        import atheris
    except ImportError as error:
        raise missing_extra("atheris", "fuzz") from error
    module, _, name = TARGETS[options.target].partition(":")
    test: Any = getattr(importlib.import_module(f"tests.hostile.test_hostile_{module}"), name)
    for function in [found for found in gc.get_objects() if isinstance(found, types.FunctionType)]:
        if str(function.__module__).startswith(_SEEN):
            atheris.instrument_func(function)
    options.findings.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={options.seconds}", f"-rss_limit_mb={options.memory}", f"-seed={options.seed}"]
    # The first few bytes only choose what the others change, so short inputs are not tried first.
    limits += [f"-artifact_prefix={options.findings}/", "-max_len=8192", "-len_control=0"]
    with tempfile.TemporaryDirectory(prefix="skillc-corpus-") as corpus:
        atheris.Setup([sys.argv[0], *limits, corpus], test.hypothesis.fuzz_one_input)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
