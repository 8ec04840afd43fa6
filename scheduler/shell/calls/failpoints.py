"""Declare the failpoints of the scheduler: where it can be made to die, stall or fail.

Those that plugins reach are yielded by name (`io_steps.Failpoint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nominee.machinery.runtime import failpoints

CYCLE_BEFORE = failpoints.declare(
    "scheduler.cycle.before",
    "a pod (the first one of a pod group) is popped from the queue; its scheduling cycle has not begun",
)
CYCLE_AFTER = failpoints.declare(
    "scheduler.cycle.after",
    "a scheduling cycle found no node; the pod is not in the queue yet; an error has no effect",
)
ASSUME_AFTER = failpoints.declare(
    "scheduler.assume.after",
    "the pod is assumed on its node, after Reserve and Permit; its binding cycle begins",
)
NOMINATE_BEFORE = failpoints.declare(
    "scheduler.nominate.before",
    "the pod will wait on Permit or in PreBind, and NominatedNodeNameForExpectation is on; "
    "its node is not written to `status.nominatedNodeName`",
)
NOMINATE_AFTER = failpoints.declare(
    "scheduler.nominate.after", "the write of `status.nominatedNodeName` has ended, also if it failed"
)
PERMIT_WAIT_BEFORE = failpoints.declare(
    "scheduler.permit.wait.before", "a Permit plugin returned Wait; the binding cycle has not begun to wait"
)
PERMIT_WAIT_AFTER = failpoints.declare(
    "scheduler.permit.wait.after", "the waiting pod is allowed; PreBind has not begun"
)
PREBIND_BEFORE = failpoints.declare(
    "scheduler.prebind.before", "PreBind plugins have work for the pod; none has run"
)
PREBIND_DURING = failpoints.declare(
    "scheduler.prebind.during", "hit as the PreBind plugins start, beside them; an error cancels them"
)
PREBIND_AFTER = failpoints.declare(
    "scheduler.prebind.after", "all PreBind plugins have succeeded; the pod is not bound"
)
BIND_BEFORE = failpoints.declare("scheduler.bind.before", "no Bind plugin or extender was called")
BIND_AFTER = failpoints.declare(
    "scheduler.bind.after", "the pod is bound; no event Scheduled is recorded, PostBind has not run"
)
UNRESERVE_BEFORE = failpoints.declare(
    "scheduler.unreserve.before",
    "the binding cycle failed; the pod is still assumed, Unreserve has not run; an error has no effect",
)
STATUS_BEFORE = failpoints.declare(
    "scheduler.status.before", "a scheduling attempt failed; PodScheduled and the nomination are not written"
)
STATUS_AFTER = failpoints.declare(
    "scheduler.status.after", "PodScheduled and the nomination of the failed attempt are written"
)

POINTS: Final[Mapping[str, failpoints.Failpoint]] = {
    each.name: each
    for each in (
        failpoints.declare(
            "scheduler.volumes.written",
            "VolumeBinding has written the volumes and claims; it does not wait for them yet",
        ),
        failpoints.declare(
            "scheduler.claims.written",
            "DynamicResources has written the allocation and reservation of one claim",
        ),
        failpoints.declare(
            "scheduler.preempt.before",
            "victims are chosen; lower nominations are not cleared, no victim is evicted",
        ),
        failpoints.declare(
            "scheduler.preempt.victim.marked",
            "a victim has the condition DisruptionTarget; it is not deleted",
        ),
        failpoints.declare(
            "scheduler.preempt.victim.after",
            "a victim is deleted, or rejected while it waited; no event Preempted is recorded",
        ),
    )
}
"""Those that plugins yield, by the name that the plugin has as a constant."""
