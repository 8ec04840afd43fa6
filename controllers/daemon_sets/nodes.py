"""The nodes that a daemon set's pods run on, and the pods for them. Pure.

Source: kube-controller-manager 1.36, pkg/controller/daemon (NodeShouldRunDaemonPod) and its util
(AddOrUpdateDaemonPodTolerations, CreatePodTemplate, GetTargetNodeName).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.revisions.history import REVISION_LABEL
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.api.selectors import parse_int64
from nominee.machinery.scheduling.node_affinity import NAME_FIELD, RequiredNodeAffinity
from nominee.machinery.scheduling.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated

GENERATION: Final = "deprecated.daemonset.template.generation"
GENERATION_LABEL: Final = "pod-template-generation"
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
    """A daemon set's conditions on nodes, read once and asked for many nodes."""

    node_name: str
    affinity: RequiredNodeAffinity
    tolerations: Sequence[core.Toleration]

    @classmethod
    def of(cls, daemon_set: apps.DaemonSet) -> NodeRules:
        spec = daemon_set.spec.template.spec
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


def template_of(daemon_set: apps.DaemonSet, digest: str) -> core.PodTemplateSpec:
    """Return the template of the pods of a revision, with its labels and tolerations."""
    template = copy_of(daemon_set.spec.template)
    generation = parse_int64(daemon_set.metadata.annotations.get(GENERATION, ""))
    if generation is not None:
        template.metadata.labels[GENERATION_LABEL] = str(generation)
    template.metadata.labels[REVISION_LABEL] = digest
    tolerations = tolerations_of(template.spec)
    del template.spec.tolerations[:]
    template.spec.tolerations.extend(tolerations)
    return template


def pod_for(daemon_set: apps.DaemonSet, template: core.PodTemplateSpec, node: str) -> core.Pod:
    """Return a new pod for one node: the scheduler binds it there, as its node affinity asks."""
    pod = pod_of(daemon_set, template)
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    del required.nodeSelectorTerms[:]
    required.nodeSelectorTerms.add().matchFields.add(key=NAME_FIELD, operator="In", values=[node])
    return pod


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
