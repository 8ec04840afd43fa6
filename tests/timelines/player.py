"""Plays a recorded scenario on real processes and collects what becomes of its pods.

The player acts as the recording's user, kubelet stand-in and provisioner stand-in did. Before each step that
the recording did not do in one go with the last, it waits until everything that the recording saw before that
step has happened here too, and nothing else: order, not time.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio

from nominee.controllers.nodes.zones import EXCLUDED
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire.files import manifests
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS
from tests.timelines.recording import Change, Recording, Step, node_shapes, normalised

WAIT_SECONDS_MAX = PATIENCE_SECONDS
SETTLE_SECONDS = 0.3
"""How long nothing may change at the end: a change too many would come at once."""
VERSION = "1.36"
TRUSTED = (
    "--node-monitor-period", "200ms", "--node-monitor-grace-period", "1h",
    "--terminated-pod-gc-period", "200ms", "--pod-gc-quarantine", "500ms",
)  # fmt: skip
"""The controllers' options: no node is lost for being silent, however slow this machine is."""
DISTRUSTED = (*TRUSTED, "--node-monitor-grace-period", "1s")
"""Their options once a kubelet is to be missed; the recording waited for the default, 50 s."""
_COMPONENTS = {"kube-apiserver": "apiserver", "kube-scheduler": "scheduler"}
_BASICS = """
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: mid}, value: 500}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: wffc}
provisioner: example.com/none
volumeBindingMode: WaitForFirstConsumer
"""


class PodHistory:
    """The compared fields of every pod, as they changed."""

    def __init__(self, informer: Informer[core.Pod]) -> None:
        self.changes: dict[str, list[Change]] = {}
        self._now: dict[str, dict[str, str]] = {}
        informer.add_handler(on_add=self._saw, on_update=lambda _old, new: self._saw(new))

    def _saw(self, pod: core.Pod) -> None:
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        condition = get_condition(pod.status.conditions, "PodScheduled")
        scheduled = "" if condition is None else "/".join(filter(None, (condition.status, condition.reason)))
        seen = {
            "nominatedNodeName": pod.status.nominatedNodeName,
            "nodeName": pod.spec.nodeName,
            "PodScheduled": scheduled,
        }
        before = self._now.get(name, dict.fromkeys(seen, ""))
        self._now[name] = seen
        changes = self.changes.setdefault(name, [])
        changes.extend((field, value) for field, value in seen.items() if value != before[field])


def describe(changes: Mapping[str, list[Change]]) -> str:
    return "\n".join(
        f"  {pod}: " + ", ".join(f"{name}={value or 'none'}" for name, value in of_pod)
        for pod, of_pod in sorted(changes.items())
    )


class Player:
    """One run of one recording."""

    def __init__(self, recording: Recording, cluster: Cluster, client: Client) -> None:
        self.recording = recording
        self.cluster = cluster
        self.client = client
        self.shapes = node_shapes(recording)
        self.pods: Informer[core.Pod] = Informer(client, kinds.POD)
        self.claims: Informer[core.PersistentVolumeClaim] = Informer(client, kinds.PERSISTENT_VOLUME_CLAIM)
        self.nodes: Informer[core.Node] = Informer(client, kinds.NODE)
        self.history = PodHistory(self.pods)

    def _normalised(self, changes: Mapping[str, list[Change]]) -> dict[str, list[Change]]:
        return {pod: found for pod, found in normalised(changes, self.shapes).items() if found}

    async def play(self) -> tuple[dict[str, list[Change]], dict[str, list[Change]]]:
        """(expected, seen) changes, normalised."""
        async with anyio.create_task_group() as tasks:
            for informer in (self.pods, self.claims, self.nodes):
                tasks.start_soon(informer.run)
                await informer.wait_synced()
            for index, step in enumerate(self.recording.steps):
                if not self.recording.at_once[index]:
                    await self._wait_for(
                        self.recording.before[index], selected=self.recording.claims_selected[index]
                    )
                await self._do(step)
            await self._wait_for(self.recording.changes, selected=False)
            await anyio.sleep(SETTLE_SECONDS)  # not a wait for something: a look at what must not come
            tasks.cancel_scope.cancel()
        return self._normalised(self.recording.changes), self._normalised(self.history.changes)

    async def _wait_for(self, changes: Mapping[str, list[Change]], *, selected: bool) -> None:
        expected = self._normalised(changes)
        await eventually(
            lambda: self._normalised(self.history.changes) == expected and (not selected or self._selected()),
            limit_seconds=WAIT_SECONDS_MAX,
            explain=lambda: (
                f"{self.recording.name}: expected\n{describe(expected)}\nsaw\n"
                f"{describe(self._normalised(self.history.changes))}"
            ),
        )

    def _selected(self) -> bool:
        """Whether the claim's node is chosen and its provisioner named, as before every later step."""
        wanted = {"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner"}
        return any(wanted <= set(claim.metadata.annotations) for claim in self.claims.list())

    # --- steps ---

    async def _do(self, step: Step) -> None:
        if step.create is not None:
            await self._create(step.create)
        elif step.action.startswith("kill -9 scheduler"):
            self.cluster.kill("scheduler")
        elif step.action.startswith("start scheduler"):
            await self.cluster.start("scheduler")
        elif match := re.match(
            r"external client: PATCH status.nominatedNodeName=(\S+) on (\S+)", step.action
        ):
            patch = {"status": {"nominatedNodeName": match[1]}}
            await self.client.patch(kinds.POD, match[2], "default", patch, subresource="status")
        elif match := re.match(r"kubelet stand-in: (\S+) status Running", step.action):
            await self._set_phase(match[1], "Running")
        elif match := re.match(r"kubelet stand-in: (\S+) Succeeded, then DELETE", step.action):
            # A pod that has ended would go at once by the preemption's deletion.
            victim = match[1]
            await self._until(
                lambda: (p := self.pods.get(victim, "default")) is not None and is_terminating(p)
            )
            await self._set_phase(match[1], "Succeeded")
            await self.client.delete(kinds.POD, match[1], "default", grace_period_seconds=0)
        elif step.action.startswith("stand-in kubelet registers"):
            await self.cluster.start("kubelet-0")
            # A node begins tainted, not being ready: a pod made before that goes would be refused once.
            await self._until(
                lambda: bool(self.nodes.list()) and not any(node.spec.taints for node in self.nodes.list())
            )
            # Where no node is ready, none is tainted. The recorded cluster seems to have had another node: a
            # pod runs in it before h1 registers.
            excluded: dict[str, Any] = {"metadata": {"labels": {EXCLUDED: ""}}}
            await self.client.patch(kinds.NODE, "h1", "", excluded)
        elif step.action.startswith("stand-in kubelet killed"):
            self.cluster.kill("kubelet-0")
            self.cluster.kill("controllers")
            self.cluster.arguments("controllers", "--emulated-version", VERSION, *DISTRUSTED)
            await self.cluster.start("controllers")
        elif step.action.startswith("node deleted by user"):
            await self._until(lambda: all(p.metadata.HasField("deletionTimestamp") for p in self.pods.list()))
            await self.client.delete(kinds.NODE, "h1")
        elif step.action.startswith("pod gone"):
            await self._until(lambda: not self.pods.list())
        else:
            assert _OBSERVATION.match(step.action), f"no way to do: {step.action}"

    async def _until(self, condition: Any) -> None:
        await eventually(condition, limit_seconds=WAIT_SECONDS_MAX, explain=lambda: self.recording.name)

    async def _create(self, manifest: Mapping[str, Any]) -> None:
        data = json.loads(json.dumps(manifest))
        reference = data.get("spec", {}).get("claimRef")
        if reference is not None:
            await self._until(self._scheduler_waits_for_the_volume)
            claim = self.claims.get(reference["name"], reference["namespace"])
            assert claim is not None
            reference["uid"] = claim.metadata.uid
            reference["resourceVersion"] = claim.metadata.resourceVersion
            _tie_to(data, claim.metadata.annotations["volume.kubernetes.io/selected-node"])
        obj = manifests.parse_object(data)
        await self.client.create(obj)
        if isinstance(obj, core.Node):
            # A node takes pods once its registration taint is gone, as it was in the recording.
            name = obj.metadata.name
            await self._until(lambda: (node := self.nodes.get(name)) is not None and not _registering(node))

    def _scheduler_waits_for_the_volume(self) -> bool:
        """Whether this scheduler has written to the claim: the recording left it seconds to do so."""
        points = json.loads(self.cluster.ask("scheduler", "/failpoints").body)
        return any(point["name"] == "scheduler.volumes.written" and point["hits"] for point in points)

    async def _set_phase(self, name: str, phase: str) -> None:
        status: dict[str, Any] = {"phase": phase}
        if phase == "Running":
            status["conditions"] = [{"type": "Ready", "status": "True"}]
        await self.client.patch(
            kinds.POD,
            name,
            "default",
            {"status": status},
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )


_OBSERVATION = re.compile(
    r"pod while waiting|provisioner stand-in: create PV|while down|after restart|bound to|user: |result |"
    r"held: |pod after node deletion"
)


def _tie_to(volume: dict[str, Any], node: str) -> None:
    """The provisioner makes the volume where it is asked to, which may be another of equal nodes here."""
    affinity = volume["spec"].get("nodeAffinity", {}).get("required", {})
    for term in affinity.get("nodeSelectorTerms", ()):
        for expression in term["matchExpressions"]:
            if expression["key"] == "kubernetes.io/hostname":
                expression["values"] = [node]


def _registering(node: core.Node) -> bool:
    return any(t.key == "node.kubernetes.io/not-ready" and t.effect == "NoSchedule" for t in node.spec.taints)


@contextlib.asynccontextmanager
async def prepared(recording: Recording, cluster: Cluster) -> AsyncIterator[Player]:
    """The control plane at 1.36 with the recording's gates; without the scheduler if it is started later."""
    for upstream, component in _COMPONENTS.items():
        gates = ",".join(f"{g}={str(v).lower()}" for g, v in recording.gates.get(upstream, {}).items())
        arguments = ["--emulated-version", VERSION] + (["--feature-gates", gates] if gates else [])
        cluster.arguments(component, *arguments)
    cluster.arguments("controllers", "--emulated-version", VERSION, *TRUSTED)
    cluster.arguments(
        "kubelet-0", "--emulated-version", VERSION, "--nodes", "1", "--node-name-prefix", "h",
        "--first-node", "1",
    )  # fmt: skip
    later = next((s for s in recording.steps if "start scheduler" in s.action or "kill -9" in s.action), None)
    starts_late = later is not None and "start" in later.action
    await cluster.start("etcd", "apiserver", "controllers", *([] if starts_late else ["scheduler"]))
    async with cluster.client() as client:
        for obj in manifests.parse_manifests(_BASICS):
            await client.create(obj)
        yield Player(recording, cluster, client)
