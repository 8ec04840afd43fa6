"""Taints that the autoscaler sets, and those that it reads. Pure.

Source: cluster-autoscaler 1.36, utils/taints.
"""

from __future__ import annotations

from nominee.autoscaler.planning.objects.annotation_keys import PREFIX
from nominee.machinery.api.pb import core

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
IGNORE_TAINT_PREFIX = f"ignore-taint.{PREFIX}"
_STARTUP_TAINT_PREFIXES = (f"startup-taint.{PREFIX}", IGNORE_TAINT_PREFIX)
_STATUS_TAINT_PREFIX = f"status-taint.{PREFIX}"
NODE_CONDITION_TAINTS = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
    )
)
DELETION_SECONDS_MAX = 300.0
"""For so long after it was tainted a node counts as being deleted."""


def taint_time(node: core.Node, key: str) -> float | None:
    """Return when the taint was added, in seconds since the epoch (its value); None without the taint."""
    for taint in node.spec.taints:
        if taint.key == key:
            return float(taint.value) if taint.value.isascii() and taint.value.isdigit() else 0.0
    return None


def has_to_be_deleted(node: core.Node) -> bool:
    return taint_time(node, TO_BE_DELETED) is not None


def has_deletion_candidate(node: core.Node) -> bool:
    return taint_time(node, DELETION_CANDIDATE) is not None


def is_being_deleted(node: core.Node, now: float) -> bool:
    """Report whether the node was tainted for deletion in the last `DELETION_SECONDS_MAX`.

    The deletion of a node that has the taint for longer has failed, and may be tried again.
    """
    since = taint_time(node, TO_BE_DELETED)
    return since is not None and now - since < DELETION_SECONDS_MAX


def has_startup_taint(node: core.Node) -> bool:
    """Report whether the node has a taint that is removed when the node has started."""
    return any(_is_startup_taint(taint.key) for taint in node.spec.taints)


def is_transient_taint(key: str) -> bool:
    """Report whether a new node of the same group will not have the taint."""
    if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in NODE_CONDITION_TAINTS:
        return True
    return _is_startup_taint(key) or key.startswith(_STATUS_TAINT_PREFIX)


def taint_type(key: str) -> str:
    """Return the taint's type for the metric `node_taints_count`; `other` for taints of users."""
    if key.startswith(IGNORE_TAINT_PREFIX):
        return IGNORE_TAINT_PREFIX
    if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in NODE_CONDITION_TAINTS:
        return key
    if _is_startup_taint(key):
        return "startup-taint"
    return "status-taint" if key.startswith(_STATUS_TAINT_PREFIX) else "other"


def _is_startup_taint(key: str) -> bool:
    return key.startswith(_STARTUP_TAINT_PREFIXES)
