"""The runtime of a simulated process, by one context variable."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass

from nominee.machinery.process.component import Process
from nominee.machinery.runtime.runtime import RUNTIME, Runtime
from nominee.simulation.owner import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRuntime(Runtime):
    """A Runtime, and the process to which it belongs."""

    owner: Owner
    adopt: Callable[[Process], None]
    """Receives the process that the component's command makes."""


def current() -> SimulatedRuntime:
    """Return the runtime of the running task's process."""
    found = RUNTIME.get()
    assert isinstance(found, SimulatedRuntime), "only a simulated process has one"
    return found


def owner_of(context: Context) -> Owner | None:
    """Return the owner of a callback; None for the network's."""
    found = context.get(RUNTIME)
    return found.owner if isinstance(found, SimulatedRuntime) else None


def current_owner() -> Owner | None:
    """Return the owner of the running callback; None for the network's."""
    found = RUNTIME.get()
    return found.owner if isinstance(found, SimulatedRuntime) else None
