"""Step: write the status ConfigMap at the end of a loop. Pure."""

from __future__ import annotations

from nominee.autoscaler.orders import Orders, WriteStatus
from nominee.autoscaler.planning.node_groups.status import ScaleDownCandidates, initializing
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState

STATUS_SECONDS_MIN = 1.0
"""The status is not written more often, however short `--scan-interval` is."""


def write_status(state: AutoscalerState, result: LoopResult) -> Orders[None]:
    """Write the status of the cluster as this loop found it; a failure is in the result."""
    at = result.at
    since = at.monotonic - state.status_written_at
    if not state.options.write_status_configmap or since < STATUS_SECONDS_MIN:
        return
    state.status_written_at = at.monotonic
    if result.empty_cluster:
        document = initializing(at.now, result.empty_cluster)
    else:
        planner = state.planner
        candidates = ScaleDownCandidates(nodes=planner.unneeded_names(), planned_at=planner.updated_at)
        document = state.status.build(state.registry, state.view, candidates, at)
    failure = yield from WriteStatus(document, at.now)
    if failure is not None:
        result.status_error = failure.message
