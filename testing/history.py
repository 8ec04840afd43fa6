"""The revisions of a cluster's objects, read by `nominee history`: a child process, since it loads gRPC."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from nominee.lab.history.changes import FIELDS_MAX, FieldChange
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.process import child
from nominee.machinery.wire.values.scalars import Json

COMMAND: Final = "nominee.cli"
"""The module of the command `nominee`."""
READ_SECONDS_MAX: Final = 120.0
NOTHING_FOUND: Final = 1
"""The exit status of `nominee history` without any revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRevision:
    """One write of an object, with the fields that it changed.

    `revision` is etcd's, and the object's resourceVersion. `time` is RFC 3339, "" if it is unknown. `verb` is
    `created`, `updated` or `deleted`, or says that the history begins with the object. `writer` is a user or
    a field manager, "" if it is unknown.
    """

    revision: int
    time: str
    kind: str
    namespace: str
    name: str
    verb: str
    writer: str = ""
    changes: tuple[FieldChange, ...] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Json]) -> Self:
        """Return the revision of an entry of `nominee history -o json`."""
        writer = entry["writer"] or {}
        return cls(
            revision=entry["revision"],
            time=entry["time"] or "",
            kind=entry["kind"],
            namespace=entry["namespace"],
            name=entry["name"],
            verb=entry["change"],
            writer=writer.get("user") or writer.get("manager") or "",
            changes=tuple(FieldChange(each["path"], each["old"], each["new"]) for each in entry["fields"]),
        )

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        by = f" by {self.writer}" if self.writer else ""
        head = f"revision {self.revision}, {self.time or 'time unknown'}: {self.kind} {where} {self.verb}{by}"
        more = len(self.changes) - FIELDS_MAX
        rest = [f"... {more} more fields"] if more > 0 else []
        return "\n    ".join([head, *map(str, self.changes[:FIELDS_MAX]), *rest])


def read(directory: Path, *words: str) -> list[ObjectRevision]:
    """Return the revisions that `nominee history` finds with these words.

    Raises:
        ClusterError: the history cannot be read.
    """
    command = child.command(COMMAND, "history", "--dir", str(directory), "-o", "json", *words)
    answer = run(command, also=NOTHING_FOUND)
    entries = json.loads(answer)["entries"] if answer else []
    return [ObjectRevision.of(entry) for entry in entries if "fields" in entry]


def run(command: list[str], *, also: int = 0, seconds_max: float = READ_SECONDS_MAX) -> str:
    """Run the command `nominee`, and return its output; it may also end with the status `also`.

    Raises:
        ClusterError: it fails, and the message is its last line; or it takes too long.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired:
        words = " ".join(command[command.index(COMMAND) + 1 :])
        raise ClusterError(f"`nominee {words}` did not end in {seconds_max:g} s") from None
    if done.returncode not in (0, also):
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ClusterError(lines[-1].removeprefix("Error: "))
    return done.stdout
