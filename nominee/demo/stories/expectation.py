"""KEP-5278, story 1: the autoscaler and a pod whose binding takes long.

Two pods of ReplicaSets wait in PreBind. One requests more than half of its node, the other one a quarter. The
autoscaler runs meanwhile. Up to 1.35 it does not see the pods and deletes both nodes. 1.36 counts them as
load, which keeps only the first node (kubernetes/kubernetes#125491 and hole H1 of docs/design). `fixed` keeps
both nodes.

The first pod waits for a slow claim, the second one for a plugin. A claim with a selected node also pins its
pod in the autoscaler's simulation; 1.36 would find no other node for that pod and keep the node.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from machinery.api import kinds
from machinery.api.objects import get_condition
from machinery.api.pb import core
from nominee.demo.machines import Machines, nodes_of
from nominee.demo.plugins import DELAY
from nominee.demo.stage import NAMESPACE, Stage

HALF, QUARTER, SPARE = "demo-half", "demo-quarter", "demo-spare"
UNNEEDED_SECONDS = 1.0
_CLAIM_DELAY = "nominee.dev/provisioning-delay"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_LOOP = "autoscaler.loop.before"
_AUTOSCALER = (
    f"--failpoints={_LOOP}=pause",
    "--scan-interval=200ms",
    f"--scale-down-unneeded-time={UNNEEDED_SECONDS:g}s",
    "--scale-down-delay-after-add=0s",
    "--scale-down-delay-after-delete=0s",
    "--node-delete-delay-after-taint=200ms",
)
_CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: delayed.nominee.dev
parameters: {delay: 1h}
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
"""
_CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %(name)s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: slow
  resources: {requests: {storage: 1Gi}}
---
"""
_WORKLOAD = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: %(name)s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata:
      labels: {app: %(name)s}
      annotations: %(annotations)s
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: nominee.dev/node-group, operator: In, values: [%(group)s, demo-spare]}
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            preference:
              matchExpressions: [{key: nominee.dev/node-group, operator: In, values: [%(group)s]}]
      containers:
      - {name: c, image: app, resources: {requests: {cpu: "%(cpu)s", memory: 512Mi}}}
      volumes: %(volumes)s
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """One of the two pods: its node group, what its binding waits for, and whether its node is kept."""

    name: str
    group: str
    cpu: str
    has_claim: bool
    node_stays: bool

    @property
    def manifests(self) -> str:
        """Return the ReplicaSet, and the claim if the pod waits for one."""
        values = {
            "name": self.name,
            "group": self.group,
            "cpu": self.cpu,
            "annotations": "{}" if self.has_claim else f"{{{DELAY}: 1h}}",
            "volumes": (
                f"[{{name: data, persistentVolumeClaim: {{claimName: {self.name}}}}}]"
                if self.has_claim
                else "[]"
            ),
        }
        return (_CLAIM if self.has_claim else "") % values + _WORKLOAD % values

    @property
    def why_stays(self) -> str:
        """Part of the autoscaler's reason to keep the node: it is in use, or it is reserved for the pod."""
        return "NotUnderutilized" if self.has_claim else "PodBinding"

    @property
    def waits_for(self) -> str:
        return "a claim" if self.has_claim else "a plugin before binding"


async def play(stage: Stage, compat: str) -> None:
    """Run the story once with the autoscaler as in 1.35, as in 1.36, or `fixed`."""
    workloads = [
        Workload("half", HALF, "2500m", has_claim=True, node_stays=compat != "1.35"),
        Workload("quarter", QUARTER, "1", has_claim=False, node_stays=compat == "fixed"),
    ]
    machines = Machines(stage)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(machines.order_all, [w.group for w in workloads if not nodes_of(stage, w.group)])
        # The autoscaler must not run yet: the nodes are empty until the pods are nominated.
        tasks.start_soon(stage.start, "autoscaler", f"--compat={compat}", *_AUTOSCALER)
    for workload in workloads:
        what = f"{workload.cpu} of 4 cpu, {workload.waits_for} that takes an hour"
        stage.narrator.act(f"replica set {workload.name}: 1 pod, {what}")
        await stage.apply(workload.manifests)
    nodes = {workload.name: await _nominated(stage, workload) for workload in workloads}
    stage.narrator.act(
        f"the autoscaler starts its loop, --compat={compat}, unneeded time {UNNEEDED_SECONDS:g} s"
    )
    await stage.failpoint("autoscaler", _LOOP, "off")
    for workload in workloads:
        if not workload.node_stays:
            await _deleted_under_the_pod(stage, workload, nodes[workload.name])
    for workload in workloads:
        if workload.node_stays:
            await _autoscaler_explains(stage, workload, nodes[workload.name])
    if staying := [nodes[workload.name] for workload in workloads if workload.node_stays]:
        await stage.stays(
            f"{' and '.join(staying)} stayed past the unneeded time",
            lambda: all(stage.nodes.get(node) is not None for node in staying),
            1.5 * UNNEEDED_SECONDS,
        )
    for workload in workloads:
        if not workload.node_stays:
            await _given_up(stage, workload, nodes[workload.name])
        await _have_it_done(stage, workload)
    for workload in workloads:
        if workload.node_stays:
            await _binds_there(stage, workload, nodes[workload.name])
        else:
            await _goes_elsewhere(stage, workload, nodes[workload.name])
    await stage.stop("autoscaler")
    await stage.clear()


async def prepare(stage: Stage) -> None:
    """Create the slow storage class, and a node that the autoscaler may not delete."""
    await stage.apply(_CLASS)
    await Machines(stage).order(SPARE)


async def _nominated(stage: Stage, workload: Workload) -> str:
    def nominated() -> core.Pod | None:
        pod = stage.pod_of(workload.name)
        return pod if pod is not None and pod.status.nominatedNodeName else None

    pod = await stage.until(f"the pod of {workload.name} is nominated", nominated)
    assert pod is not None
    name: str = pod.metadata.name
    node: str = pod.status.nominatedNodeName
    stage.check(
        get_condition(pod.status.conditions, "PodScheduled") is None and not pod.spec.nodeName,
        f"{name} waits in PreBind: nominated to {node}, no PodScheduled condition, not bound",
    )
    return node


async def _deleted_under_the_pod(stage: Stage, workload: Workload, node: str) -> None:
    pod = stage.pod_of(workload.name)
    assert pod is not None
    await stage.until(f"{node} is deleted", lambda: stage.nodes.get(node) is None)
    stage.check(
        not stage.pod(pod.metadata.name).spec.nodeName,
        f"node {node} was deleted under {pod.metadata.name}, which was being bound to it",
    )


async def _goes_elsewhere(stage: Stage, workload: Workload, node: str) -> None:
    pod = stage.pod_of(workload.name)
    assert pod is not None
    name = pod.metadata.name
    await stage.until(f"{name} is bound", lambda: stage.pod(name).spec.nodeName)
    bound = stage.pod(name).spec.nodeName
    stage.check(bound != node, f"{name} was scheduled again, to {bound}: all the work is done twice")


async def _given_up(stage: Stage, workload: Workload, node: str) -> None:
    """Wait until the scheduler and the provisioner have seen that the node is gone."""
    pod = stage.pod_of(workload.name)
    assert pod is not None
    name = pod.metadata.name
    if workload.has_claim:
        await _claim_is_given_up(stage, workload, node)
    await stage.until(
        f"{name} is no longer nominated to the deleted node",
        lambda: stage.pod(name).status.nominatedNodeName != node,
    )


async def _claim_is_given_up(stage: Stage, workload: Workload, node: str) -> None:
    def given_up() -> bool:
        claim = stage.claims.get(workload.name, "default")
        return claim is not None and claim.metadata.annotations.get(_SELECTED_NODE) != node

    await stage.until(f"claim {workload.name} is released", given_up)
    stage.narrator.held(f"the provisioner released claim {workload.name}: {node} is gone")


async def _have_it_done(stage: Stage, workload: Workload) -> None:
    """Let the binding finish at once."""
    pod = stage.pod_of(workload.name)
    assert pod is not None
    stage.narrator.act(f"{workload.waits_for} of {workload.name} is done now")
    if workload.has_claim:
        kind, name, annotation = kinds.PERSISTENT_VOLUME_CLAIM, workload.name, _CLAIM_DELAY
        await stage.client.patch(kind, name, NAMESPACE, {"metadata": {"annotations": {annotation: "0s"}}})
    else:
        done = {"metadata": {"annotations": {DELAY: "0s"}}}
        await stage.client.patch(kinds.POD, pod.metadata.name, NAMESPACE, done)


async def _autoscaler_explains(stage: Stage, workload: Workload, node: str) -> None:
    async def reason() -> str:
        return str((await stage.autoscaler_loop())["unremovable"].get(node, ""))

    why = await stage.until(f"the autoscaler reports why {node} stays", reason)
    stage.check(workload.why_stays in why, f"the autoscaler keeps {node}: {why}")


async def _binds_there(stage: Stage, workload: Workload, node: str) -> None:
    pod = stage.pod_of(workload.name)
    assert pod is not None
    name = pod.metadata.name
    await stage.until(f"{name} is bound", lambda: stage.pod(name).spec.nodeName)
    bound = stage.pod(name)
    stage.check(
        stage.nodes.get(node) is not None and bound.spec.nodeName == node,
        f"node {node} stayed while {name} was bound to it",
    )
    stage.check(not bound.status.nominatedNodeName, f"nominatedNodeName of {name} is cleared")
    if not workload.has_claim:
        return
    await stage.until(
        f"the claim of {workload.name} has one volume",
        lambda: [v.spec.claimRef.name for v in stage.volumes.list()].count(workload.name) == 1,
    )


async def close(stage: Stage) -> None:
    """Delete the instances."""
    await Machines(stage).give_back_all((HALF, QUARTER, SPARE))
    await stage.delete(kinds.STORAGE_CLASS, "slow")
