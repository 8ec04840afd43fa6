"""matchLabelKeys and mismatchLabelKeys: at creation they become part of the selectors beside them.

Source: kube-apiserver 1.36, pod strategy (KEP-3633 for pod affinity, KEP-3243 for topology spreading). The
scheduler knows the keys of pod affinity by these selectors only.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import core, meta
from nominee.machinery.features.gates import Gates


def merge_label_keys(pod: core.Pod, gates: Gates) -> None:
    """Add requirements by the pod's own labels; keys that the pod does not have are ignored."""
    spec = pod.spec
    if spec.HasField("affinity") and gates.enabled("MatchLabelKeysInPodAffinity"):
        for pods in (spec.affinity.podAffinity, spec.affinity.podAntiAffinity):
            terms = [
                *pods.requiredDuringSchedulingIgnoredDuringExecution,
                *(each.podAffinityTerm for each in pods.preferredDuringSchedulingIgnoredDuringExecution),
            ]
            for term in terms:
                if term.HasField("labelSelector"):
                    _merge(term.labelSelector, term.matchLabelKeys, "In", pod)
                    _merge(term.labelSelector, term.mismatchLabelKeys, "NotIn", pod)
    if spec.topologySpreadConstraints and (
        gates.enabled("MatchLabelKeysInPodTopologySpread")
        and gates.enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge")
    ):
        for constraint in spec.topologySpreadConstraints:
            if constraint.HasField("labelSelector"):
                _merge(constraint.labelSelector, constraint.matchLabelKeys, "In", pod)


def _merge(selector: meta.LabelSelector, keys: Iterable[str], operator: str, pod: core.Pod) -> None:
    for key in keys:
        if key in pod.metadata.labels:
            selector.matchExpressions.add(key=key, operator=operator, values=[pod.metadata.labels[key]])
