"""The dependencies of a controller under test, over a fake API server and a simulated clock."""

from __future__ import annotations

from typing import cast

from nominee.controllers.shell.controller import Context, InformerSet, Recorders
from nominee.machinery.client.api_client import Client
from nominee.machinery.features import gates as versions
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import FakeClock
from tests.support.fake_api import FakeApi


def context_of(api: FakeApi, clock: FakeClock, *, root_ca: str = "") -> Context:
    """Return the context of a controller; its informers do not run yet."""
    client = cast("Client", api)
    return Context(
        client=client,
        informers=InformerSet(client, clock),
        clock=clock,
        recorders=Recorders(client, clock),
        gates=versions.Gates("controllers", versions.DEFAULT),
        log=logs.get(),
        root_ca=root_ca,
    )
