"""Pods that failed without a reason outside of the cluster. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, has_ended
from nominee.machinery.api.pb import core

_OWN_REASONS: Final = frozenset({"DeadlineExceeded", "Evicted"})
"""Reasons of the pod's own: its deadline, its use of the node."""
_OUT_OF: Final = "OutOf"


def failures(state: State) -> Iterator[Finding]:
    """Find pods that are Failed though no container of theirs failed and nothing disrupted them.

    The scheduler binds a pod to a node that has room for it and admits it, so its kubelet rejects none.
    """
    for pod in state.of(kinds.POD):
        if pod.status.phase == "Failed" and pod.spec.nodeName and not _is_own_failure(pod):
            is_race = state.expectations.resizes and pod.status.reason.startswith(_OUT_OF)
            if not is_race and not state.expectations.rejects(pod):
                why = f"with the reason {pod.status.reason}" if pod.status.reason else "without a reason"
                yield Finding(name_of(pod), f"was failed on {pod.spec.nodeName} {why}")


def addresses(state: State) -> Iterator[Finding]:
    """Find addresses that two pods have; pods on the network of their host have its address."""
    holders: dict[str, str] = {}
    for pod in state.of(kinds.POD):
        address = "" if pod.spec.hostNetwork or has_ended(pod) else pod.status.podIP
        if address and holders.setdefault(address, name_of(pod)) != name_of(pod):
            yield Finding(name_of(pod), f"has the address {address}, and so has {holders[address]}")


def _is_own_failure(pod: core.Pod) -> bool:
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    return (
        pod.status.reason in _OWN_REASONS
        or (not pod.status.reason and any(each.state.terminated.exitCode for each in statuses))
        or condition_is(pod.status.conditions, "DisruptionTarget")
    )
