"""A PostFilter plugin that reads the node's policy from the API server before it evicts for a resize.

It shows what closes the window in which a scheduler with an old view of the node evicts in spite of the
stored policy. In a profile it takes the place of DefaultPreemption.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

from nominee.machinery.api import kinds
from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.api.deferred_resize import is_disabled_by_node
from nominee.scheduler.framework.api.io_steps import Get, IoSteps
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import NodeStatuses, PluginWork, PostFilterResult, Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption


class LivePolicyPreemption(DefaultPreemption):
    """DefaultPreemption, with one GET of the node before the evictions for a deferred resize."""

    name = "LivePolicyPreemption"

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        result, status = super().post_filter(state, pod, statuses)
        if result is None or result.follow_up is None or not own_node(pod.pod):
            return result, status
        return replace(result, follow_up=partial(self._unless_disabled, pod, result.follow_up)), status

    def _unless_disabled(self, pod: PodInfo, evict: Callable[[], PluginWork]) -> IoSteps[Status | None]:
        """Evict, unless the stored node has a policy by now; its event then takes the pod off the queue."""
        steps = evict()
        assert isinstance(steps, Generator)  # DefaultPreemption's are
        node = yield Get(kinds.NODE, own_node(pod.pod))
        if is_disabled_by_node(node):
            next(steps)  # nothing is performed: the first step is dropped, and the evictions are over
            steps.close()
            return None
        return (yield from steps)
