"""Queueing hints of InterPodAffinity. Source: kube-scheduler 1.36.

Namespace selectors are not resolved here: a term with one matches pods as if namespaces had no labels, as
upstream does (kubernetes/kubernetes#141953). And of several anti-affinity terms all must match a pod for
its deletion to count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import SelectorError
from nominee.scheduler.framework.affinity_terms import AffinityTerm, PodTerms, pod_terms
from nominee.scheduler.framework.api.events import QueueingHint, expect
from nominee.scheduler.framework.types import PodInfo

_NO_TERMS = PodTerms()


def _checked(terms: PodTerms | None) -> PodTerms:
    """Return the terms; preferred ones that cannot be parsed do not count.

    Raises:
        SelectorError: a required term cannot be parsed.
    """
    if terms is None:
        return _NO_TERMS
    for error in terms.errors:
        field, _, words = error.partition(": ")
        if field.startswith("required"):
            raise SelectorError(words)
    return terms


def _all_match(terms: Sequence[AffinityTerm], pod: core.Pod) -> bool:
    """Return whether all the terms match the pod; false without any."""
    metadata = pod.metadata
    return bool(terms) and all(term.matches(metadata.namespace, metadata.labels, {}) for term in terms)


def _is_placed(pod: core.Pod | None) -> bool:
    """Return whether the pod is on a node or nominated to one; true also for None."""
    return pod is None or bool(pod.spec.nodeName or pod.status.nominatedNodeName)


def after_pod_change(pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
    """Return the hint when another pod came, went or was relabelled, or the pod itself was relabelled."""
    old, new = expect(core.Pod, old, new)
    before = old if isinstance(old, core.Pod) else None
    after = new if isinstance(new, core.Pod) else None
    if before is not None and after is not None and after.metadata.uid == pod.uid:
        return QueueingHint.Queue
    if not _is_placed(before) or not _is_placed(after):
        return QueueingHint.Skip
    return QueueingHint.Queue if _may_help(pod, before, after) else QueueingHint.Skip


def _may_help(pod: PodInfo, before: core.Pod | None, after: core.Pod | None) -> bool:
    terms = _checked(pod.pod_terms)
    near, far = terms.required, terms.required_anti
    if after is None:
        if before is None:
            return False
        return _all_match(far, before) or _all_match(_checked(pod_terms(before)).required_anti, pod.pod)
    if before is None:
        return _all_match(near, after)
    if _all_match(near, after) and not _all_match(near, before):
        return True
    return _all_match(far, before) and not _all_match(far, after)


def after_node_change(pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
    """Return the hint when a node came or was relabelled."""
    old, new = expect(core.Node, old, new)
    if not isinstance(new, core.Node):
        return QueueingHint.Skip
    terms = _checked(pod.pod_terms)
    after = new.metadata.labels
    if isinstance(old, core.Node):
        before = old.metadata.labels
        helps = any(_enters(term.topology_key, before, after) for term in terms.required)
        helps = helps or any(_leaves(term.topology_key, before, after) for term in terms.required_anti)
    else:
        # A new node without the label takes any pod with anti-affinity, one with it perhaps.
        helps = bool(terms.required_anti) or any(term.topology_key in after for term in terms.required)
    return QueueingHint.Queue if helps else QueueingHint.Skip


def _enters(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether the node is now in a domain that it was not in."""
    return key in after and (key not in before or before[key] != after[key])


def _leaves(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether the node is no longer in the domain that it was in."""
    return key in before and (key not in after or before[key] != after[key])
