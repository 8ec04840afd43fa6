"""The nodes that a daemon set's pods run on, for its controller, the autoscaler's templates, and checks.

Source: kube-controller-manager 1.36, pkg/controller/daemon (NodeShouldRunDaemonPod) and its util
(AddOrUpdateDaemonPodTolerations, GetTargetNodeName).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.node_affinity import NAME_FIELD, RequiredNodeAffinity
from nominee.machinery.scheduling.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def tolerations_of(spec: core.PodSpec) -> list[core.Toleration]:
    """Return the tolerations of a template's pods: its own, and those that daemons need to stay."""
    tolerations = list(spec.tolerations)
    for key, effect in (*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.hostNetwork else [])):
        added = core.Toleration(key=key, operator="Exists", effect=effect)
        for index, own in enumerate(tolerations):
            if (own.key, own.effect, own.operator, own.value) == (key, effect, "Exists", ""):
                tolerations[index] = added  # without tolerationSeconds
                break
        else:
            tolerations.append(added)
    return tolerations


class Verdict(NamedTuple):
    """A node's answers: it gets a pod; a pod that is there stays."""

    runs: bool
    keeps: bool


_RUNS: Final = Verdict(runs=True, keeps=True)
_KEEPS: Final = Verdict(runs=False, keeps=True)
_NEITHER: Final = Verdict(runs=False, keeps=False)


@dataclass(frozen=True, slots=True)
class NodeRules:
    """The conditions of a daemon set's template on nodes, read once and asked for many nodes."""

    node_name: str
    affinity: RequiredNodeAffinity
    tolerations: Sequence[core.Toleration]

    @classmethod
    def of(cls, spec: core.PodSpec) -> NodeRules:
        return cls(spec.nodeName, RequiredNodeAffinity.of(core.Pod(spec=spec)), tolerations_of(spec))

    def verdict(self, node: core.Node) -> Verdict:
        """Return the verdict on a node: a NoSchedule taint keeps the pods that are there."""
        name = node.metadata.name
        if self.node_name not in ("", name) or not self.affinity.matches(node.metadata.labels, name):
            return _NEITHER
        taints = node.spec.taints
        if not taints or find_untolerated(taints, self.tolerations) is None:
            return _RUNS
        if find_untolerated(taints, self.tolerations, effects=(NO_EXECUTE,)) is None:
            return _KEEPS
        return _NEITHER


def target_node(pod: core.Pod) -> str:
    """Return the node that a pod is on or shall get to; "" for a pod that names none."""
    if pod.spec.nodeName:
        return pod.spec.nodeName
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    for term in required.nodeSelectorTerms:
        for field in term.matchFields:
            if field.key == NAME_FIELD and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else ""
    return ""
