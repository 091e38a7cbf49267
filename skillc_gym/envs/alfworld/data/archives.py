"""Reads files out of tar and zip archives, front to back and within bounds; nothing is ever unpacked to disk.

An archive comes from somewhere else and may be made to do harm. What a header claims is therefore checked before
anything is read or decompressed on its word, and an archive whose names lead out of a folder is refused as a whole.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from skillc_gym.errors import InvalidGameError, SkillCError

MAX_MEMBERS = 50_000
MAX_NAME = 1_000
MAX_MEMBER_BYTES = 256_000_000
MAX_UNPACKED_BYTES = 4_000_000_000
MAX_RATIO = 500
"""How many times its own size an archive may unpack to; ALFWorld's games in a .tar.xz come to 60 times."""
FREE_BYTES = 32_000_000
"""So much may be unpacked whatever the ratio."""
MAX_HEADER_BYTES = 65_536
"""Of all headers of one member together."""
MAX_KEYWORDS = 100
MAX_DIRECTORY_BYTES = 16_000_000
XZ_MEMORY = 160_000_000
CHUNK = 65_536

_CORRUPT = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of the standard library raise on files that are none, RecursionError included."""
_ENTRY = b"PK\x01\x02"

PathFilter = Callable[[str], bool]


def archive_files(archive: Path, wanted: PathFilter, *, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of every file of a tar or zip archive that is wanted, of ``max_bytes`` at most.

    Raises:
        InvalidGameError: If the archive is none, is cut off, is not a plain file, or is too large in any respect; if a
            wanted file is a link or a device; if a name is absolute or leads out of its folder.
    """
    try:
        if not archive.is_file():
            raise InvalidGameError("it is neither a folder nor a plain file")
        with archive.open("rb") as file:
            is_tar = file.read(512)[257:262] == b"ustar"  # is_zipfile finds a zip that a tar ends with, too
        opened = _zip_files if zipfile.is_zipfile(archive) and not is_tar else _tar_files
        yield from opened(archive, wanted, max_bytes)
    except SkillCError as error:
        raise InvalidGameError(f"The archive {archive} is refused: {error}.") from error
    except _CORRUPT as error:
        why = f"{type(error).__name__}: {error}"
        raise InvalidGameError(
            f"The archive {archive} cannot be read ({why:.300}); it may be cut off or be no archive at all."
        ) from error


def _tar_files(archive: Path, wanted: PathFilter, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    with archive.open("rb") as file:
        stream = _Unpacked(file, archive.stat().st_size)
        tar, count = tarfile.TarFile(fileobj=stream), 0  # type: ignore[arg-type]
        while (member := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined] # tarfile keeps them all otherwise
            count += 1
            _check_count(count)
            _check_member(member)
            if wanted(member.name) and not member.isdir():
                if not member.isreg() or member.issparse():
                    raise InvalidGameError(f"{member.name:.200} is a link, a device or the like, not a plain file")
                _check_size(member.name, member.size, max_bytes)
                yield member.name, stream.take(member.size)
            stream.header_bytes = 0
        if stream.last.strip(b"\0") or not stream.last:
            raise InvalidGameError("it ends without the mark of its end; it may be cut off")
        # To its end, so that a packing's checksum is asked for, and nothing hides behind a hole of zeros.
        while rest := stream.take(CHUNK):
            if rest.strip(b"\0"):
                raise InvalidGameError("something follows the mark of its end; it is damaged, or several in one")


def _zip_files(archive: Path, wanted: PathFilter, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    with archive.open("rb") as file, zipfile.ZipFile(_Directory(file)) as zipped:
        members = zipped.infolist()
        _check_count(len(members))
        for member in members:
            _check_name(member.filename)
        chosen = [member for member in members if wanted(member.filename) and not member.is_dir()]
        _check_total(sum(member.file_size for member in chosen), archive.stat().st_size)
        for member in chosen:
            _check_size(member.filename, member.file_size, max_bytes)
            kind = member.external_attr >> 16 & 0o170000
            if kind not in (0, 0o100000):
                raise InvalidGameError(f"{member.filename:.200} is a link, a device or the like, not a plain file")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InvalidGameError(f"{member.filename:.200} is packed in another way than stored or deflated")
            with zipped.open(member) as content:
                # A bare read() would unpack all there is, whatever the directory claims.
                yield member.filename, content.read(member.file_size)


def _check_member(member: tarfile.TarInfo) -> None:
    _check_name(member.name)
    if not 0 <= member.size <= MAX_MEMBER_BYTES:
        raise InvalidGameError(f"{member.name:.200} claims to have {member.size:,} bytes")
    if len(member.pax_headers) > MAX_KEYWORDS:
        raise InvalidGameError(f"{member.name:.200} has {len(member.pax_headers):,} keywords in its header")


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME:
        raise InvalidGameError(f"it holds a name of {len(name):,} characters")
    if not name.isprintable():
        raise InvalidGameError(f"it holds {name!a}, a name that cannot be printed")
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "" or ".." in parts or parts[0].endswith(":"):
        raise InvalidGameError(f"it holds {name[:200]!r}, a name that leads out of the folder it is unpacked in")


def _check_size(name: str, size: int, at_most: int) -> None:
    if size > at_most:
        raise InvalidGameError(f"{name:.200} has {size:,} bytes; a game has at most {at_most:,}")


def _check_count(count: int) -> None:
    if count > MAX_MEMBERS:
        raise InvalidGameError(f"it holds more than {MAX_MEMBERS:,} files")


def _check_total(unpacked: int, packed: int) -> None:
    if unpacked > min(MAX_UNPACKED_BYTES, max(FREE_BYTES, MAX_RATIO * packed)):
        raise InvalidGameError(
            f"it unpacks to {unpacked:,} bytes or more from {packed:,}; at most {MAX_RATIO} times its size and "
            f"{MAX_UNPACKED_BYTES:,} bytes are read"
        )


class _Unpacked:
    """The bytes of a packed tar file, read forward only, as `tarfile.TarFile` wants them.

    ``header_bytes`` counts the present member's headers; ``last`` is the one that was read last.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._chunks = _chunks(file)
        self._size = size
        self._buffer = b""
        self._place = 0
        self.header_bytes = 0
        self.last = b""

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> None:
        while self._place < place:
            if not self.take(min(CHUNK, place - self._place)):
                return

    def read(self, size: int) -> bytes:
        """Reads a header; `tarfile` would read one of any size into memory."""
        self.header_bytes += size
        if size < 0 or self.header_bytes > MAX_HEADER_BYTES:
            raise InvalidGameError(f"a header in it has {self.header_bytes:,} bytes or more")
        self.last = self.take(size)
        return self.last

    def take(self, size: int) -> bytes:
        found = []
        missing = size
        while missing > 0:
            if not self._buffer:
                self._buffer = next(self._chunks, b"")
                _check_total(self._place + len(self._buffer), self._size)
                if not self._buffer:
                    break
            part, self._buffer = self._buffer[:missing], self._buffer[missing:]
            found.append(part)
            missing -= len(part)
            self._place += len(part)
        return b"".join(found)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """Unpacks by the kind of packing that the first bytes tell."""
    start = file.read(6)
    file.seek(0)
    if start == b"\xfd7zXZ\0":
        return _unpacked_xz(file)
    opened: BinaryIO = file
    if start[:2] == b"\x1f\x8b":
        opened = gzip.GzipFile(fileobj=file)  # type: ignore[assignment]
    elif start[:3] == b"BZh":
        opened = bz2.BZ2File(file)  # type: ignore[assignment]
    return iter(functools.partial(opened.read, CHUNK), b"")


def _unpacked_xz(file: BinaryIO) -> Iterator[bytes]:
    """Unpacks xz with a bound on the memory that the file itself asks for; `lzma.open` knows none."""
    rest = file.read(CHUNK)
    while rest:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        while not unpacker.eof:
            data = unpacker.decompress(rest, CHUNK)
            if data:
                yield data
            rest = b"" if unpacker.eof or not unpacker.needs_input else file.read(CHUNK)
            if unpacker.needs_input and not rest:
                raise EOFError("the packed data end too early")
        rest = unpacker.unused_data.lstrip(b"\0")
        while not rest and (more := file.read(CHUNK)):
            rest = more.lstrip(b"\0")


class _Directory:
    """A zip file whose directory is bounded; `zipfile` would read one of any size into memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        """Reads, with bounds on the bytes and on the entries of the directory among them."""
        if size > MAX_DIRECTORY_BYTES:
            raise InvalidGameError(f"its directory has {size:,} bytes")
        found = self._file.read(MAX_DIRECTORY_BYTES if size < 0 else size)
        _check_count(found.count(_ENTRY))
        return found
