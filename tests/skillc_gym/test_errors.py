"""Errors that are built for their callers."""

from __future__ import annotations

import pytest

from skillc_gym.errors import MissingExtraError, needs_extra


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import no_such_package", "pytest cannot be imported.*no_such_package.*extra 'dev'"),
        ("from pytest import no_such_name", "pytest cannot be imported.*no_such_name.*extra 'dev'"),
    ],
)
def test_a_package_of_another_version_is_not_called_missing(statement: str, said: str) -> None:
    with pytest.raises(MissingExtraError, match=said), needs_extra("pytest", "dev"):
        exec(statement)
