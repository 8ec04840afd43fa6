"""The memory of processes at rest: tasks, open calls, entries of containers. No I/O.

A process whose calls were lost, or that was killed, holds in the end what it holds without that. More is a
leak; a loop or a watch less has ended. Only simulated processes can be asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nominee.lab.chaos.rest.state import State

MEMORY: Final = "/debug/memory"
_TEXTS: Final[Mapping[str, str]] = {
    "tasks": "a task {} of {}",
    "calls": "an open call {} of {}",
    "entries": "an entry of {} in {}",
}
_PREFIXES: Final = tuple(text.partition("{")[0] for text in _TEXTS.values())
_LASTING: Final = re.compile(r"a task [\w.]+\.run of |an open call Watch of ")
"""What a process always needs: other tasks, and streams of calls, are there while there is work for them."""


def holdings(state: State) -> dict[str, int]:
    """Return the numbers of all tasks, calls and entries that the processes of each component hold."""
    return {
        _TEXTS[part].format(what, component): count
        for (component, path), parts in state.debug.items()
        if path == MEMORY
        for part, counts in parts.items()
        for what, count in counts.items()
    }


def is_holding(shape: str) -> bool:
    """Return whether a shape is a task, a call or an entry of a process."""
    return shape.startswith(_PREFIXES)


def may_be_fewer(shape: str) -> bool:
    """Return whether there may be fewer than after the undisturbed run.

    A restarted process has done less: it has fewer entries.
    """
    return is_holding(shape) and not _LASTING.match(shape)
