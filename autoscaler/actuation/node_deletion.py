"""Deletion of one tainted node: the effects of `deletion_states` as orders. Pure.

Source: cluster-autoscaler 1.36, core/scaledown/actuation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nominee.autoscaler.actuation.deletion_states import DeletionEvent, DeletionState, Effect, transition_of
from nominee.autoscaler.actuation.eviction import daemons_to_evict, drained_pods, evict_pods
from nominee.autoscaler.actuation.recheck import recheck
from nominee.autoscaler.orders import (
    CheckPodsOnNode,
    CleanToBeDeleted,
    CountScaledDownNode,
    DeleteNodes,
    ErrorType,
    Failure,
    Orders,
    ReadCachedNode,
    ReadNode,
    RecordEvents,
    Sleep,
)
from nominee.autoscaler.planning.objects.annotation_keys import DELAY_DELETION_PREFIX
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core

EVICTION_HEADROOM_SECONDS = 30.0
POLL_SECONDS = 5.0


class NodeDeletion:
    """The deletion of a node of a group, with or without a drain."""

    def __init__(self, state: AutoscalerState, node: core.Node, group: str, *, drain: bool) -> None:
        self._autoscaler, self._options, self._clock = state, state.options, state.clock
        self._node, self._group, self._drain = node, group, drain
        self._name = node.metadata.name
        self.state = DeletionState.TAINTED
        self._log: tuple[DeletionEvent, ...] = ()
        self._events = Events()
        self._pods: tuple[core.Pod, ...] = ()  # on the node; once evicted, those that must terminate
        self._deadline = 0.0  # of the present state, in seconds of `Clock.monotonic`
        self._error = ""
        self._effects: Mapping[Effect, Callable[[], Orders[DeletionEvent | None]]] = {
            Effect.WAIT_AFTER_TAINT: self._wait_after_taint,
            Effect.RECHECK: self._recheck,
            Effect.EVICT: self._evict,
            Effect.POLL: self._poll,
            Effect.CHECK_PODS: self._check_pods,
            Effect.CHECK_ANNOTATION: self._check_annotation,
            Effect.DELETE: self._delete,
            Effect.REPORT_DELETED: self._report_deleted,
            Effect.UNTAINT: self._untaint,
            Effect.REPORT_FAILED: self._report_failed,
        }

    def run(self) -> Orders[None]:
        """Delete the node; if it must stay, remove its taint and report why."""
        event: DeletionEvent | None = DeletionEvent.STARTED
        try:
            while event is not None:
                transition = transition_of(self.state, event, self._log)
                self.state, self._log = transition.to, (*self._log, event)
                for effect in transition.effects:
                    event = yield from self._effects[effect]()
        finally:
            self._autoscaler.deletions.end_deletion(self._name)

    def _fail(self, error: str) -> DeletionEvent:
        self._error = error
        return DeletionEvent.FAILED

    # Effects: each returns the event that follows if it is the last of its transition

    def _wait_after_taint(self) -> Orders[DeletionEvent | None]:
        delay = self._options.node_delete_delay_after_taint
        if delay > 0:
            yield from Sleep(delay)
        return None

    def _recheck(self) -> Orders[DeletionEvent | None]:
        fresh = yield from ReadNode(self._name)
        if isinstance(fresh, Failure):
            return self._fail(fresh.message)
        result = recheck(self._options, fresh, self._name, self._clock.now(), drain=self._drain)
        if result.error:
            return self._fail(result.error)
        self._pods = result.pods
        return DeletionEvent.CONFIRMED

    def _evict(self) -> Orders[DeletionEvent | None]:
        """Evict the pods; from a node without a drain only DaemonSet pods, whose failures do not count."""
        options, required = self._options, list[core.Pod]()
        by_default = options.daemonset_eviction_for_empty_nodes
        if self._drain:
            by_default = options.daemonset_eviction_for_occupied_nodes
            required = drained_pods(self._pods)
        daemons = daemons_to_evict(self._pods, by_default=by_default)
        errors = yield from evict_pods(required, daemons, options, self._clock)
        if errors:
            text = f"Failed to drain node /{self._name}, due to following errors: [{' '.join(errors)}]"
            return self._fail(text)
        self._pods = tuple(required)
        grace = options.max_graceful_termination_sec
        self._deadline = self._clock.monotonic() + grace + EVICTION_HEADROOM_SECONDS
        return DeletionEvent.EVICTED

    def _poll(self) -> Orders[DeletionEvent | None]:
        seconds = POLL_SECONDS
        if self.state is DeletionState.TERMINATING:
            seconds = min(POLL_SECONDS, max(self._options.scan_interval / 2, 0.05))
        yield from Sleep(seconds)
        return None

    def _check_pods(self) -> Orders[DeletionEvent | None]:
        if self._pods:
            left = yield from CheckPodsOnNode(self._name, self._pods)
            # A pod that cannot be read may be there: upstream waits on, too (waitPodsToDisappear).
            self._pods = self._pods if isinstance(left, Failure) else left
        if not self._pods:
            self._deadline = self._clock.monotonic() + self._options.node_deletion_delay_timeout
            return DeletionEvent.PODS_GONE
        if self._clock.monotonic() >= self._deadline:
            return self._fail(f"Failed to drain node /{self._name}: pods remaining after timeout")
        return DeletionEvent.PODS_REMAIN

    def _check_annotation(self) -> Orders[DeletionEvent | None]:
        if self._clock.monotonic() >= self._deadline:
            return DeletionEvent.NOT_HELD
        node = yield from ReadCachedNode(self._name)
        keys = node.metadata.annotations if node is not None else ()
        return (
            DeletionEvent.HELD
            if any(key.startswith(DELAY_DELETION_PREFIX) for key in keys)
            else DeletionEvent.NOT_HELD
        )

    def _delete(self) -> Orders[DeletionEvent | None]:
        failure = yield from DeleteNodes(self._group, (self._name,))
        now = self._clock.monotonic()
        if failure is None:
            self._autoscaler.registry.register_scale_down(self._group, now)
            self._autoscaler.cooldowns.group_deleted(self._group, now)
            yield from CountScaledDownNode(self._node, self._drain)
            return DeletionEvent.DELETED
        if failure.type is not ErrorType.CLOUD_PROVIDER:
            return self._fail(failure.message)
        self._autoscaler.cooldowns.group_failed(self._group, now)
        return self._fail(f"failed to delete nodes from group {self._group}: {failure}")

    def _report_deleted(self) -> Orders[DeletionEvent | None]:
        self._events.about(self._node, "Normal", "ScaleDown", "nodes removed by cluster autoscaler")
        if self._drain:
            text = f"Scale-down: node {self._name} removed with drain"
            self._events.status("Normal", "ScaleDown", text)
        else:
            text = f"Scale-down: empty node {self._name} removed"
            self._events.status("Normal", "ScaleDownEmpty", text)
        yield from RecordEvents(tuple(self._events))
        return None

    def _untaint(self) -> Orders[DeletionEvent | None]:
        """Remove the taint; if that fails, it is removed when the autoscaler starts again."""
        if (yield from CleanToBeDeleted(self._name)) is not None:
            self._autoscaler.doubtful_taints.add(self._name)
        return None

    def _report_failed(self) -> Orders[DeletionEvent | None]:
        action = "drain and delete node" if self._drain else "delete empty node"
        text = f"failed to {action}: {self._error}"
        self._events.about(self._node, "Warning", "ScaleDownFailed", text)
        yield from RecordEvents(tuple(self._events))
        return None
