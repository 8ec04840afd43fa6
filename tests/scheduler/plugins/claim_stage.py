"""DynamicResources on three extension points with an API server in memory, for its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import devices
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import PostFilterResult, Status
from nominee.scheduler.framework.scheduling.algorithm import pre_filter
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources import DynamicResources
from tests.scheduler.builders import UNREAD, VERSION, desk, node, pod
from tests.scheduler.performing import done
from tests.support.devices import (
    allocation,
    claim,
    device,
    device_class,
    resource_slice,
    using,
)
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

FINALIZER = "resource.kubernetes.io/delete-protection"
S1 = resource_slice("s1", device("gpu-0"), node="n1")
S2 = resource_slice("s2", device("gpu-0"), node="n2")


class DeviceApi(FakeApi):
    """Also makes updates wait (`holds`) and reads fail (`unread`)."""

    holds = False
    unread: errors.StatusError | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deletes_gracefully = True
        self.arrived, self.goes_on = anyio.Event(), anyio.Event()

    async def update(self, obj: Any, **options: Any) -> Any:
        if self.holds:
            self.arrived.set()
            await self.goes_on.wait()
        return await super().update(obj, **options)

    async def get(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> Any:
        if self.unread is not None:
            raise self.unread
        return await super().get(kind, name, namespace, **options)


class Stage:
    """Two nodes, and what the test adds; one pod's cycle after the other."""

    def __init__(
        self, *objects: Any, gates: Mapping[str, bool] | None = None, version: Version = VERSION
    ) -> None:
        self.clock = FakeClock()
        self.api = DeviceApi()
        for obj in (node("n1"), node("n2"), device_class(), *objects):
            self.api.put(obj)
        self.desk = desk(
            without=("DefaultPreemption",),
            environment={
                "client": self.api, "listers": self.api.listers(), "clock": self.clock,
                "gates": Gates("scheduler", version, gates or {}), "version": version,
            },
        )  # fmt: skip
        self.framework = self.desk.framework
        self.desk.add_nodes(node("n1"), node("n2"))
        self.desk.cache.update_snapshot(self.framework.snapshot)
        plugin = self.framework.plugins["DynamicResources"]
        assert isinstance(plugin, DynamicResources)
        self.plugin = plugin
        self.state = CycleState()

    def verdicts(self, who: PodInfo) -> dict[str, str]:
        """Why each node is not feasible; AlgorithmError where the pod cannot be judged."""
        found: dict[str, str] = {}
        self.state = CycleState()
        rows, _ = pre_filter(self.framework, self.state, who, self.framework.snapshot)
        assert rows is None
        for each in self.framework.snapshot.nodes:
            status = self.framework.run_filter_plugins(self.state, who, each)
            assert status is None or status.is_rejected, status
            found |= {each.name: status.message()} if status is not None else {}
        return found

    def feasible(self, who: PodInfo) -> list[str]:
        rejected = self.verdicts(who)
        return sorted(n.name for n in self.framework.snapshot.nodes if n.name not in rejected)

    def reserve(self, who: PodInfo, on: str) -> Status | None:
        return self.plugin.reserve(self.state, who, on)

    async def run(self, work: object) -> Any:
        """Do the I/O that the plugin asks for."""
        return await done(self.framework, work)

    async def bind(self, who: PodInfo, on: str = "n1") -> Status | None:
        assert on in self.feasible(who)
        assert self.reserve(who, on) is None
        status: Status | None = await self.run(self.plugin.pre_bind(self.state, who, on))
        return status

    def post_filter(self, who: PodInfo) -> tuple[PostFilterResult | None, Status | None]:
        return self.plugin.post_filter(self.state, who, UNREAD)

    async def pre_bind(self, who: PodInfo, on: str = "n1", *, seconds: float = 1.0) -> Status | None:
        """To its end, while time goes on in steps."""
        result: list[Status | None] = []

        async def run() -> None:
            result.append(await self.run(self.plugin.pre_bind(self.state, who, on)))

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                while not result:
                    await self.clock.advance(seconds)
        return result[0]

    def claim(self, name: str = "claim") -> devices.ResourceClaim:
        found: devices.ResourceClaim | None = self.api.find(kinds.RESOURCE_CLAIM, name, "default")
        assert found is not None
        return found

    def writes(self) -> list[tuple[Any, ...]]:
        return [(request.verb.partition("/")[0], request.kind) for request in self.api.requests]


def user(name: str = "p", *claims: str) -> PodInfo:
    info = pod(name)
    for number, each in enumerate(claims or ("claim",)):
        using(info.pod, claim=each, name=f"c{number}")
    return info


def mine(**more: Any) -> devices.ResourceClaim:
    return claim("claim", uid="uid-claim", **more)


def allocated(node_name: str = "n1", *users: str, **more: Any) -> devices.ResourceClaim:
    reserved = [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users]
    status = {"allocation": allocation(("s1", "gpu-0"), node=node_name), "reservedFor": reserved, **more}
    return claim("claim", uid="uid-claim", status=status, finalizers=[FINALIZER])
