"""Sum a number of each node by topology domain, and correct the sums as single nodes change.

A domain is a value of a label, numbered as the label's column numbers it; nodes without the label have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nominee.scheduler.framework.cluster.columns import Column
    from nominee.scheduler.framework.cluster.snapshot import Snapshot

LABELS_MAX: Final = 16  # with more all sums are made again
Counts = NDArray[np.int64]


class _Sums(NamedTuple):
    column: Column
    version: int  # of the column that the sums are of
    by_id: Counts


class DomainSums:
    """The sums of one number of each node, by label."""

    __slots__ = ("_by_label",)

    def __init__(self) -> None:
        self._by_label: dict[str, _Sums] = {}

    def of(self, snapshot: Snapshot, label: str, by_row: Counts) -> Counts:
        """Return the sums by the ids of the label's column; to be read only, and until the snapshot changes.

        `by_row`: the present numbers, `[nodes]`.
        """
        column = snapshot.label_column(label)
        kept = self._by_label.get(label)
        if kept is not None and kept.column is column and kept.version == column.version:
            return kept.by_id
        ids = column.ids[: len(snapshot)]
        sums = np.bincount(ids, weights=by_row, minlength=len(column.values)).astype(np.int64)
        missing = column.id_of(None)
        if missing >= 0:
            sums[missing] = 0
        if len(self._by_label) >= LABELS_MAX:
            self._by_label.clear()
        self._by_label[label] = _Sums(column, column.version, sums)
        return sums

    def add(self, row: int, change: int) -> None:
        """Follow a change of the number of one row."""
        for label, kept in list(self._by_label.items()):
            if kept.version != kept.column.version:
                del self._by_label[label]
                continue
            number = int(kept.column.ids[row])
            if kept.column.values[number] is not None:
                kept.by_id[number] += change

    def clear(self) -> None:
        """Forget all sums."""
        self._by_label.clear()
