"""Preemption for a deferred resize (KEP-5836, story 3): the victim's replacement brings a node.

With the node policy set, the resize evicts no pod and the autoscaler adds no node.
"""

from __future__ import annotations

from machinery.api import kinds
from machinery.api.objects import get_condition, is_terminating
from machinery.api.pb import core
from machinery.resources import quantity
from nominee.demo.machines import Machines, nodes_of
from nominee.demo.stage import NAMESPACE, Stage

GROUP = "demo-growing"
OWNER = "demo.nominee.dev/operator"
_BATCH, _GROWER = "batch", "grower"
_SCAN_SECONDS = 0.2
_AUTOSCALER = (f"--scan-interval={_SCAN_SECONDS:g}s", "--scale-down-enabled=false")
_LOOPS_WITHOUT_SCALE_UP = 10
_OBJECTS = f"""
{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: demo-low}}, value: 100}}
---
{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: demo-high}}, value: 1000}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {_GROWER}}}
spec:
  priorityClassName: demo-high
  terminationGracePeriodSeconds: 1
  nodeSelector: {{nominee.dev/node-group: {GROUP}}}
  containers:
  - {{name: c, image: app, resources: {{requests: {{cpu: 1500m, memory: 256Mi}}}}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {_BATCH}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {_BATCH}}}}}
  template:
    metadata: {{labels: {{app: {_BATCH}}}, annotations: {{nominee.dev/stop-delay: 500ms}}}}
    spec:
      priorityClassName: demo-low
      terminationGracePeriodSeconds: 1
      nodeSelector: {{nominee.dev/node-group: {GROUP}}}
      containers:
      - {{name: c, image: app, resources: {{requests: {{cpu: "2", memory: 256Mi}}}}}}
"""


def _actual(pod: core.Pod) -> int:
    """Return the cpu of the running container in milli-units; 0 if the status has none yet."""
    if not pod.status.containerStatuses:
        return 0
    requests = pod.status.containerStatuses[0].resources.requests
    return quantity.milli(requests["cpu"]) if "cpu" in requests else 0


def _batch(stage: Stage) -> core.Pod | None:
    """Return the pod of the ReplicaSet that is not terminating."""
    for pod in stage.pods.list(NAMESPACE):
        if pod.metadata.labels.get("app") == _BATCH and not is_terminating(pod):
            return pod
    return None


async def play(stage: Stage, *, has_policy: bool) -> None:
    """Grow a pod from 1500m to 3 cpu on a node of 4 cpu, beside a ReplicaSet's pod of 2 cpu."""
    machines = Machines(stage)
    node = (await machines.order(GROUP))[0].metadata.name
    await stage.apply(_OBJECTS)
    await stage.until_runs(_GROWER)
    first = await stage.until(f"the pod of {_BATCH} exists", lambda: _batch(stage))
    await stage.until_runs(first.metadata.name)
    await stage.until(f"{_GROWER} has 1500m", lambda: _actual(stage.pod(_GROWER)) == 1500)
    await stage.start("autoscaler", *_AUTOSCALER)
    await stage.until("the autoscaler has run a loop", lambda: _loop(stage))
    if has_policy:
        stage.narrator.act(f"{OWNER} disables preemption for resizes on {node} (spec.podPreemptionPolicy)")
        patch = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": [OWNER]}}}
        await stage.client.patch(kinds.NODE, node, "", patch)
    stage.narrator.act(
        f"pod '{_GROWER}' of high priority is resized from 1500m to 3 cpu; the node has 4, '{_BATCH}' uses 2"
    )
    resize = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}
    await stage.client.patch(kinds.POD, _GROWER, NAMESPACE, resize, subresource="resize")
    if has_policy:
        await _nothing_is_evicted(stage, first)
    else:
        await _replacement_brings_a_node(stage, first, node)
    await stage.stop("autoscaler")
    await stage.clear()
    for name in ("demo-low", "demo-high"):
        await stage.delete(kinds.PRIORITY_CLASS, name)
    await machines.give_back(GROUP)


async def _loop(stage: Stage) -> str:
    """Return when the autoscaler's last loop was; "" before the first."""
    return str((await stage.autoscaler_loop())["at"])


async def _replacement_brings_a_node(stage: Stage, victim: core.Pod, node: str) -> None:
    name = victim.metadata.name

    def marked() -> core.PodCondition | None:
        pod = stage.pods.get(name, NAMESPACE)
        return get_condition(pod.status.conditions, "DisruptionTarget") if pod is not None else None

    condition = await stage.until(f"{name} is preempted", marked)
    stage.check(
        condition.reason == "PreemptionByScheduler",
        f"the scheduler preempts {name} for the deferred resize (DisruptionTarget/PreemptionByScheduler)",
    )
    await stage.until(f"{_GROWER} has 3 cpu", lambda: _actual(stage.pod(_GROWER)) == 3000)
    grower = stage.pod(_GROWER)
    stage.check(
        grower.spec.nodeName == node and not grower.status.containerStatuses[0].restartCount,
        f"'{_GROWER}' has 3 cpu on {node}, without a restart",
    )
    replacement = await stage.until("a replacement exists", lambda: _batch(stage))
    added = await stage.until(
        "the autoscaler adds a node",
        lambda: [one for one in nodes_of(stage, GROUP) if one.metadata.name != node],
    )
    name = replacement.metadata.name
    stage.narrator.held(f"the replacement {name} fits nowhere: the autoscaler adds a node")
    await stage.until_runs(name)
    stage.check(
        stage.pod(name).spec.nodeName == added[0].metadata.name,
        f"the replacement runs on the added node {added[0].metadata.name}",
    )


async def _nothing_is_evicted(stage: Stage, neighbour: core.Pod) -> None:
    def disabled() -> core.PodCondition | None:
        return get_condition(stage.pod(_GROWER).status.conditions, "PodResizePreemptionDisabled")

    condition = await stage.until("the kubelet reports that preemption is disabled", disabled)
    stage.check(
        condition.status == "True" and condition.reason == "PreemptionDisabledByNodePolicy",
        "the kubelet defers the resize: PodResizePreemptionDisabled/PreemptionDisabledByNodePolicy",
    )
    pending = get_condition(stage.pod(_GROWER).status.conditions, "PodResizePending")
    stage.check(
        pending is not None and pending.reason == "Deferred", "the resize is PodResizePending/Deferred"
    )
    name = neighbour.metadata.name
    await stage.stays(
        f"{name} runs on and no node is added, for the time of {_LOOPS_WITHOUT_SCALE_UP} loops",
        lambda: not is_terminating(stage.pod(name)) and len(nodes_of(stage, GROUP)) == 1,
        _LOOPS_WITHOUT_SCALE_UP * _SCAN_SECONDS,
    )
