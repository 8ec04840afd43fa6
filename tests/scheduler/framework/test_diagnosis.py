"""Statuses of many nodes and the message that joins them."""

from __future__ import annotations

import numpy as np

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.scheduling.diagnosis import NodeStatusTable
from nominee.scheduler.framework.types import NodeInfo
from tests.scheduler.builders import node

FULL = Status(Code.Unschedulable, ("Insufficient cpu",), "NodeResourcesFit")
TAINTED = Status(Code.UnschedulableAndUnresolvable, ("node(s) had untolerated taint(s)",), "TaintToleration")


def table(size: int) -> NodeStatusTable:
    return NodeStatusTable(Snapshot(NodeInfo(f"n{i}", node(f"n{i}")) for i in range(size)))


def test_groups_name_the_first_nodes() -> None:
    statuses = table(7)
    statuses.set(np.array([1, 3, 5]), [FULL, TAINTED], np.array([0, 1, 0]))
    for row in (0, 6):
        statuses.set_row(row, TAINTED)
    groups = {(status.plugin, count, nodes) for status, count, nodes in statuses.groups(2)}
    assert groups == {
        ("", 2, ("n2", "n4")),
        ("NodeResourcesFit", 2, ("n1", "n5")),
        ("TaintToleration", 1, ("n3",)),
        ("TaintToleration", 2, ("n0", "n6")),
    }


def test_the_same_status_row_by_row_is_one() -> None:
    statuses = table(100)
    for row in range(100):
        statuses.set_row(row, Status(Code.Unschedulable, ("Too many pods",), "NodeResourcesFit"))
    ((status, count, nodes),) = statuses.groups(3)
    assert (status.message(), count, nodes) == ("Too many pods", 100, ("n0", "n1", "n2"))
    assert statuses.reasons(100) == {"Too many pods": 100}
    assert len(statuses.rows_with_code(Code.Unschedulable)) == 100
