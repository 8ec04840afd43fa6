"""Step: taint unneeded nodes with PreferNoSchedule, so that the scheduler uses them last. Pure.

Source: cluster-autoscaler 1.36, actuation's UpdateSoftDeletionTaints.
"""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import CleanDeletionCandidate, Order, Orders, Succeeded, TaintDeletionCandidate
from nominee.autoscaler.planning.objects.taints import has_deletion_candidate, has_to_be_deleted
from nominee.autoscaler.state import AutoscalerState


def update_soft_deletion_taints(state: AutoscalerState, context: LoopContext) -> Orders[None]:
    """Change the DeletionCandidate taint of at most `--max-bulk-soft-taint-count` nodes.

    After a failure the next loop tries again.
    """
    unneeded = set(state.planner.unneeded_names())
    changes: list[Order[Succeeded]] = []
    for node in context.nodes:
        name = node.metadata.name
        if has_to_be_deleted(node) or state.view.group(name) is None:
            continue
        if has_deletion_candidate(node) and name not in unneeded:
            changes.append(CleanDeletionCandidate(name))
        elif name in unneeded and not has_deletion_candidate(node):
            changes.append(TaintDeletionCandidate(name, context.result.at.now))
    for change in changes[: max(state.options.max_bulk_soft_taint_count, 0)]:
        yield from change
