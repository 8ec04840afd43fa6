"""A process as the recorder sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One process: the supervisor's state, and what it runs with. `failpoints` are the armed ones."""

    name: str
    state: str
    pid: int
    last_exit: str = ""
    emulated_version: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    failpoints: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[tuple[str, str, str, str]] = ()

    def since(self, before: ProcessView) -> ProcessView:
        """Return the state before this one of the same run: nothing is armed at the start of a run."""
        if before.pid == self.pid and self.state == "ready":
            return before
        return ProcessView(name=self.name, state=self.state, pid=self.pid)
