"""Do the I/O that plugins ask for, with the client and the clock of a test's framework."""

from __future__ import annotations

from typing import Any, cast

from nominee.machinery.client.api_client import Client
from nominee.scheduler.framework.runtime import Framework
from nominee.scheduler.shell.binding_plugins import BindingPlugins
from nominee.scheduler.shell.perform import Performer


def performer(framework: Framework) -> Performer:
    return Performer(cast("Client", framework.environment.client), framework.clock)


def binding_plugins(framework: Framework) -> BindingPlugins:
    return BindingPlugins(performer(framework))


async def done(framework: Framework, work: object) -> Any:
    """Do steps, or await an awaitable; return the result."""
    return await performer(framework).run(work)
