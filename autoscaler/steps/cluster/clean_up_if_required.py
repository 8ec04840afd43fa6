"""Step: remove the taints that an earlier process left behind. Pure."""

from __future__ import annotations

from nominee.autoscaler.orders import CleanDeletionCandidate, CleanToBeDeleted, LoopError, Orders
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.taints import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    has_deletion_candidate,
    has_to_be_deleted,
)
from nominee.autoscaler.state import AutoscalerState


def clean_up_if_required(state: AutoscalerState, observation: Observation, events: Events) -> Orders[None]:
    """Remove ToBeDeleted taints in the first loop: an earlier process may have crashed during a deletion.

    With `--max-bulk-soft-taint-count=0` DeletionCandidate taints are, too: no later loop removes them.

    Raises:
        LoopError: a taint cannot be removed; the next loop tries again.
    """
    if state.is_cleaned_up:
        return
    for node in observation.nodes:
        name = node.metadata.name
        if not has_to_be_deleted(node) or state.view.group(name) is None or name in state.deletions.nodes():
            continue
        failure = yield from CleanToBeDeleted(name)
        if failure is not None:
            raise LoopError(failure)
        text = f"removed {TO_BE_DELETED} taint from node {name}"
        events.about(node, "Normal", "ClusterAutoscalerCleanup", text)
    for node in observation.nodes if state.options.max_bulk_soft_taint_count == 0 else ():
        if not has_deletion_candidate(node):
            continue
        failure = yield from CleanDeletionCandidate(node.metadata.name)
        if failure is not None:
            raise LoopError(failure)
        text = f"removed {DELETION_CANDIDATE} taint from node {node.metadata.name}"
        events.about(node, "Normal", "ClusterAutoscalerCleanup", text)
    state.is_cleaned_up = True
