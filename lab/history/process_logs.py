"""The log lines of a cluster's processes beside its history: decisions, restarts and faults, and writers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nominee.lab.history.writers import Writer
from nominee.machinery.runtime.clock import parse_rfc3339

_LINE: Final = re.compile(r"[DIWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{6}) (\S+)\] (.*?)((?: [\w.]+=.*)?)")
_FIELD: Final = re.compile(r' ([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)')
WROTE: Final = "Wrote"
_MARKS: Final = frozenset(
    {"Ready", "Step", "Failpoint", "Failpoint set", "Fault set", "Faults removed", "Clock shifted"}
)
"""Messages of restarts, of a scenario's steps and of faults."""
MARK: Final = re.compile(rf"\] ({'|'.join(sorted(_MARKS))})(?: |$)")
"""Finds a line with one of these messages."""
_OF_KIND: Final = {"Pod": ("pod", "victims", "preemptor")}
"""Keys of fields that name objects of a kind, where they are not the kind's name."""
_LOG_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log: seconds since the epoch, process, message, and the key=value pairs behind it."""

    time: float
    process: str
    message: str
    fields: Mapping[str, str]

    @property
    def is_mark(self) -> bool:
        """Return whether it reports a restart, a step or a fault."""
        return self.message in _MARKS

    @property
    def text(self) -> str:
        """Return the line without its time."""
        pairs = " ".join(f"{key}={value}" for key, value in self.fields.items())
        return f"{self.process}: {self.message} {pairs}".rstrip()

    def is_about(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether a field names the object, alone or among others; namespace "" is any."""
        texts = [self.fields[key] for key in _OF_KIND.get(kind, (kind.lower(),)) if key in self.fields]
        parts = (part.rpartition("/") for text in texts for part in text.split(","))
        return any(
            each == name and ("" in (namespace, space) or space == namespace) for space, _, each in parts
        )


def log_files(directory: Path) -> list[Path]:
    """Return the logs beside a history file, or of a state directory."""
    return sorted([*directory.glob("*.log"), *(directory / "logs").glob("*.log")])


def read(files: Iterable[Path], year: int, keeps: Callable[[str], object] = lambda _: True) -> list[LogLine]:
    """Return the lines of logs in the order of their times; klog's format has no year.

    Lines of other formats are left out, and those that `keeps` refuses. Raises: OSError.
    """
    tails = [LogTail(path) for path in files]
    found = [line for tail in tails for line in lines_of(filter(keeps, tail.read(to_end=True)), year)]
    return sorted(found, key=lambda line: line.time)


@dataclass(slots=True)
class LogTail:
    """A log from which each line is read once."""

    path: Path
    _offset: int = 0

    def read(self, *, to_end: bool = False) -> list[str]:
        """Return the lines since the last call, at first those of the newest 64 MiB. Raises: OSError.

        A line that is still written is left for the next call, or `to_end` returned.
        """
        with self.path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            if end < self._offset:  # another file has taken its place
                self._offset = 0
            # The first line may be cut; then it has not klog's format.
            file.seek(max(end - _LOG_BYTES_MAX, self._offset))
            data = file.read()
            self._offset = file.tell()
        whole, _, rest = (data, b"", b"") if to_end else data.rpartition(b"\n")
        self._offset -= len(rest)
        return whole.decode(errors="replace").splitlines()


def lines_of(texts: Iterable[str], year: int) -> Iterator[LogLine]:
    """Yield the lines that have klog's format."""
    for text in texts:
        match = _LINE.fullmatch(text)
        if match is not None:
            month, day, clock, process, message, rest = match.groups()
            fields = {key: _plain(value) for key, value in _FIELD.findall(rest)}
            yield LogLine(parse_rfc3339(f"{year}-{month}-{day}T{clock}Z"), process, message, fields)


def _plain(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:  # a line that is still written
        return value


def writers(lines: Iterable[LogLine]) -> dict[int, Writer]:
    """Return the writers by revision that API servers have logged.

    A write that changes nothing has the revision of the one before it, which was logged earlier.
    """
    found: dict[int, Writer] = {}
    for line in lines:
        if line.message == WROTE and line.fields.get("revision", "").isdecimal():
            get = line.fields.get
            verb = f"{get('verb', '')} {get('resource', '')}"
            writer = Writer(user=get("user", ""), verb=verb, client=get("userAgent", ""))
            found.setdefault(int(line.fields["revision"]), writer)
    return found
