"""Do the I/O that plugins ask for, with the client and the clock of a test's framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.shell.calls.perform import Performer
from nominee.scheduler.shell.loop.binding_plugins import BindingPlugins


def _not_cleared(pod: core.Pod) -> None:
    raise AssertionError(f"{pod.metadata.name}: no nomination is to be cleared")


def performer(framework: Framework, clear_nomination: Callable[[core.Pod], None] = _not_cleared) -> Performer:
    return Performer(cast("Client", framework.environment.client), framework.clock, clear_nomination)


def binding_plugins(framework: Framework) -> BindingPlugins:
    return BindingPlugins(performer(framework))


async def done(framework: Framework, work: object) -> Any:
    """Do steps, or await an awaitable; return the result."""
    return await performer(framework).run(work)
