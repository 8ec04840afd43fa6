"""Heartbeats of a node's status: when it is compared, and when it is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from nominee.kubelet.node.node_object import Identity, NodeFacts, new_node
from nominee.kubelet.options import Heartbeats
from nominee.kubelet.shell.agent import Agent
from nominee.kubelet.shell.registration import LEASE_NAMESPACE, Registrar
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import FakeClock
from tests.support.fake_api import FakeApi


async def test_a_status_is_compared_when_its_node_changed_and_written_every_few_minutes() -> None:
    identity, facts = Identity(name="n1", number=1), NodeFacts(version=Version(1, 36))
    agent = cast("Agent", SimpleNamespace(name="n1", identity=identity))
    clock = FakeClock()
    api = FakeApi.of(new_node(identity, facts, clock.now()))
    registrar = Registrar(
        cast("Client", api), clock, facts, Heartbeats(), node_of=lambda name: api.find(kinds.NODE, name)
    )

    async def beat() -> list[str]:
        """Return the heartbeat's writes."""
        before = len(api.requests)
        if registrar.needs_report(agent):
            await registrar.report(agent)
        return [request.verb for request in api.requests[before:]]

    await registrar.register(agent)
    await clock.advance(1.0)
    assert registrar.needs_report(agent), "it was not compared yet"
    assert await beat() == []
    assert not registrar.needs_report(agent)

    changed = core.Node()
    changed.CopyFrom(cast("core.Node", api.find(kinds.NODE, "n1")))
    changed.metadata.labels["a"] = "b"
    api.put(changed)
    assert registrar.needs_report(agent), "the object is another one"
    assert await beat() == []

    changed.status.conditions[0].status = "Unknown"
    api.put(changed)
    assert await beat() == ["patch/status"]
    assert await beat() == []

    await clock.advance(300.0)
    assert await beat() == ["patch/status"], "the heartbeat of a status that did not change"
    registrar.forget(agent)
    assert registrar.needs_report(agent)


async def test_a_node_that_is_deleted_while_its_kubelet_starts_is_created_again() -> None:
    identity, facts = Identity(name="n1", number=1), NodeFacts(version=Version(1, 36))
    agent = cast("Agent", SimpleNamespace(name="n1", identity=identity))
    clock = FakeClock()
    api = FakeApi.of(new_node(identity, facts, clock.now()))
    registrar = Registrar(cast("Client", api), clock, facts, Heartbeats(), node_of=lambda _: None)
    api.hold["get/nodes"] = held = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(registrar.register, agent)
        await api.until(lambda: [request.verb for request in api.requests] == ["create"])
        api.remove(kinds.NODE, "n1")
        held.set()
        await anyio.wait_all_tasks_blocked()
        await clock.advance(1.0)
    assert api.find(kinds.NODE, "n1") is not None


async def test_a_lease_is_created_only_for_a_node_that_exists_and_belongs_to_it() -> None:
    """Source: kubelet 1.36, ensureLease, SetNodeOwnerFunc: without an owner it would stay for ever."""
    clock, api = FakeClock(), FakeApi()
    agent = cast("Agent", SimpleNamespace(name="n1"))
    registrar = Registrar(cast("Client", api), clock, cast("Any", None), Heartbeats(), node_of=lambda _: None)
    for _ in range(2):
        with pytest.raises(StatusError, match="not found"):
            await registrar.renew(agent)
    assert api.find(kinds.LEASE, "n1", LEASE_NAMESPACE) is None

    node = core.Node()
    node.metadata.name, node.metadata.uid = "n1", "uid-n1"
    api.put(node)
    await registrar.renew(agent)
    lease = api.find(kinds.LEASE, "n1", LEASE_NAMESPACE)
    assert lease is not None
    assert [(owner.kind, owner.uid) for owner in lease.metadata.ownerReferences] == [("Node", "uid-n1")]


async def test_a_cordon_and_its_end_are_recorded_once_each() -> None:
    """Source: kubelet 1.36, recordNodeSchedulableEvent."""
    identity, facts = Identity(name="n1", number=1), NodeFacts(version=Version(1, 36))
    clock, recorded = FakeClock(), list[tuple[str, str, str]]()

    class Recorder:
        def event(self, regarding: core.ObjectReference, type_: str, reason: str, **more: str) -> None:
            assert (regarding.kind, regarding.name, more["instance"]) == ("Node", "n1", "n1")
            recorded.append((type_, reason, more["note"]))

    environment = SimpleNamespace(recorder=Recorder())
    agent = cast("Agent", SimpleNamespace(name="n1", identity=identity, env=environment))
    node = new_node(identity, facts, clock.now())
    api = FakeApi.of(node)
    registrar = Registrar(cast("Client", api), clock, facts, Heartbeats(), node_of=lambda _: node)
    for unschedulable in (False, True, True, False, False):
        node.spec.unschedulable = unschedulable
        await registrar.report(agent)
    assert recorded == [
        ("Normal", reason, f"Node n1 status is now: {reason}")
        for reason in ("NodeNotSchedulable", "NodeSchedulable")
    ]
