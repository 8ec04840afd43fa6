"""In-place resize: a running pod grows, is deferred while its node is full, and goes on without a restart."""

from __future__ import annotations

from machinery.api import kinds
from machinery.api.objects import get_condition
from machinery.api.pb import core
from machinery.resources import quantity
from nominee.demo.machines import Machines
from nominee.demo.stage import NAMESPACE, Stage

GROUP = "demo-resize"


def _pod(name: str, cpu: str) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{nominee.dev/stop-delay: 500ms}}}}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {{nominee.dev/node-group: {GROUP}}}
  containers:
  - {{name: c, image: app, resources: {{requests: {{cpu: "{cpu}", memory: 256Mi}}}}}}
"""


def _container(pod: core.Pod) -> core.ContainerStatus:
    return pod.status.containerStatuses[0]


def _actual(pod: core.Pod) -> int:
    """Return the cpu of the running container in milli-units; 0 if the status has none yet."""
    if not pod.status.containerStatuses:
        return 0
    requests = _container(pod).resources.requests
    return quantity.milli(requests["cpu"]) if "cpu" in requests else 0


async def _resize(stage: Stage, name: str, cpu: str) -> None:
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    await stage.client.patch(kinds.POD, name, NAMESPACE, patch, subresource="resize")


async def play(stage: Stage) -> None:
    """Resize a pod on a node of 4 cpu: from 1 to 1500m, then to 3 beside a pod of 2."""
    machines = Machines(stage)
    await machines.order(GROUP)
    await stage.apply(_pod("grower", "1"))
    await stage.apply(_pod("neighbour", "2"))
    for name in ("grower", "neighbour"):
        await stage.until_runs(name)
    await stage.until(
        "the kubelet reports the resources of grower", lambda: _actual(stage.pod("grower")) == 1000
    )
    before = _container(stage.pod("grower"))
    generation = stage.pod("grower").metadata.generation
    stage.narrator.act("pod 'grower' is resized from 1 cpu to 1500m, which fits")
    await _resize(stage, "grower", "1500m")
    await stage.until("it has 1500m", lambda: _actual(stage.pod("grower")) == 1500)
    stage.check(
        stage.pod("grower").metadata.generation == generation + 1,
        "it has 1500m cpu; metadata.generation increased by one",
    )
    stage.narrator.act("it is resized to 3 cpu; the node has 4, another pod uses 2")
    await _resize(stage, "grower", "3")
    await stage.until("it is deferred", lambda: _pending(stage.pod("grower")) == "Deferred")
    pod = stage.pod("grower")
    stage.check(_actual(pod) == 1500, "PodResizePending/Deferred: it keeps 1500m until there is room")
    allocated = quantity.milli(_container(pod).allocatedResources["cpu"])
    stage.check(allocated == 1500, "status.allocatedResources says 1500m")
    stage.narrator.act("the other pod is deleted")
    await stage.delete(kinds.POD, "neighbour")
    await stage.until("it has 3 cpu", lambda: _actual(stage.pod("grower")) == 3000)
    after = stage.pod("grower")
    stage.check(not _pending(after), "the deferred resize was completed when the other pod had terminated")
    stage.check(
        _container(after).containerID == before.containerID
        and _container(after).restartCount == before.restartCount,
        "without a restart: the same container, restartCount unchanged",
    )
    await stage.clear()
    await machines.give_back(GROUP)


def _pending(pod: core.Pod) -> str:
    condition = get_condition(pod.status.conditions, "PodResizePending")
    return condition.reason if condition is not None else ""
