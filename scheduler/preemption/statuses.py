"""Word why a node is no candidate. Source: kube-scheduler 1.36, SelectVictimsOnNode."""

from __future__ import annotations

from typing import Final

from nominee.machinery.features.gates import Version
from nominee.scheduler.framework.interface import Code, Status

FIRST_ONLY_SINCE: Final = Version(1, 37)
NO_VICTIMS: Final = Status(
    Code.UnschedulableAndUnresolvable, ("No preemption victims found for incoming pod",)
)


def without_victims(node_name: str) -> Status:
    """Return the error for a node where every potential victim could stay."""
    return Status(Code.Error, (f'expected at least one victim pod on node "{node_name}"',))
