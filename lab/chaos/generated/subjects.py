"""The subjects of generated scenarios: each draws objects, and steps about them in order. No I/O.

A subject must not need that a step succeeds: others have taken the room, or the steps before were left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.chaos.generated.manifests import (
    Document,
    absence,
    apply,
    budget,
    delete,
    manifest,
    options_of,
    patch,
    pod_spec,
    ready,
    resize,
    scale,
    wait,
    workload,
)
from nominee.machinery.wire.values.scalars import Json

CPUS = ("500m", "1", "1500m", "2", "3")
PRIORITIES = ("", "", "low", "high")
POOL = "pool"
RESIZE_GATE, GANG_GATE = "InPlacePodVerticalScalingSchedulerPreemption", "GenericWorkload"
Steps = list[Json]


@dataclass(slots=True)
class Draw:
    """The generator of random numbers, the nodes that exist from the start, and the names in use."""

    rng: random.Random
    nodes: Sequence[str]
    _count: dict[str, int] = field(default_factory=dict)

    def name(self, prefix: str) -> str:
        """Return a name that no other object has."""
        number = self._count[prefix] = self._count.get(prefix, 0) + 1
        return prefix if number == 1 else f"{prefix}-{number}"

    def is_so(self, share: float) -> bool:
        """Return true in this share of cases."""
        return self.rng.random() < share

    def some(self, changes: Sequence[Steps], low: int, high: int) -> Steps:
        """Return the steps of some of these changes, in any order."""
        count = min(self.rng.randint(low, high), len(changes))
        return [step for change in self.rng.sample(changes, count) for step in change]

    def spec(self, cpu: str = "") -> Document:
        """Return the spec of a pod of any priority that asks for this cpu, or for any."""
        rest: Document = {"terminationGracePeriodSeconds": self.rng.choice((0, 1, 3))}
        if priority := self.rng.choice(PRIORITIES):
            rest["priorityClassName"] = priority
        return pod_spec(cpu or self.rng.choice(CPUS), **rest)

    def pod(self, name: str, spec: Json, namespace: str = "") -> Json:
        """Return a pod that may take time to start and to stop."""
        made = manifest("Pod", name, namespace, {"app": name}, spec=spec)
        delays = {each: self.rng.choice(("500ms", "2s")) for each in ("start", "stop") if self.is_so(0.3)}
        if delays:
            made["metadata"]["annotations"] = {f"nominee.dev/{each}-delay": delays[each] for each in delays}
        return made


def pods(draw: Draw) -> Steps:
    """Create pods; delete one and create another one by its name."""
    first, second = draw.name("pod"), draw.name("pod")
    again = [
        delete("Pod", first, gracePeriodSeconds=0) if draw.is_so(0.5) else delete("Pod", first),
        *([absence(first)] if draw.is_so(0.8) else []),
        apply(draw.pod(first, draw.spec())),
    ]
    gated = draw.spec() | {"schedulingGates": [{"name": "example.com/later"}]}
    third = draw.name("gated")
    opened = patch("Pod", third, {"spec": {"schedulingGates": []}}, type="merge")
    changes = [
        again,
        [apply(draw.pod(third, gated)), opened],
        [patch("Pod", second, {"metadata": {"labels": {"changed": "true"}}})],
        [delete("Pod", second), ready(2, first)],
    ]
    start = [apply(*(draw.pod(each, draw.spec()) for each in (first, second))), ready(2, first)]
    return start + draw.some(changes, 2, 4)


def preemption(draw: Draw) -> Steps:
    """Create a pod that preempts others, and pods that compete for the room; delete it while it waits."""
    high, behind = draw.name("high"), draw.name("behind")
    spec = pod_spec(draw.rng.choice(("3", "4")), priorityClassName="high")
    nominated = wait(2, "Pod", name=high, jsonPath={".status.nominatedNodeName": {"present": True}})
    changes = [
        [nominated, delete("Pod", high)],
        [
            apply(draw.pod(behind, draw.spec("1"))),
            wait(2, "Pod", name=behind, condition="PodScheduled=False"),
        ],
        [patch("Pod", high, {"metadata": {"labels": {"changed": "true"}}})],
        [absence(high, 1), apply(draw.pod(high, spec))],
        [delete("Pod", behind)],
    ]
    victim = draw.pod(draw.name("victim"), draw.spec("2") | {"priorityClassName": "low"})
    return [apply(victim), apply(draw.pod(high, spec)), *draw.some(changes, 2, 5)]


def nomination(draw: Draw) -> Steps:
    """Nominate a pending pod to a node, as another component would."""
    pod, rival = draw.name("nominee"), draw.name("rival")
    node = draw.rng.choice(draw.nodes)

    def nominate(to: str) -> Json:
        return patch("Pod", pod, {"status": {"nominatedNodeName": to}}, type="merge", subresource="status")

    changes = [
        [nominate(draw.rng.choice(draw.nodes))],
        [nominate("")],
        [delete("Pod", pod), absence(pod), apply(draw.pod(pod, draw.spec("1")))],
        [apply(draw.pod(rival, draw.spec("3")))],
        [patch("Node", node, {"metadata": {"labels": {"zone": "a"}}})],
    ]
    waits = draw.spec(draw.rng.choice(("1", "2"))) | {"nodeSelector": {"zone": "a"}}
    start = [apply(draw.pod(pod, waits)), wait(2, "Pod", name=pod, condition="PodScheduled=False")]
    return [*start, nominate(node), *draw.some(changes, 2, 4)]


def placement(draw: Draw) -> Steps:
    """Create pods that wait for a label, the end of a taint, or the end of another pod."""
    node, app = draw.rng.choice(draw.nodes), draw.name("apart")
    same = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [same]}}
    spread = [
        {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **same},
    ]
    rule = {"affinity": apart} if draw.is_so(0.5) else {"topologySpreadConstraints": spread}
    many = workload("ReplicaSet", app, len(draw.nodes) + 1, pod_spec("100m", **rule))
    taint = [{"key": "example.com/busy", "value": "true", "effect": "NoSchedule"}]
    picky = draw.name("picky")
    changes = [
        [patch("Node", node, {"spec": {"taints": taint}}), patch("Node", node, {"spec": {"taints": None}})],
        [{"delete": {"kind": "Pod", "selector": f"app={app}", "gracePeriodSeconds": 0}}],
        [scale("ReplicaSet", app, 1)],
        [
            apply(draw.pod(picky, draw.spec("500m") | {"nodeSelector": {"disk": "fast"}})),
            wait(2, "Pod", name=picky, condition="PodScheduled=False"),
            patch("Node", node, {"metadata": {"labels": {"disk": "fast"}}}),
        ],
    ]
    start = [apply(many), wait(2, "Pod", selector=f"app={app}", condition="PodScheduled=False")]
    return start + draw.some(changes, 2, 4)


def rollout(draw: Draw) -> Steps:
    """Scale, roll, evict and delete a ReplicaSet or Deployment with a budget and a service."""
    rng, kind, name = draw.rng, draw.rng.choice(("ReplicaSet", "Deployment")), draw.name("web")
    service = manifest("Service", name, spec={"selector": {"app": name}, "ports": [{"port": 80}]})
    made = workload(kind, name, rng.randint(1, 3), draw.spec("500m"))
    selector = f"app={name}"
    changes = [
        [scale(kind, name, rng.randint(0, 4))],
        [scale(kind, name, rng.randint(0, 4)), wait(1, kind, name=name)],
        [patch(kind, name, {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})],
        [wait(2, "Pod", selector=f"{selector},version=2", condition="Ready=True")],
        [{"delete": {"kind": "Pod", "selector": selector}}],
        [{"delete": {"kind": "Pod", "selector": selector, "gracePeriodSeconds": 0}}],
        [delete(kind, name), apply(made)],
        [delete(kind, name), wait(4, "Pod", selector=selector, exists=False), apply(made)],
        [apply(budget(name, minAvailable=2))],
        [
            {
                "patch": {
                    "kind": "Pod",
                    "selector": selector,
                    "patch": {"metadata": {"labels": {"app": "other"}}},
                }
            }
        ],
        [delete("Service", name), apply(service)],
    ]
    start = apply(budget(name, maxUnavailable=1), service, made)
    return [start, wait(2, "Pod", selector=selector, condition="Ready=True"), *draw.some(changes, 3, 6)]


def drains(draw: Draw) -> Steps:
    """Drain nodes, at the same time or one after another, and make them schedulable again."""
    changes: Steps = []
    nodes = draw.rng.sample(list(draw.nodes), 2)
    for node in ["${NODE}"] if draw.is_so(0.5) else nodes[: draw.rng.randint(1, 2)]:
        changes.append({"drain": {"node": node, "seconds": draw.rng.choice((1, 4))}})
    name = draw.name("spread")
    kept = workload("Deployment", name, 3, pod_spec("500m"))
    return [
        apply(budget(name, maxUnavailable=1), kept),
        *changes,
        *({"uncordon": {"node": each}} for each in nodes),
    ]


def devices(draw: Draw) -> Steps:
    """Create pods that compete for devices, by claims of their own or a shared one."""
    node, first, second = draw.rng.choice(draw.nodes), draw.name("gpu"), draw.name("gpu")
    kind = manifest(
        "DeviceClass",
        "gpu",
        spec={"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    )
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"gpu-{number}"} for number in range(draw.rng.randint(1, 2))]
    supply = manifest(
        "ResourceSlice",
        f"{node}-gpus",
        spec={"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": found},
    )
    asks = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    template, shared = (
        manifest("ResourceClaimTemplate", "gpu", spec={"spec": asks}),
        manifest("ResourceClaim", "shared", spec=asks),
    )

    def user(name: str) -> Json:
        spec = draw.spec("100m")
        claim = {"resourceClaimName": "shared"} if draw.is_so(0.3) else {"resourceClaimTemplateName": "gpu"}
        spec["resourceClaims"] = [{"name": "gpu", **claim}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        return draw.pod(name, spec)

    third = draw.name("gpu")
    changes = [
        [delete("Pod", first)],
        [delete("Pod", second, gracePeriodSeconds=0), absence(second), apply(user(second))],
        [apply(user(third))],
        [delete("ResourceClaim", "shared"), apply(shared)],
        [ready(2, second), delete("Pod", second)],
        [delete("ResourceSlice", f"{node}-gpus"), apply(supply)],
    ]
    return [
        apply(kind, supply, template, shared, user(first), user(second)),
        ready(2, first),
        *draw.some(changes, 2, 5),
    ]


def volumes(draw: Draw) -> Steps:
    """Create pods with claims for volumes that are made slowly, and for ones that exist."""
    names = [draw.name("data") for _ in range(3)]
    slow = manifest(
        "StorageClass",
        "slow",
        provisioner="delayed.nominee.dev",
        parameters={"delay": "1s"},
        volumeBindingMode="WaitForFirstConsumer",
    )
    local = manifest(
        "StorageClass",
        "local",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    disk = manifest(
        "PersistentVolume",
        draw.name("disk"),
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "local",
            "hostPath": {"path": "/data"},
        },
    )

    def claim(name: str) -> Json:
        of = draw.rng.choice(("slow", "slow", "local"))
        return manifest(
            "PersistentVolumeClaim",
            name,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": of,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        )

    def user(name: str, of: str) -> Json:
        return draw.pod(
            name,
            draw.spec("500m") | {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": of}}]},
        )

    first, second, third = names
    made = claim(first)
    changes = [
        [delete("Pod", first), delete("PersistentVolumeClaim", first)],
        [
            delete("PersistentVolumeClaim", first),
            delete("Pod", first),
            wait(3, "PersistentVolumeClaim", name=first, exists=False),
            apply(made, user(first, first)),
        ],
        [apply(user(third, third)), apply(claim(third))],
        [apply(user(draw.name("sharer"), second))],
        [ready(3, second), delete("Pod", second)],
    ]
    return [
        apply(slow, local, disk, made, claim(second), user(first, first), user(second, second)),
        *draw.some(changes, 2, 5),
    ]


def gangs(draw: Draw) -> Steps:
    """Create pods that are bound together or not at all, and pods that compete with them."""
    group, count = draw.name("gang"), draw.rng.choice((2, 3))
    policy = manifest("PodGroup", group, spec={"schedulingPolicy": {"gang": {"minCount": count}}})
    spec = pod_spec(draw.rng.choice(("500m", "1", "2")), schedulingGroup={"podGroupName": group})
    members = [draw.pod(f"{group}-{number}", spec) for number in range(count)]
    last = f"{group}-{count - 1}"
    changes = [
        [apply(draw.pod(draw.name("rival"), draw.spec("1")))],
        [delete("Pod", f"{group}-0"), absence(f"{group}-0"), apply(members[0])],
        [delete("Pod", last)],
        [ready(2, f"{group}-0")],
        [delete("PodGroup", group), apply(policy)],
    ]
    together = [apply(policy, *members)]
    late = [
        apply(policy, *members[:-1]),
        wait(1, "Pod", name=f"{group}-0", condition="PodScheduled=False"),
        apply(members[-1]),
    ]
    return (late if draw.is_so(0.4) else together) + draw.some(changes, 1, 4)


def quotas(draw: Draw) -> Steps:
    """Use up the quota of a namespace; change the quota, and delete the namespace."""
    limited = draw.name("limited")
    quota = manifest("ResourceQuota", "quota", limited, spec={"hard": {"pods": "2", "requests.cpu": "2"}})
    first, second, third = (draw.pod(f"q-{number}", draw.spec("500m"), limited) for number in range(3))
    ends = [delete("Namespace", limited)]
    changes = [
        [delete("Pod", "q-0", namespace=limited), absence("q-0", namespace=limited), apply(third)],
        [apply(third)],
        [patch("ResourceQuota", "quota", {"spec": {"hard": {"pods": "3"}}}, namespace=limited), apply(third)],
        [delete("ResourceQuota", "quota", namespace=limited), apply(quota)],
        [apply(manifest("ResourceQuota", "younger", limited, spec={"hard": {"pods": "9"}}))],
    ]
    counted = wait(2, "ResourceQuota", name="quota", namespace=limited, jsonPath={".status.hard.pods": "2"})
    start = [apply(manifest("Namespace", limited), quota), counted, apply(first, second)]
    return start + draw.some(changes, 1, 4) + (ends if draw.is_so(0.3) else [])


def resizes(draw: Draw) -> Steps:
    """Resize pods of one node until a resize is deferred; take it back, or make room."""
    node, grower, neighbour = draw.rng.choice(draw.nodes), draw.name("grower"), draw.name("neighbour")
    there = {"nodeSelector": {"kubernetes.io/hostname": node}}
    deferred = wait(2, "Pod", name=grower, condition="PodResizePending=True/Deferred")
    policy = {"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["example.com/a"]}}}
    free = {"spec": {"podPreemptionPolicy": None}}
    changes = [
        [resize(grower, "3"), deferred],
        [resize(grower, "3"), resize(grower, "500m")],
        [resize(neighbour, "250m")],
        [delete("Pod", neighbour)],
        [
            delete("Pod", grower, gracePeriodSeconds=0),
            absence(grower),
            apply(draw.pod(grower, draw.spec("1") | there)),
        ],
        [
            patch("Node", node, policy, type="merge"),
            resize(grower, "2"),
            patch("Node", node, free, type="merge"),
        ],
    ]
    if draw.is_so(0.3):
        changes.append([{"restart": {"component": "kubelet", "kill": True}}])
    both = [draw.pod(grower, draw.spec("1") | there), draw.pod(neighbour, draw.spec("500m") | there)]
    return [apply(*both), ready(2, grower), *draw.some(changes, 3, 5)]


def node_groups(draw: Draw) -> Steps:
    """Ask for more than the nodes have, so that the autoscaler adds nodes; then for less."""
    name, kind = draw.name("burst"), draw.rng.choice(("ReplicaSet", "Deployment"))
    scheduled = wait(4, "Pod", selector=f"app={name}", condition="Ready=True")
    changes = [
        [scale(kind, name, draw.rng.randint(1, 4))],
        [
            scale(kind, name, 0),
            wait(
                3,
                "Node",
                jsonPath={'.spec.taints[?(@.key=="ToBeDeletedByClusterAutoscaler")].effect': "NoSchedule"},
            ),
            scale(kind, name, 2),
        ],
        [scheduled],
        [{"nodeGroup": {"name": POOL, "increase": 1, "wait": False}}],
        [{"nodeGroup": {"name": POOL, "delete": True, "wait": False}}],
        [delete(kind, name)],
    ]
    return [apply(workload(kind, name, draw.rng.randint(1, 3), draw.spec("3"))), *draw.some(changes, 2, 4)]


def outages(draw: Draw) -> Steps:
    """Stop, kill and freeze processes for a while, and restart them."""
    steps: Steps = []
    for component in draw.rng.sample(
        ("scheduler", "controllers", "kubelet", "apiserver"), draw.rng.randint(1, 2)
    ):
        ways = [
            [{"stop": component}, {"start": component}],
            [{"kill": component}, {"start": component}],
            [{"pause": component}, wait(2, "Node", condition="Ready=Unknown"), {"resume": component}],
            [options_of(component, {"kill": True})],
        ]
        # Without the API server no step has an effect.
        steps += draw.rng.choice(ways[3:] if component == "apiserver" else ways)
    return steps


def upgrades(draw: Draw) -> Steps:
    """Restart components at another version, and back."""
    steps: Steps = []
    for component in draw.rng.sample(("scheduler", "controllers", "kubelet"), 2):
        steps += [options_of(component, {"emulatedVersion": version}) for version in ("1.35", "1.36")]
    return steps


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject, its weight, and the cluster that it needs: gates, an autoscaler."""

    draw: Callable[[Draw], Steps]
    weight: float = 1.0
    gate: str = ""
    scales: bool = False
    has_versions: bool = False
    """Whether it needs a cluster without gates."""


SUBJECTS: Final = (
    Subject(pods, 1.5),
    Subject(preemption, 1.5),
    Subject(nomination),
    Subject(placement),
    Subject(rollout, 2.0),
    Subject(drains),
    Subject(devices, 1.5),
    Subject(volumes, 1.5),
    Subject(gangs, gate=GANG_GATE),
    Subject(quotas),
    Subject(resizes, 1.5, gate=RESIZE_GATE),
    Subject(node_groups, 1.5, scales=True),
    Subject(outages, 1.0),
    Subject(upgrades, 0.5, has_versions=True),
)
"""Each subject, and how often it is drawn."""
