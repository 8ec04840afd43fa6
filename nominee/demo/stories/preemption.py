"""Preemption: a high-priority pod evicts the right victim, waits for it, and is not overtaken."""

from __future__ import annotations

from machinery.api import kinds
from machinery.api.objects import get_condition, is_terminating
from nominee.demo.machines import Machines
from nominee.demo.stage import Stage

GROUP, OTHER = "demo-preemption", "demo-small"
STOP_SECONDS = 2
_CLASSES = """
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: demo-low}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: demo-middle}, value: 500}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: demo-high}, value: 1000}
"""


def _pod(name: str, cpu: str, priority: str) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{nominee.dev/stop-delay: {STOP_SECONDS}s}}}}
spec:
  priorityClassName: demo-{priority}
  terminationGracePeriodSeconds: {2 * STOP_SECONDS}
  nodeSelector: {{nominee.dev/node-group: {GROUP}}}
  containers:
  - {{name: c, image: app, resources: {{requests: {{cpu: "{cpu}", memory: 256Mi}}}}}}
"""


async def play(stage: Stage) -> None:
    """Fill a node, create a pod of high priority, then one of lower priority; check victim and order."""
    machines = Machines(stage)
    node = (await machines.order(GROUP))[0].metadata.name
    await machines.order(OTHER)
    await stage.apply(_CLASSES)
    stage.narrator.act("two pods fill the one node that fits: 'low' (2 cpu) and 'middle' (1500m)")
    await stage.apply(_pod("low", "2", "low"))
    await stage.apply(_pod("middle", "1500m", "middle"))
    for name in ("low", "middle"):
        await stage.until_runs(name)
    stage.narrator.act("pod 'high' requests 2 cpu")
    await stage.apply(_pod("high", "2", "high"))
    await stage.until("high is nominated", lambda: stage.pod("high").status.nominatedNodeName)
    await stage.until("low is terminating", lambda: is_terminating(stage.pod("low")))
    low, high = stage.pod("low"), stage.pod("high")
    disrupted = get_condition(low.status.conditions, "DisruptionTarget")
    stage.check(
        disrupted is not None and disrupted.reason == "PreemptionByScheduler",
        "the victim is 'low', marked DisruptionTarget/PreemptionByScheduler",
    )
    stage.check(not is_terminating(stage.pod("middle")), "'middle' is spared: one victim is enough")
    stage.check(
        high.status.nominatedNodeName == node and not high.spec.nodeName,
        f"'high' waits while 'low' takes its {STOP_SECONDS} s to stop, with nominatedNodeName={node}",
    )
    stage.narrator.act(
        "pod 'thief' of lower priority requests 600m: more than is free now, less than will be free"
    )
    await stage.apply(_pod("thief", "600m", "low"))
    await stage.until("high is bound", lambda: stage.pod("high").spec.nodeName)
    stage.check(stage.pod("high").spec.nodeName == node, f"'high' is bound to the nominated node {node}")
    stage.check(not stage.pod("high").status.nominatedNodeName, "nominatedNodeName is cleared by the binding")
    stage.check(stage.pods.get("low", "default") is None or is_terminating(stage.pod("low")), "'low' left")
    await stage.stays("'thief' did not overtake it", lambda: not stage.pod("thief").spec.nodeName, 0.5)
    await stage.clear()
    for name in ("demo-low", "demo-middle", "demo-high"):
        await stage.delete(kinds.PRIORITY_CLASS, name)
    await machines.give_back(GROUP)
    await machines.give_back(OTHER)
