"""A Filter plugin of the project; it uses the project's own package `scheduler`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import scheduler  # the project's own
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterPlugin, Handle, Status
from nominee.scheduler.framework.types import NodeInfo, PodInfo


class OnlyEven(FilterPlugin):
    """Refuse nodes whose name ends with an odd digit."""

    name = "OnlyEven"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        assert scheduler.OWNER == "the project"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if int(node.name[-1]) % 2:
            return Status(Code.Unschedulable, ("odd node",))
        return None
