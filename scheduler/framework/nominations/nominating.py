"""Define the changes of a pod's nomination."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class NominatingMode(IntEnum):
    NoOp = 0
    Override = 1


@dataclass(frozen=True, slots=True)
class NominatingInfo:
    """A change of `status.nominatedNodeName`: keep it, or set it (empty: clear it)."""

    mode: NominatingMode
    node_name: str = ""
