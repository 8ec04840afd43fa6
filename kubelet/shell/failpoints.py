"""The kubelet's failpoints: every step at which the process can be made to die, stall or err."""

from __future__ import annotations

from nominee.machinery.runtime import failpoints

REGISTER_BEFORE = failpoints.declare(
    "kubelet.register.before", "the Node object is not created, or not updated if it exists"
)
REGISTER_AFTER = failpoints.declare(
    "kubelet.register.after", "the Node object is written; the node does not run pods yet"
)
LEASE_BEFORE = failpoints.declare("kubelet.lease.before", "the node's lease is due; it is not renewed")
NODE_STATUS_BEFORE = failpoints.declare(
    "kubelet.node-status.before", "the status of the node has changed or is due; it is not written"
)
ADMIT_BEFORE = failpoints.declare(
    "kubelet.admit.before", "a new pod has arrived; it is not admitted. All pods of the process wait"
)
"""Between the arrival of a pod's event and its admission; holds up all pods of the process."""
START_BEFORE = failpoints.declare(
    "kubelet.start.before", "the pod is admitted and its allocation saved; its sandbox is not created"
)
START_AFTER = failpoints.declare(
    "kubelet.start.after", "containers of the pod are started and saved; the status does not show them"
)
CHECKPOINT_BEFORE = failpoints.declare(
    "kubelet.checkpoint.before", "the checkpoint has changed; the file is not written"
)
CHECKPOINT_AFTER = failpoints.declare("kubelet.checkpoint.after", "the checkpoint file is written")
ACTUATE_BEFORE = failpoints.declare(
    "kubelet.actuate.before", "a resize is allocated; the first call of its actuation is not made"
)
ACTUATE_BETWEEN = failpoints.declare(
    "kubelet.actuate.between", "some calls of an actuation are made; the next one is not"
)
"""Before each call of an actuation but the first."""
ACTUATE_AFTER = failpoints.declare(
    "kubelet.actuate.after", "the last call of an actuation is made; the status does not show it"
)
STATUS_BEFORE = failpoints.declare(
    "kubelet.status.before", "the checkpoint is saved; the pod's status is not written"
)
STATUS_AFTER = failpoints.declare("kubelet.status.after", "the pod's status is written")
TERMINATE_BEFORE = failpoints.declare(
    "kubelet.terminate.before", "the pod must stop; its containers have no signal"
)
TERMINATE_AFTER = failpoints.declare(
    "kubelet.terminate.after", "the pod's containers are stopped; the status does not show it"
)
DELETE_BEFORE = failpoints.declare(
    "kubelet.delete.before", "the last status of a deleted pod is written; the pod object is not deleted"
)
"""Between the last status of a deleted pod and the deletion without grace that removes it."""
