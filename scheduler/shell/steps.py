"""The steps of a pod's way at which the scheduler can be made to die, stall or err."""

from __future__ import annotations

from machinery import failpoints

CYCLE_BEFORE = failpoints.declare("scheduler.cycle.before")
ASSUME_AFTER = failpoints.declare("scheduler.assume.after")
NOMINATE_BEFORE = failpoints.declare("scheduler.nominate.before")
NOMINATE_AFTER = failpoints.declare("scheduler.nominate.after")
PERMIT_WAIT_BEFORE = failpoints.declare("scheduler.permit.wait.before")
PERMIT_WAIT_AFTER = failpoints.declare("scheduler.permit.wait.after")
PREBIND_BEFORE = failpoints.declare("scheduler.prebind.before")
PREBIND_DURING = failpoints.declare("scheduler.prebind.during")
PREBIND_AFTER = failpoints.declare("scheduler.prebind.after")
BIND_BEFORE = failpoints.declare("scheduler.bind.before")
BIND_AFTER = failpoints.declare("scheduler.bind.after")
UNRESERVE_BEFORE = failpoints.declare("scheduler.unreserve.before")
STATUS_BEFORE = failpoints.declare("scheduler.status.before")
STATUS_AFTER = failpoints.declare("scheduler.status.after")
"""`scheduler.preempt.*` are declared beside the evictions, in `scheduler.preemption`."""
