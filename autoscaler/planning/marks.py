"""Taints, annotations and labels by which the autoscaler and its users talk.

Source: cluster-autoscaler 1.36.
"""

from __future__ import annotations

from machinery.api.pb import core

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
PREFIX = "cluster-autoscaler.kubernetes.io/"
SAFE_TO_EVICT = f"{PREFIX}safe-to-evict"
SAFE_TO_EVICT_VOLUMES = f"{PREFIX}safe-to-evict-local-volumes"
POD_SCALE_UP_DELAY = f"{PREFIX}pod-scale-up-delay"
DAEMONSET_POD = f"{PREFIX}daemonset-pod"
ENABLE_DS_EVICTION = f"{PREFIX}enable-ds-eviction"
SCALE_DOWN_DISABLED = f"{PREFIX}scale-down-disabled"
DELAY_DELETION = f"delay-deletion.{PREFIX}"
UPCOMING = "cluster-autoscaler.k8s.io/upcoming-node"
HOSTNAME = "kubernetes.io/hostname"
MIRROR = "kubernetes.io/config.mirror"
IGNORE_TAINT = f"ignore-taint.{PREFIX}"
_STARTUP = (f"startup-taint.{PREFIX}", IGNORE_TAINT)
_STATUS = f"status-taint.{PREFIX}"
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
"""A node counts as being deleted so long after it was tainted."""
_NOT_READY = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    )
)


def taint_time(node: core.Node, key: str) -> float | None:
    """When the taint says it was put there (seconds since the epoch); None without it."""
    for taint in node.spec.taints:
        if taint.key == key:
            return float(taint.value) if taint.value.isascii() and taint.value.isdigit() else 0.0
    return None


def is_being_deleted(node: core.Node, now: float) -> bool:
    """Tainted not long ago; one that was tainted long ago did not go, and may be tried again."""
    since = taint_time(node, TO_BE_DELETED)
    return since is not None and now - since < DELETION_SECONDS_MAX


def is_startup_taint(key: str) -> bool:
    """A taint that says the node is not up yet, though it is Ready."""
    return key.startswith(_STARTUP)


def is_transient_taint(key: str) -> bool:
    """Report whether a new node of the same group will not have the taint."""
    if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in NODE_CONDITION_TAINTS:
        return True
    return is_startup_taint(key) or key.startswith(_STATUS)


def taint_type(key: str) -> str:
    """Return how the metric of taints names a taint: those of users have one name together."""
    if key.startswith(IGNORE_TAINT):
        return IGNORE_TAINT
    if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in NODE_CONDITION_TAINTS:
        return key
    if is_startup_taint(key):
        return "startup-taint"
    return "status-taint" if key.startswith(_STATUS) else "other"


def unready(node: core.Node) -> core.Node:
    """The node as if it were not Ready."""
    copy = core.Node()
    copy.CopyFrom(node)
    for condition in copy.status.conditions:
        if condition.type == "Ready":
            condition.status = "False"
    return copy


def has_startup_taint(node: core.Node) -> bool:
    """Report whether the node has a taint that is removed when it has started."""
    return any(is_startup_taint(taint.key) for taint in node.spec.taints)


def is_suspended(node: core.Node) -> bool:
    """Report whether the node has the condition Suspended: it keeps its place and takes no pods."""
    return any(row.type == "Suspended" and row.status == "True" for row in node.status.conditions)


def is_ready_and_schedulable(node: core.Node) -> bool:
    """Report whether the node is ready and not cordoned."""
    return is_ready(node) and not node.spec.unschedulable


def is_ready(node: core.Node) -> bool:
    """Report whether the Ready condition is True, the network is available, and no taint contradicts that."""
    ready = False
    for condition in node.status.conditions:
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "NetworkUnavailable" and condition.status == "True":
            return False
    return ready and not any(taint.key in _NOT_READY for taint in node.spec.taints)
