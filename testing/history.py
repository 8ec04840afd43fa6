"""The revisions of a cluster's objects, read by a child process: reading them loads gRPC.

`python -m nominee.testing.history DIR [--namespace N] [--kind KIND] [--name NAME] [--since REVISION]` prints
a line of JSON for each revision.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nominee.lab.history.changes import FIELDS_MAX, changed_fields
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.process import child
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.wire.codec import to_json
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.history.revision import Revision

READ_SECONDS_MAX: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRevision:
    """One write of an object, and the fields that it changed (`path: old -> new`).

    `revision` is etcd's, and the object's resourceVersion. `time` is in seconds since the epoch, 0 if it is
    unknown. `verb` is `created`, `updated` or `deleted`; `present` where the history begins with the object.
    `object` is the object after the write, None if it was deleted.
    """

    revision: int
    time: float
    kind: str
    namespace: str
    name: str
    verb: str
    changes: tuple[str, ...] = ()
    object: Mapping[str, Json] | None = None

    def __str__(self) -> str:
        when = rfc3339_micro(self.time) if self.time else "time unknown"
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        head = f"revision {self.revision}, {when}: {self.kind} {where} {self.verb}"
        more = len(self.changes) - FIELDS_MAX
        rest = [f"... {more} more fields"] if more > 0 else []
        return "\n    ".join([head, *self.changes[:FIELDS_MAX], *rest])


def read(
    directory: Path, *, namespace: str = "", kind: str = "", name: str = "", since: int = 0
) -> list[ObjectRevision]:
    """Return the revisions of objects after a revision of etcd; "" is every namespace, kind or name.

    Raises:
        ClusterError: the history cannot be read.
    """
    words = [f"--namespace={namespace}", f"--kind={kind}", f"--name={name}", f"--since={since}"]
    answer = run(child.command(__name__, str(directory), *words))
    lines = [json.loads(line) for line in answer.splitlines()]
    return [ObjectRevision(**{**line, "changes": tuple(line["changes"])}) for line in lines]


def run(command: list[str], *, also: int = 0) -> str:
    """Run a command, and return its output; it may also end with the status `also`.

    Raises:
        ClusterError: it fails; the message is its last line.
    """
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=READ_SECONDS_MAX,
        check=False,
    )
    if done.returncode not in (0, also):
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ClusterError(lines[-1].removeprefix("Error: "))
    return done.stdout


def main(arguments: list[str]) -> None:
    """Print revisions as JSON."""
    # These import gRPC; `read` runs without it.
    import anyio

    from nominee.lab.history.etcd_watch import HistoryUnavailable
    from nominee.lab.history.history_file import HistoryFileError

    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--since", type=int, default=0)
    for option in ("--namespace", "--kind", "--name"):
        parser.add_argument(option, default="")
    given = parser.parse_args(arguments)

    def matches(revision: Revision) -> bool:
        return (
            revision.revision > given.since
            and revision.kind is not None
            and given.namespace in ("", revision.namespace)
            and given.kind in ("", revision.kind.group_resource)
            and given.name in ("", revision.name)
        )

    try:
        anyio.run(_print, given.directory, matches)
    except (HistoryUnavailable, HistoryFileError, OSError) as error:
        sys.exit(f"Error: the history cannot be read: {error}")


async def _print(directory: Path, matches: Callable[[Revision], bool]) -> None:
    from nominee.lab.history import history_file
    from nominee.lab.history.connection import connect_to_etcd
    from nominee.lab.history.etcd_observer import Coverage, EtcdObserver
    from nominee.lab.history.fold import Fold

    fold, coverage = Fold(), Coverage()
    path = directory / history_file.NAME
    if path.exists():
        reader = history_file.HistoryReader(path)
        fold, coverage = reader.fold, reader.coverage
        for revision in filter(matches, reader):
            print(json.dumps(_as_json(revision)))
    channel = await connect_to_etcd(directory)
    async with channel:
        async for batch in EtcdObserver(channel, fold=fold, coverage=coverage).read():
            for revision in filter(matches, batch):
                print(json.dumps(_as_json(revision)))


def _as_json(revision: Revision) -> Mapping[str, Json]:
    obj, before = revision.object, revision.previous
    if revision.is_state:
        verb = "present" if obj is not None else "deleted"
    else:
        verb = "deleted" if obj is None else "created" if before is None else "updated"
    return {
        "revision": revision.revision,
        "time": revision.time,
        "kind": revision.kind.kind if revision.kind is not None else "",
        "namespace": revision.namespace,
        "name": revision.name,
        "verb": verb,
        "changes": [] if obj is None else list(changed_fields(before, obj)),
        "object": None if obj is None else to_json(obj),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
