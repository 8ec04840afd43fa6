"""The kubelet's failpoints: every step at which the process can be made to die, stall or err."""

from __future__ import annotations

from nominee.machinery.runtime import failpoints

REGISTER_BEFORE = failpoints.declare("kubelet.register.before")
REGISTER_AFTER = failpoints.declare("kubelet.register.after")
LEASE_BEFORE = failpoints.declare("kubelet.lease.before")
NODE_STATUS_BEFORE = failpoints.declare("kubelet.node-status.before")
ADMIT_BEFORE = failpoints.declare("kubelet.admit.before")
"""Between the arrival of a pod's event and its admission; holds up all pods of the process."""
START_BEFORE = failpoints.declare("kubelet.start.before")
START_AFTER = failpoints.declare("kubelet.start.after")
CHECKPOINT_BEFORE = failpoints.declare("kubelet.checkpoint.before")
CHECKPOINT_AFTER = failpoints.declare("kubelet.checkpoint.after")
ACTUATE_BEFORE = failpoints.declare("kubelet.actuate.before")
ACTUATE_BETWEEN = failpoints.declare("kubelet.actuate.between")
"""Before each call of an actuation but the first."""
ACTUATE_AFTER = failpoints.declare("kubelet.actuate.after")
STATUS_BEFORE = failpoints.declare("kubelet.status.before")
STATUS_AFTER = failpoints.declare("kubelet.status.after")
TERMINATE_BEFORE = failpoints.declare("kubelet.terminate.before")
TERMINATE_AFTER = failpoints.declare("kubelet.terminate.after")
DELETE_BEFORE = failpoints.declare("kubelet.delete.before")
"""Between the last status of a deleted pod and the deletion without grace that removes it."""
