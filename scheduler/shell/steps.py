"""Declare the failpoints of the scheduler: where it can be made to die, stall or fail.

Those that plugins reach are yielded by name (`io_steps.Failpoint`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nominee.machinery.runtime import failpoints
from nominee.scheduler.plugins.dynamic_resources import plugin as dynamic_resources
from nominee.scheduler.plugins.volume_binding import binder as volume_binder
from nominee.scheduler.preemption import evictions

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

POINTS: Final[Mapping[str, failpoints.Failpoint]] = {
    name: failpoints.declare(name)
    for name in (
        volume_binder.WRITTEN,
        dynamic_resources.WRITTEN,
        evictions.BEFORE,
        evictions.VICTIM_MARKED,
        evictions.VICTIM_AFTER,
    )
}
