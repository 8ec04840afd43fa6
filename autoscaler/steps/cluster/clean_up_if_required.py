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
from nominee.machinery.api.pb import core


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
        if (
            has_to_be_deleted(node)
            and state.view.group(name) is not None
            and name not in state.deletions.nodes()
        ):
            yield from _clean(node, CleanToBeDeleted(name), TO_BE_DELETED, events)
    for node in observation.nodes if state.options.max_bulk_soft_taint_count == 0 else ():
        if has_deletion_candidate(node):
            yield from _clean(node, CleanDeletionCandidate(node.metadata.name), DELETION_CANDIDATE, events)
    state.is_cleaned_up = True


def _clean(
    node: core.Node, order: CleanToBeDeleted | CleanDeletionCandidate, taint: str, events: Events
) -> Orders[None]:
    """Remove a taint from a node. Raises: LoopError."""
    failure = yield from order
    if failure is not None:
        raise LoopError(failure)
    text = f"removed {taint} taint from node {node.metadata.name}"
    events.about(node, "Normal", "ClusterAutoscalerCleanup", text)
