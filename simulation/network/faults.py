"""Faults between two processes, as the caller sees them."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Action(enum.Enum):
    """Name a fault of a call.

    CUT: it fails at once, and open calls with it. DROP_REQUEST, DROP_RESPONSE: one direction is silent, and
    the call ends at its deadline. DELAY: messages take longer.
    """

    CUT = "cut"
    DELAY = "delay"
    DROP_REQUEST = "drop-request"
    DROP_RESPONSE = "drop-response"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the calls from `caller` to `callee` (names of processes; "*" for any).

    `method` is a method's name ("Bind", "Range") or "*"; `seconds` belongs to DELAY.
    """

    caller: str
    callee: str
    action: Action
    method: str = "*"
    seconds: float = 0.0

    def matches(self, caller: str, callee: str, method: str) -> bool:
        """Return whether the fault is one of this call."""
        return self.caller in ("*", caller) and self.callee in ("*", callee) and self.method in ("*", method)
