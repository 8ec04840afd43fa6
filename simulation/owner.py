"""The simulated process that owns a callback of the event loop."""

from __future__ import annotations

import enum


class OwnerState(enum.Enum):
    """Name the state of a process: its callbacks run, wait (FROZEN: SIGSTOP) or never run again (DEAD)."""

    RUNNING = enum.auto()
    FROZEN = enum.auto()
    DEAD = enum.auto()


class Owner:
    """A simulated process as the event loop sees it.

    A callback belongs to the process in whose context it was scheduled. After `kill` no instruction of the
    process runs any more, not even a `finally`: its tasks stay suspended where they are.
    """

    __slots__ = ("callbacks", "name", "pid", "resumed_at", "state")

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.state = OwnerState.RUNNING
        self.callbacks = 0
        """How many of its callbacks have run: a measure of its work."""
        self.resumed_at = float("-inf")
        """When it went on after it had been frozen, in seconds of the simulation."""

    def __repr__(self) -> str:
        return f"<{self.name} pid={self.pid} {self.state.name.lower()}>"
