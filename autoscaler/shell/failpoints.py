"""Failpoints of the autoscaler: the steps at which it can be made to crash, stall or fail."""

from __future__ import annotations

from nominee.machinery.runtime import failpoints

LOOP_BEFORE = failpoints.declare(
    "autoscaler.loop.before", "a loop begins; it has not read the objects of the cluster"
)
SCALE_UP_BEFORE = failpoints.declare(
    "autoscaler.scaleup.before", "a node group must grow; the cloud provider is not called"
)
SCALE_UP_AFTER = failpoints.declare(
    "autoscaler.scaleup.after",
    "the cloud provider has increased the node group; the autoscaler has not noted it",
)
TAINT_BEFORE = failpoints.declare(
    "autoscaler.scaledown.taint.before", "a node must be deleted; it has no ToBeDeleted taint"
)
TAINT_AFTER = failpoints.declare("autoscaler.scaledown.taint.after", "the node has the ToBeDeleted taint")
RECHECK_BEFORE = failpoints.declare(
    "autoscaler.scaledown.recheck.before", "the node of a deletion is not read again from the API server"
)
RECHECK_AFTER = failpoints.declare(
    "autoscaler.scaledown.recheck.after", "the node is read again; nothing is decided with it"
)
EVICT_BEFORE = failpoints.declare(
    "autoscaler.scaledown.evict.before", "a pod must leave the node; it is not evicted"
)
EVICT_AFTER = failpoints.declare("autoscaler.scaledown.evict.after", "the eviction of the pod is accepted")
DELETE_BEFORE = failpoints.declare(
    "autoscaler.delete.before", "nodes are ready to be deleted; the cloud provider is not called"
)
DELETE_AFTER = failpoints.declare(
    "autoscaler.delete.after", "the cloud provider has accepted the deletion; the autoscaler has not noted it"
)
UNTAINT_BEFORE = failpoints.declare(
    "autoscaler.scaledown.untaint.before",
    "the deletion of a node failed, or an earlier autoscaler began it; the ToBeDeleted taint is not removed",
)
