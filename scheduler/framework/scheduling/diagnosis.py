"""Explain why a pod fits nowhere: which plugin rejected which node, and the message of the event.

Built only after a cycle without a feasible node, from the filters' masks, without a loop over nodes.
Source: kube-scheduler 1.36, framework, FitError and Diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.types import NodeInfo

NO_STATUS = Status(Code.UnschedulableAndUnresolvable)


class NodeStatusTable:
    """A status per row of a snapshot; rows without one have `absent`.

    Valid as long as the snapshot is not brought up to date.
    """

    def __init__(self, snapshot: Snapshot, absent: Status = NO_STATUS) -> None:
        self.snapshot = snapshot
        self.absent = absent
        self._statuses: list[Status] = []
        self._number_of: dict[Status, int] = {}  # of statuses that came row by row
        self._index = np.full(len(snapshot), -1, dtype=np.intp)

    def set(self, rows: NDArray[np.intp], statuses: Iterable[Status], index: NDArray[np.intp]) -> None:
        """Set statuses: row `rows[i]` gets `statuses[index[i]]`."""
        base = len(self._statuses)
        self._statuses.extend(statuses)
        self._index[rows] = index + base

    def set_row(self, row: int, status: Status) -> None:
        number = self._number_of.setdefault(status, len(self._statuses))
        if number == len(self._statuses):
            self._statuses.append(status)
        self._index[row] = number

    def has(self, row: int) -> bool:
        """Return whether the row has a status of its own."""
        return bool(self._index[row] >= 0)

    def get(self, node_name: str) -> Status:
        """Return the status of a node; `absent` also for one that does not exist."""
        row = self.snapshot.row_of.get(node_name)
        if row is None or self._index[row] < 0:
            return self.absent
        return self._statuses[int(self._index[row])]

    def __len__(self) -> int:
        """Return how many nodes have a status of their own."""
        return int(np.count_nonzero(self._index >= 0))

    def rows_with_code(self, code: Code) -> NDArray[np.intp]:
        codes = np.fromiter((s.code for s in self._statuses), dtype=np.int64, count=len(self._statuses))
        codes = np.append(codes, self.absent.code)  # index -1 finds it
        return np.flatnonzero(codes[self._index] == code)

    def nodes_with_code(self, snapshot: Snapshot, code: Code) -> list[NodeInfo]:
        """Return the nodes whose status has the code, in the snapshot's order."""
        if snapshot is not self.snapshot:
            return [node for node in snapshot.nodes if self.get(node.name).code is code]
        return snapshot.nodes_at(self.rows_with_code(code))

    def names(self) -> Iterable[str]:
        """Return the names of the nodes that have a status of their own."""
        for row in np.flatnonzero(self._index >= 0).tolist():
            yield self.snapshot.nodes[row].name

    def groups(self, names_max: int) -> list[tuple[Status, int, tuple[str, ...]]]:
        """Return each status with the number of its nodes and the names of the first of these."""
        nodes = self.snapshot.nodes
        order = np.argsort(self._index, kind="stable")  # rows of one status side by side, in their order
        numbers, starts, counts = np.unique(self._index[order], return_index=True, return_counts=True)
        found = []
        for number, start, count in zip(numbers.tolist(), starts.tolist(), counts.tolist(), strict=True):
            status = self.absent if number < 0 else self._statuses[number]
            rows = order[start : start + min(count, names_max)].tolist()
            found.append((status, count, tuple(nodes[row].name for row in rows)))
        return found

    def reasons(self, total: int) -> dict[str, int]:
        """Return how many of `total` nodes have each reason; a status may have several."""
        counts: dict[str, int] = {}
        own = self._index[self._index >= 0]
        numbers = np.bincount(own, minlength=len(self._statuses)).tolist() if len(own) else []
        for status, number in zip(self._statuses, numbers, strict=False):
            if number:
                for reason in status.reasons:
                    counts[reason] = counts.get(reason, 0) + number
        rest = total - len(own)
        if rest > 0:
            for reason in self.absent.reasons:
                counts[reason] = counts.get(reason, 0) + rest
        return counts


@dataclass(slots=True)
class Diagnosis:
    """The rejections after no node was found."""

    statuses: NodeStatusTable
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def add_missing(self, row: int, status: Status) -> None:
        """Enter the rejection of a row that has no status of its own."""
        if not self.statuses.has(row):
            self.statuses.set_row(row, status)
            self.add_plugin(status)

    def add_plugin(self, status: Status) -> None:
        """Add the plugin of a rejection, since only events that it registered can help."""
        if not status.plugin:
            return
        if status.code is Code.Pending:
            self.pending_plugins.add(status.plugin)
        elif status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)


class FitError(Exception):
    """No node fits the pod."""

    def __init__(self, total: int, diagnosis: Diagnosis) -> None:
        super().__init__()
        self.total = total
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        """Return `0/5 nodes are available: 3 Insufficient cpu, 2 Too many pods. preemption: ...`."""
        text = f"0/{self.total} nodes are available:"
        if self.diagnosis.pre_filter_message:
            text += f" {self.diagnosis.pre_filter_message}."
        else:
            counts = self.diagnosis.statuses.reasons(self.total)
            if counts:
                text += f" {', '.join(sorted(f'{n} {reason}' for reason, n in counts.items()))}."
        if self.diagnosis.post_filter_message:
            text += f" {self.diagnosis.post_filter_message}"
        return text
