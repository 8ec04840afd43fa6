"""Failpoints of the autoscaler: the steps at which it can be made to crash, stall or fail."""

from __future__ import annotations

from nominee.machinery.runtime import failpoints

LOOP_BEFORE = failpoints.declare("autoscaler.loop.before")
SCALE_UP_BEFORE = failpoints.declare("autoscaler.scaleup.before")
SCALE_UP_AFTER = failpoints.declare("autoscaler.scaleup.after")
TAINT_BEFORE = failpoints.declare("autoscaler.scaledown.taint.before")
TAINT_AFTER = failpoints.declare("autoscaler.scaledown.taint.after")
RECHECK_BEFORE = failpoints.declare("autoscaler.scaledown.recheck.before")
RECHECK_AFTER = failpoints.declare("autoscaler.scaledown.recheck.after")
EVICT_BEFORE = failpoints.declare("autoscaler.scaledown.evict.before")
EVICT_AFTER = failpoints.declare("autoscaler.scaledown.evict.after")
DELETE_BEFORE = failpoints.declare("autoscaler.delete.before")
DELETE_AFTER = failpoints.declare("autoscaler.delete.after")
UNTAINT_BEFORE = failpoints.declare("autoscaler.scaledown.untaint.before")
