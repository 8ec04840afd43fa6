"""The workloads of `nominee bench scheduling`, one row each, as scheduler_perf has them (Kubernetes 1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nominee.lab.bench.load import objects
from nominee.lab.bench.load.objects import HOSTNAME, ZONE, PodTemplate
from nominee.machinery.api.kinds import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    AnyKind,
)
from nominee.machinery.api.pb import core

BASIC: Final = "SchedulingBasic"
NAMESPACES, NODES, INIT, MEASURED, CHURN = "namespaces", "nodes", "init", "measured", "churn"
CLASSES, TEMPLATES, SLICES = "classes", "templates", "slices"
DEVICES: Final = (CLASSES, TEMPLATES, SLICES)
CHURN_PODS_MAX: Final = 10_000
_BASIC_POD: Final = PodTemplate()
_SETUP_NAMESPACES: Final = ("sched-0", "sched-1")
# Pods set their priority themselves, without a PriorityClass.
_WITHOUT_PRIORITY_CLASSES: Final = (
    "--arg",
    "apiserver=--disable-admission-plugins=Priority",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload: its nodes and pods, and the conditions that must hold at the end.

    `nodes`, `init_pods`, `pods`: default sizes. `init_per_node`, `pods_per_node`: how many pods fit on a
    node; they share the room unless the measured pods evict the initial ones. `churn`: pods created
    meanwhile, one every `churn_seconds`. `devices_per_node`: each node has a ResourceSlice with so many.
    `one_per_node`: no two pods may share a node. `skew_max`: of measured pods between the zones.
    `stalled_seconds_max`: how long no pod may be bound before the run fails. `reference`: pods/s of
    kube-scheduler 1.36.2 on two cores, of the slowest and the fastest run, by (nodes, initial pods, pods).
    """

    name: str
    nodes: int = 5000
    init_pods: int = 1000
    pods: int = 1000
    init: PodTemplate = _BASIC_POD
    measured: PodTemplate = _BASIC_POD
    churn: PodTemplate | None = None
    churn_seconds: float = 0.2
    zones: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    init_per_node: int = 40
    pods_per_node: int = 40
    devices_per_node: int = 0
    evicts: bool = False
    one_per_node: bool = False
    skew_max: int | None = None
    stalled_seconds_max: float = 30.0
    up_options: tuple[str, ...] = ()
    scheduler_config: Mapping[str, object] | None = None
    reference: Mapping[tuple[int, int, int], tuple[float, float]] = field(default_factory=dict)

    def maker(self, series: str) -> tuple[AnyKind, Callable[[int], Any]]:
        """Return the kind and the function that makes the objects of a series.

        Raises:
            KeyError: there is no such series.
        """
        if series == NODES:
            return NODE, lambda index: objects.node(index, self.zones)
        if series == NAMESPACES:
            return NAMESPACE, lambda index: objects.namespace(self.namespaces[index])
        if series == CLASSES:
            return DEVICE_CLASS, lambda _: objects.device_class()
        if series == TEMPLATES:
            return RESOURCE_CLAIM_TEMPLATE, lambda _: objects.claim_template()
        if series == SLICES:
            return RESOURCE_SLICE, lambda index: objects.resource_slice(index, self.devices_per_node)
        template = {INIT: self.init, MEASURED: self.measured, CHURN: self.churn}[series]
        if template is None:
            raise KeyError(series)
        return POD, lambda index: objects.pod(index, series, template)

    def too_many(self, nodes: int, init_pods: int, pods: int) -> str:
        """Return which option exceeds the nodes' capacity, and the limit; "" if none does."""
        init_room, room = nodes * self.init_per_node, nodes * self.pods_per_node
        if init_pods > init_room:
            return f"--init-pods: {nodes} nodes have room for {init_room} pods; take more --nodes"
        if pods + (0 if self.evicts else init_pods) > room:
            return f"--pods: {nodes} nodes have room for {room} pods; take more --nodes"
        return ""


def _in_zones(spec: core.PodSpec) -> None:
    selector = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    selector.nodeSelectorTerms.add().matchExpressions.add(key=ZONE, operator="In", values=["zone1", "zone2"])


def _near_blue(spec: core.PodSpec) -> None:
    term = spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.add(
        topologyKey=ZONE, namespaces=_SETUP_NAMESPACES
    )
    term.labelSelector.matchLabels["color"] = "blue"


def _away_from_green(spec: core.PodSpec) -> None:
    term = spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.add(
        topologyKey=HOSTNAME, namespaces=_SETUP_NAMESPACES
    )
    term.labelSelector.matchLabels["color"] = "green"


def _spread_blue(spec: core.PodSpec) -> None:
    constraint = spec.topologySpreadConstraints.add(
        maxSkew=5, topologyKey=ZONE, whenUnsatisfiable="DoNotSchedule"
    )
    constraint.labelSelector.matchLabels["color"] = "blue"


def _in_both(template: Callable[[str], PodTemplate]) -> dict[str, Any]:
    """Return the namespaces: initial pods in the first one, measured pods in the second."""
    first, second = _SETUP_NAMESPACES
    return {"namespaces": _SETUP_NAMESPACES, "init": template(first), "measured": template(second)}


_ALL: Final = (
    Workload(name=BASIC, reference={(500, 1000, 1000): (387.0, 387.0), (5000, 1000, 1000): (268.0, 338.0)}),
    Workload(
        name="SchedulingNodeAffinity",
        init_pods=5000,
        zones=("zone1",),
        init=PodTemplate(also=_in_zones),
        measured=PodTemplate(also=_in_zones),
    ),
    Workload(
        name="Unschedulable",
        init_pods=100,
        churn=PodTemplate(cpu_milli=9000, priority=10, has_limits=False),
        up_options=_WITHOUT_PRIORITY_CLASSES,
    ),
    Workload(
        name="PreemptionBasic",
        nodes=1000,
        init_pods=4000,
        init=PodTemplate(cpu_milli=900, grace_seconds=0),
        measured=PodTemplate(cpu_milli=3000, priority=10),
        init_per_node=4,
        pods_per_node=1,
        evicts=True,
        stalled_seconds_max=180.0,  # evictions come first, and each of them activates all preemptors
        up_options=_WITHOUT_PRIORITY_CLASSES,
        reference={(1000, 4000, 1000): (24.0, 35.0)},
    ),
    Workload(
        name="SchedulingPodAffinity",
        init_pods=5000,
        zones=("zone1",),
        **_in_both(lambda where: PodTemplate(namespace=where, labels={"color": "blue"}, also=_near_blue)),
    ),
    Workload(
        name="SchedulingPodAntiAffinity",
        init_per_node=1,
        pods_per_node=1,
        one_per_node=True,
        **_in_both(
            lambda where: PodTemplate(namespace=where, labels={"color": "green"}, also=_away_from_green)
        ),
    ),
    Workload(
        name="TopologySpreading",
        init_pods=5000,
        pods=2000,
        zones=("moon-1", "moon-2", "moon-3"),
        measured=PodTemplate(labels={"color": "blue"}, also=_spread_blue),
        skew_max=5,
    ),
    Workload(
        name="SchedulingWithResourceClaimTemplate",
        nodes=100,
        init=PodTemplate(cpu_milli=1, also=objects.with_claim),
        measured=PodTemplate(cpu_milli=1, also=objects.with_claim),
        init_per_node=20,
        pods_per_node=20,
        devices_per_node=20,
        up_options=(
            "--components",
            "etcd,apiserver,scheduler,controllers",
            # No kubelet renews the nodes' leases: the node lifecycle controller would taint them.
            "--arg",
            "controllers=--controllers=resourceclaim-controller",
            "--arg",
            "apiserver=--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",
        ),
    ),
    Workload(
        name="DelayedBinding",
        up_options=("--arg", "scheduler=--plugin=nominee.lab.bench.plugins:DelayedBinding"),
        scheduler_config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "plugins": {"preBind": {"enabled": [{"name": "DelayedBinding"}]}},
                    "pluginConfig": [{"name": "DelayedBinding", "args": {"seconds": 1}}],
                }
            ],
        },
    ),
)
WORKLOADS: Final[Mapping[str, Workload]] = {workload.name: workload for workload in _ALL}
