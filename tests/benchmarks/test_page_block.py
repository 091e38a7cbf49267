from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page_block import renewed, write_block
from skillc_gym.errors import ConfigError

PAGE = "before\n<!-- costs:start -->\nold\n<!-- costs:end -->\nafter\n"


def test_a_page_is_renewed_between_its_marks(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    write_block(file, "costs", "new")
    assert file.read_text() == PAGE.replace("old", "new")
    assert renewed(file.read_text(), "costs", "new") == file.read_text()


@pytest.mark.parametrize("page", ["", PAGE + PAGE, PAGE.replace("end", "over"), PAGE.replace("costs", "results")])
def test_marks_that_are_missing_or_doubled_are_refused(page: str) -> None:
    with pytest.raises(ConfigError, match="once each"):
        renewed(page, "costs", "new")
