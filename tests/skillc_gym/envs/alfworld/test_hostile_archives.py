"""Archives made to do harm: each is refused in words, within bounded memory, before much of it is unpacked."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from functools import partial
from pathlib import Path

import pytest
from confined import refused

from skillc_gym.envs.alfworld.data import archives, sources
from skillc_gym.envs.alfworld.data.archives import archive_files
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.sources import open_source
from skillc_gym.errors import InvalidGameError

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")

FOLDER = "json_2.1.1/valid_seen/pick_and_place_simple-Mug-None-Desk-1"
NAME = f"{FOLDER}/trial_1/game.tw-pddl"
ZEROS = bytes(512)
PACKERS = {"tar": bytes, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}


def header(name: str = NAME, size: int = 0, kind: bytes = tarfile.REGTYPE, **fields: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def extended(body: bytes, kind: bytes = tarfile.XHDTYPE, size: int | None = None) -> bytes:
    padded = body + bytes(-len(body) % 512)
    return header("pax", len(body) if size is None else size, kind) + padded


def keyword(name: str, value: str) -> bytes:
    length = len(name) + len(value) + 3
    length += len(str(length + len(str(length))))
    return f"{length} {name}={value}\n".encode()


def sparse() -> bytes:
    block = bytearray(header(kind=tarfile.GNUTYPE_SPARSE, size=512))
    block[482] = 1  # more maps follow, and each says the same
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + (b"0" * 504 + b"\1" + bytes(7)) * 20_000


WHOLE = header(size=2) + b"{}".ljust(512)
KEYWORDS = b"".join(keyword(f"k{index}", "v") for index in range(4_000))
TARS = {
    "ten gigabytes": (header(size=10**10), "claims to have 10,000,000,000"),
    "less than nothing": (extended(keyword("size", "-1024")) + header(), "claims to have -1,024"),
    "three megabytes": (header(size=3_000_000) + bytes(3_000_000), "at most 2,000,000"),
    "a way out": (header(f"../{NAME}"), "leads out"),
    "a way out by a long name": (header("a/" * 90 + "../" * 95 + "x"), "leads out"),
    "a way out by a keyword": (extended(keyword("path", f"../{NAME}")) + header(), "leads out"),
    "an absolute name": (header(f"/{NAME}"), "leads out"),
    "a name of two lines": (header(NAME.replace("trial_1", "trial\n1")), "cannot be printed"),
    "a name that is no text": (header(NAME.replace("trial_1", "trial_\udcff")), "cannot be printed"),
    "a drive": (header(f"C:/{NAME}"), "leads out"),
    "a symbolic link": (header(kind=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link, a device"),
    "a device": (header(kind=tarfile.CHRTYPE, devmajor=1, devminor=5), "a link, a device"),
    "a pipe": (header(kind=tarfile.FIFOTYPE), "a link, a device"),
    "the same game twice": ((header(size=18) + b'{"solvable": true}'.ljust(512)) * 2, "twice"),
    "a giant header": (extended(b"", size=10**9) + header(), "a header in it has 1,000,000"),
    "a giant name": (header("x", 10**9, tarfile.GNUTYPE_LONGNAME), "a header in it has 1,000,000"),
    "a long name": (extended(keyword("path", "x" * 5_000)) + header(), "name of 5,000 characters"),
    "an endless chain of headers": (extended(b"") * 60_000, "a header in it has|RecursionError"),
    "many keywords": (extended(KEYWORDS, tarfile.XGLTYPE) + header(), "keywords"),
    "a map of holes": (sparse(), "a header in it has"),
    "a size of many digits": (extended(keyword("size", "9" * 5_000)) + header(), "JSON"),
    "no end": (header(), "without the mark of its end|end of"),
    "cut in a file": (header(size=5_000) + bytes(600), "end"),
    "something behind a file": (header() + b"x" * 2048, "without the mark"),
    "a game behind a hole": (2 * ZEROS + WHOLE, "something follows the mark of its end"),
    "a game behind the end": (WHOLE + 20 * ZEROS + WHOLE, "something follows the mark of its end"),
    "nothing": (b"", "cannot be read|without the mark"),
}  # fmt: skip


def greedy() -> bytes:
    """An xz file that wants a dictionary of 4 GiB."""
    packed = bytearray(lzma.compress(header() + 4 * ZEROS))
    block = packed[12 : 12 + 4 * (packed[12] + 1)]
    block[block.index(b"\x21\x01") + 2] = 40  # of the LZMA2 filter, one byte of properties: the size
    block[-4:] = struct.pack("<I", zlib.crc32(block[:-4]))
    packed[12 : 12 + len(block)] = block
    return bytes(packed)


def bomb(kind: str) -> bytes:
    return PACKERS[kind](b"".join(header(f"{i}.bin", 2**24) + bytes(2**24) for i in range(3)))


UNENDED = ("no end", "cut in a file", "something behind a file", "nothing")
PACKED = {
    f"{case}, {kind}": (kind, PACKERS[kind](content + 20 * ZEROS * (case not in UNENDED)), message)
    for case, (content, message) in TARS.items()
    for kind in ("tar", "tar.gz")
}
PACKED |= {f"a bomb, {kind}": (kind, partial(bomb, kind), "it unpacks to .* bytes or more") for kind in [*PACKERS][1:]}
PACKED["wants gigabytes"] = ("tar.xz", greedy(), "[Mm]emory")
PACKED["cut off"] = ("tar.xz", lzma.compress(header(size=60_000) + os.urandom(61_440))[:30_000], "too early")


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2", "tar.xz"])
def test_a_packings_checksum_is_asked_for_however_far_its_end_is(tmp_path, kind):
    path = tmp_path / f"games.{kind}"
    whole = PACKERS[kind](WHOLE + 3_000 * ZEROS)
    place = {"tar.gz": -8, "tar.bz2": -2, "tar.xz": -20}[kind]
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place:][1:])
    with pytest.raises(InvalidGameError, match=r"cannot be read|mark of its end"):
        list(archive_files(path, lambda name: True, max_bytes=700))


def test_a_tar_that_ends_with_a_zip_is_a_tar(tmp_path):
    notes = zipped(("notes.txt", b"read me"))
    (tmp_path / "games.tar").write_bytes(
        WHOLE + header("notes.zip", len(notes)) + notes + bytes(-len(notes) % 512) + 2 * ZEROS
    )
    found = archive_files(tmp_path / "games.tar", lambda name: name == NAME, max_bytes=700)
    assert list(found) == [(NAME, b"{}")]


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("padding", [0, 8, 200_000])
def test_xz_files_of_several_streams_are_read(tmp_path, streams, padding):
    content = header(size=700) + b"{}".ljust(1024, b" ") + 4 * ZEROS
    cuts = [len(content) * index // streams for index in range(streams + 1)]
    parts = [lzma.compress(content[start:end]) for start, end in itertools.pairwise(cuts)]
    path = tmp_path / "games.tar.xz"
    path.write_bytes(bytes(padding).join(parts) + bytes(padding))
    assert list(archive_files(path, lambda name: name == NAME, max_bytes=700)) == [(NAME, b"{}".ljust(700))]


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0o100644) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = method, mode << 16
            made.writestr(info, content)
    return file.getvalue()


def field(content: bytes, offset: int, value: int, form: str = "<I", *, local: int | None = None) -> bytes:
    """Writes a field of the first entry of the directory, and of its local header."""
    changed = bytearray(content)
    struct.pack_into(form, changed, changed.index(b"PK\1\2") + offset, value)
    if local is not None:
        struct.pack_into(form, changed, local, value)
    return bytes(changed)


def sharing() -> bytes:
    """A zip whose 3,000 entries share their bytes."""
    whole = zipped((NAME, bytes(1_900_000)))
    start, end = whole.index(b"PK\1\2"), whole.index(b"PK\5\6")
    entries = [whole[start:end].replace(b"trial_1", b"t%06d" % index) for index in range(3_000)]
    closing = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 3_000, 3_000, sum(map(len, entries)), start, 0)
    return whole[:start] + b"".join(entries) + closing


LARGE = zipped((NAME, bytes(60_000_000)))
ZIPS = {
    "sixty megabytes": (LARGE, "it unpacks to"),
    "sixty megabytes that claim to be a thousand bytes": (field(LARGE, 24, 1_000, local=22), "CRC|cannot be read"),
    "three megabytes": (zipped((NAME, os.urandom(3_000_000))), "at most 2,000,000"),
    "a way out": (zipped((f"../{NAME}", b"{}")), "leads out"),
    "a way out backwards": (zipped(("..\\..\\x", b"{}")), "leads out"),
    "an absolute name": (zipped((f"/{NAME}", b"{}")), "leads out"),
    "a symbolic link": (zipped((NAME, b"/etc/passwd"), mode=0o120777), "a link, a device"),
    "a device": (zipped((NAME, b""), mode=0o020666), "a link, a device"),
    "another packing": (zipped((NAME, b"{}"), method=zipfile.ZIP_LZMA), "stored or deflated"),
    "a password": (field(zipped((NAME, b"{}")), 8, 1, "<H", local=6), "password|cannot be read"),
    "a wrong sum": (field(zipped((NAME, b"{}")), 16, 7, local=14), "CRC"),
    "a wrong place": (field(zipped((NAME, b"{}")), 42, 10**6), "cannot be read"),
    "cut off": (zipped((NAME, os.urandom(9_000)))[:5_000], "cannot be read"),
    "shared bytes": (sharing(), "it unpacks to 5,700,000,000|overlap|differ"),
}  # fmt: skip


PACKED |= {f"{case}, zip": ("zip", *found) for case, found in ZIPS.items()}


@pytest.mark.parametrize("case", PACKED)
def test_hostile_archives_are_refused(tmp_path, case):
    kind, content, message = PACKED[case]
    path = tmp_path / f"games.{kind}"
    path.write_bytes(content() if callable(content) else content)
    refused(path, message)


def test_a_giant_directory_is_refused(tmp_path):
    path = tmp_path / "games.zip"
    with path.open("wb") as file:
        file.truncate(2_000_000_000)  # a hole where the directory should be
        file.seek(2_000_000_000)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 2_000_000_000, 0, 0))
    refused(path, "its directory has 2,000,000,000 bytes")


def test_what_is_neither_folder_nor_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        refused(path, "neither a folder nor a plain file")


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(archives, "MAX_UNPACKED_BYTES", 100_000), (archives, "MAX_MEMBERS", 3), (sources, "MAX_KEPT_BYTES", 1_000)],
)
def test_bounds_on_the_whole_are_kept(folder, tmp_path, monkeypatch, kind, module, name, value):
    path = Path(shutil.make_archive(str(tmp_path / "games"), kind, folder, "json_2.1.1"))
    assert open_source(path, "valid_seen").task_ids == open_games(folder, split="valid_seen").task_ids
    monkeypatch.setattr(module, name, value)
    with pytest.raises(InvalidGameError, match=r"at most|more than"):
        open_source(path, "valid_seen")
