"""A cluster with the cloud, a kubelet that runs its instances, and an autoscaler with short delays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.wire.files.manifests import parse_manifests
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

T = TypeVar("T")
QUICK = (
    "--scan-interval=100ms",
    "--scale-down-unneeded-time=500ms",
    "--scale-down-delay-after-add=0s",
    "--scale-down-delay-after-failure=200ms",
    "--node-delete-delay-after-taint=100ms",
)
GROUPS = """
nodeGroups:
- {name: big, max: %(max)s, target: %(target)s, provisioningDelay: 100ms, template: {cpu: "4", memory: 16Gi}}
"""
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %(name)s, namespace: default}
spec:
  replicas: %(replicas)s
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata: {labels: {app: %(name)s}, annotations: %(annotations)s}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: app, resources: {requests: {cpu: "%(cpu)s", memory: 64Mi}}}]
"""
SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {preBind: {enabled: [{name: SlowPreBind}]}}
"""


@dataclass
class Lab:
    """The running cluster."""

    cluster: Cluster
    client: Client

    async def apply(self, text: str) -> None:
        for obj in parse_manifests(text, strict=True):
            made: Any = obj
            await self.client.create(made)

    async def replica_set(self, name: str, cpu: str, *, replicas: int = 1, annotations: str = "{}") -> None:
        await self.apply(
            REPLICA_SET % {"name": name, "cpu": cpu, "replicas": replicas, "annotations": annotations}
        )

    async def nodes(self) -> list[core.Node]:
        return (await self.client.list(kinds.NODE)).items

    async def pods(self) -> list[core.Pod]:
        return (await self.client.list(kinds.POD, "default")).items

    async def wait_nodes(self, what: str, condition: Callable[[list[core.Node]], bool]) -> list[core.Node]:
        """Wait until the condition holds for the nodes; return them."""
        return await self._wait(what, self.nodes, condition)

    async def wait_pods(self, what: str, condition: Callable[[list[core.Pod]], bool]) -> list[core.Pod]:
        """Wait until the condition holds for the pods of the default namespace; return them."""
        return await self._wait(what, self.pods, condition)

    async def wait_events(self, what: str, condition: Callable[[list[core.Event]], bool]) -> list[core.Event]:
        """Wait until the condition holds for all events; return them."""

        async def events() -> list[core.Event]:
            return (await self.client.list(kinds.EVENT)).items

        return await self._wait(what, events, condition)

    async def wait_status(self, what: str, condition: Callable[[str], bool]) -> str:
        """Wait until the condition holds for the status in the ConfigMap; return it."""

        async def status() -> str:
            config_maps = (await self.client.list(kinds.CONFIG_MAP, "kube-system")).items
            named = (m for m in config_maps if m.metadata.name.startswith("cluster-auto"))
            return next((m.data["status"] for m in named), "")

        return await self._wait(what, status, condition)

    async def _wait(self, what: str, look: Callable[[], Awaitable[T]], condition: Callable[[T], bool]) -> T:
        return await eventually(look, condition, explain=lambda: f"{what}\n{self.loop()}")

    def loop(self) -> dict[str, Any]:
        """Return the answer of /debug/loop."""
        document: dict[str, Any] = json.loads(self.cluster.ask("autoscaler", "/debug/loop").body)
        return document

    def metrics(self) -> str:
        """Return the autoscaler's metrics as text."""
        return self.cluster.ask("autoscaler", "/metrics").text

    def loops(self) -> int:
        """Return the number of loops so far."""
        name = 'cluster_autoscaler_function_duration_seconds_count{function="main"} '
        values = (line.removeprefix(name) for line in self.metrics().splitlines() if line.startswith(name))
        return int(float(next(values, "0")))

    async def stays_for(self, name: str, reason: str) -> None:
        """Wait until the autoscaler has this reason why a node cannot be removed.

        A loop that has not seen the newest pods yet has another one.
        """
        await eventually(
            lambda: str(self.loop()["unremovable"].get(name, "")),
            lambda found: reason in found,
            explain=self.loop,
        )

    def failpoint(self, component: str, name: str, action: str) -> None:
        self.cluster.failpoint(component, name, action)


@asynccontextmanager
async def lab(
    cluster: Cluster, *arguments: str, groups: int = 3, target: int = 0, autoscaler: bool = True
) -> AsyncIterator[Lab]:
    """Start a lab with one node group of at most `groups` instances."""
    file = cluster.directory / "groups.yaml"
    file.write_text(GROUPS % {"max": groups, "target": target}, encoding="utf-8")
    config = cluster.directory / "scheduler.yaml"
    config.write_text(SCHEDULER, encoding="utf-8")
    cluster.arguments("cloud", "--node-groups", str(file))
    cluster.arguments("kubelet-0", "--nodes", "0", "--cloud")
    plugin = "nominee.lab.demo_plugins:SlowPreBind"
    cluster.arguments("scheduler", "--config", str(config), "--plugin", plugin)
    cluster.arguments("autoscaler", *QUICK, *arguments)
    await cluster.start("etcd", "apiserver", "scheduler", "controllers", "cloud", "kubelet-0")
    async with cluster.client() as client:
        it = Lab(cluster, client)
        await it.wait_nodes("the instances are nodes", lambda nodes: usable(nodes) == target)
        if autoscaler:
            await cluster.start("autoscaler")
        yield it


def usable(nodes: list[core.Node]) -> int:
    """Return the number of nodes that accept pods."""
    return sum(
        condition_is(node.status.conditions, "Ready")
        and all(taint.effect == "PreferNoSchedule" for taint in node.spec.taints)
        for node in nodes
    )
