"""The history and the log of a simulation, as a list and as files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.fold import Fold
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.lab.history.revision import Revision
from nominee.simulation.etcd.store import Change, Store
from nominee.simulation.event_loop.clock import EPOCH_SECONDS
from nominee.simulation.simulation import Simulation

LOG_NAME: Final = "simulation.log"


def history_of(store: Store) -> list[Revision]:
    """Return every write since the cluster was created, with the simulation's times."""
    fold = Fold()
    return [
        revision_of(fold, change, time)
        for time, changes in zip(store.times, store.log, strict=True)
        for change in changes
    ]


def revision_of(fold: Fold, change: Change, time: float) -> Revision:
    """Return the revision of the store's next change; `time` is the simulation's."""
    return fold.change(
        change.key.decode("utf-8", "replace"),
        None if change.pair is None else change.pair.value,
        change.revision,
        EPOCH_SECONDS + time,
    )


def write(simulation: Simulation, directory: Path) -> None:
    """Write the history, as `nominee verify` reads it, and the processes' log lines into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / NAME
    path.unlink(missing_ok=True)
    writer = HistoryWriter(path, Coverage(end=simulation.store.revision))
    writer.append(history_of(simulation.store))
    writer.close()
    problems = [f"not retrieved by any task: {problem}" for problem in simulation.loop.problems]
    log = "".join(f"{line}\n" for line in [*simulation.log, *problems])
    (directory / LOG_NAME).write_text(log, encoding="utf-8")
