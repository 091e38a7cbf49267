"""Writing files whole, and saying in words why it cannot be done."""

import errno
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError, SkillCError, StorageError
from skillc_gym.files import replace_file, require_own, storing


def test_a_file_is_replaced_at_once_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    replace_file(tmp_path / "sub" / "f", [b"a", b"b"])
    replace_file(tmp_path / "sub" / "f", [b"c"])
    assert (tmp_path / "sub" / "f").read_bytes() == b"c"
    assert [entry.name for entry in (tmp_path / "sub").iterdir()] == ["f"]


def interrupted() -> Iterator[bytes]:
    yield b"new"
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [(interrupted(), KeyboardInterrupt, None), ([b"x" * 1_000] * 100, StorageError, "larger than the system allows")],
    ids=["interrupted", "too large"],
)
def test_content_that_fails_leaves_the_old_file(tmp_path: Path, parts, error, words) -> None:
    replace_file(tmp_path / "f", [b"old"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(error, match=words):
            replace_file(tmp_path / "f", parts)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "no space left"), (errno.EIO, "error")],
)
def test_what_the_system_says_is_put_into_words(tmp_path: Path, number: int, words: str) -> None:
    with pytest.raises(StorageError, match=f"f cannot be written: .*{words}") as caught, storing(tmp_path / "f"):
        raise OSError(number, os.strerror(number))
    assert isinstance(caught.value, SkillCError)
    assert isinstance(caught.value, OSError)
    with pytest.raises(ConfigError, match="mine"), storing(tmp_path):
        raise ConfigError("mine")  # the project's own errors pass


def test_writers_of_one_file_leave_each_other_alone(tmp_path: Path) -> None:
    contents = [bytes([letter]) * 50_000 for letter in b"abcd"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: replace_file(tmp_path / "f", [content]), contents * 5))
    assert (tmp_path / "f").read_bytes() in contents
    assert list(tmp_path.iterdir()) == [tmp_path / "f"]


def test_only_a_file_of_the_same_kind_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(b"<!DOCTYPE html><p>")
    for name in ("page.html", "new.html"):
        require_own(tmp_path / name, b"<!doctype html>")
    (tmp_path / "weights").write_bytes(b"precious")
    for place in (tmp_path, tmp_path / "weights"):
        with pytest.raises(ConfigError, match="name a"):
            require_own(place, b"<!doctype html>")
