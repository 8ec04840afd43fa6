"""A history in a file, by default D/history.gz: append only, compressed, with a limit.

The file is a sequence of gzip members; each has whole records, so that a killed writer loses the last member
only. A record is a tag and a header (`_HEADER`, big endian), the key and the value:

| tag | record |
|---|---|
| `W` | a write: its revision, the time when it was observed |
| `D` | a deletion |
| `S`, `X` | the state of a key where the history begins or after a gap; with `X` it does not exist |
| `B` | the history begins with the state at this revision |
| `G` | a gap up to this revision; `S` and `X` records follow |
| `E` | the file has reached its limit: later writes are not recorded |
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.fold import Fold
from nominee.lab.history.revision import Revision

NAME: Final = "history.gz"
BYTES_MAX: Final = 1 << 30
"""The default limit of a file."""
_MAGIC: Final = b"nominee-history-1\n"
_HEADER: Final = struct.Struct(">cQdII")
"""Tag, revision, time, size of the key, size of the value."""
_MEMBER_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 16
_GZIP: Final = 31
_GZIP_MAGIC: Final = b"\x1f\x8b"


class HistoryFileError(Exception):
    """The file is no history; the text names it."""


class HistoryWriter:
    """Appends to a history file; call `flush` regularly, and `close` at the end.

    The file must not exist, or `recover` must have read it before. `coverage` is that of the observer whose
    revisions are appended.
    """

    def __init__(self, path: Path, coverage: Coverage, *, bytes_max: int = BYTES_MAX) -> None:
        self._coverage = coverage
        self._bytes_max = bytes_max
        self._pending = bytearray()
        self._begin = coverage.begin
        self._gaps = len(coverage.gaps)
        self.is_full = False
        """The limit is reached: nothing is recorded any more."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab")
        if not self._file.tell():
            self._pending += _MAGIC

    def append(self, batch: Iterable[Revision]) -> None:
        """Add revisions."""
        if self.is_full:
            return
        if self._begin != self._coverage.begin:
            self._begin = self._coverage.begin
            self._record(b"B", self._begin)
        for _, last in self._coverage.gaps[self._gaps :]:
            self._record(b"G", last)
        self._gaps = len(self._coverage.gaps)
        for revision in batch:
            data = revision.value.data if revision.value is not None else None
            tag = (b"X" if data is None else b"S") if revision.is_state else (b"D" if data is None else b"W")
            self._record(tag, revision.revision, revision.time, revision.key.encode(), data or b"")
        if len(self._pending) >= _MEMBER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the appended revisions to the file.

        Raises:
            OSError: the disk refuses; the member may be incomplete.
        """
        if not self._pending:
            return
        if self._file.tell() >= self._bytes_max:
            self._pending.clear()
            self._record(b"E", 0)
            self.is_full = True
        compressor = zlib.compressobj(wbits=_GZIP)
        member = compressor.compress(bytes(self._pending)) + compressor.flush()
        self._pending.clear()
        self._file.write(member)
        self._file.flush()

    def close(self) -> None:
        """Flush, and close the file."""
        self.flush()
        self._file.close()

    def _record(
        self, tag: bytes, revision: int, time: float = 0.0, key: bytes = b"", data: bytes = b""
    ) -> None:
        self._pending += _HEADER.pack(tag, revision, time, len(key), len(data))
        self._pending += key
        self._pending += data


class HistoryReader:
    """Reads a history file once; then `fold` and `coverage` let an observer continue after it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fold = Fold()
        self.coverage = Coverage()
        self.is_full = False
        """The file reached its limit; the history ends there."""
        self.whole_bytes = 0
        """The size of all whole members read so far."""
        self.rest_bytes = 0
        """The bytes after the last whole member: the writer was killed, or the file was cut or damaged."""

    def __iter__(self) -> Iterator[Revision]:
        """Yield the revisions.

        Raises:
            HistoryFileError: it is another file, or its records are not those of a history.
            OSError: it cannot be read.
        """
        at = len(_MAGIC)
        for member in self._members():
            if at and not member.startswith(_MAGIC):
                raise HistoryFileError(f"{self._path} is no history of Nominee")
            try:
                yield from self._revisions(member, at)
            except (struct.error, UnicodeDecodeError) as error:
                where = f"after revision {self.fold.revision}"
                raise HistoryFileError(f"{self._path} has no valid record {where}: {error}") from None
            at = 0

    @property
    def missing_rest(self) -> str:
        """Return why later writes may be missing; "" at the end of a whole file."""
        if self.is_full:
            return "the history file has reached its limit"
        if self.rest_bytes:
            return (
                f"the history file ends after {self.whole_bytes} bytes with an incomplete part "
                f"({self.rest_bytes} bytes): it was cut off, or damaged there"
            )
        return ""

    def _revisions(self, member: bytes, at: int) -> Iterator[Revision]:
        while at < len(member):
            tag, number, time, key_size, size = _HEADER.unpack_from(member, at)
            at += _HEADER.size
            key = member[at : at + key_size].decode()
            at += key_size
            data = member[at : at + size]
            at += size
            if tag in (b"W", b"D"):
                yield self.fold.change(key, data if tag == b"W" else None, number, time)
                self.coverage.end = self.fold.revision
            elif tag in (b"S", b"X"):
                yield self.fold.state(key, data if tag == b"S" else None, number, time)
            elif tag == b"B":
                self.coverage.begin = self.coverage.end = self.fold.revision = number
            elif tag == b"G":
                self.coverage.gaps.append((self.fold.revision + 1, number))
                self.coverage.end = self.fold.revision = number
            else:
                self.is_full = True

    def _members(self) -> Iterator[bytes]:
        """Yield the content of each whole member."""
        with self._path.open("rb") as file:
            data = file.read(_READ_BYTES)
            if not data.startswith(_GZIP_MAGIC[: len(data)]):
                raise HistoryFileError(f"{self._path} is no history of Nominee")
            while True:
                decompressor = zlib.decompressobj(wbits=_GZIP)
                content = bytearray()
                size = 0
                while not decompressor.eof:
                    data = data or file.read(_READ_BYTES)
                    if not data:
                        self.rest_bytes = size
                        return
                    try:
                        content += decompressor.decompress(data)
                    except zlib.error:
                        self.rest_bytes = file.seek(0, os.SEEK_END) - self.whole_bytes
                        return
                    size += len(data) - len(decompressor.unused_data)
                    data = decompressor.unused_data
                self.whole_bytes += size
                yield bytes(content)


def recover(path: Path) -> HistoryReader:
    """Read a history to its end, and cut off the incomplete rest of a killed writer.

    Raises:
        HistoryFileError: it is another file.
        OSError: it cannot be read or written.
    """
    reader = HistoryReader(path)
    for _ in reader:
        pass
    if path.stat().st_size > reader.whole_bytes:
        os.truncate(path, reader.whole_bytes)
    return reader
