"""Keep pods with a deferred resize in the scheduling queue, and run their scheduling cycle.

Such a pod is bound, so it is in the cache as well: the event handlers change the cache first and the queue
after it. Its cycle considers its own node only, never binds, and ends in one of three results: the resize
does not fit and pods of lower priority are evicted; it does not fit and nothing helps; or it fits, and the
pod is parked until its kubelet has done the resize. Source: KEP-5836; kube-scheduler 1.37.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from nominee.machinery.api.pb import core
from nominee.scheduler.attempts.pod import (
    AfterFailure,
    Failed,
    after_no_fit,
    failed_by,
    failed_without_fit_error,
)
from nominee.scheduler.dispatch.api_calls import PodStatusPatch
from nominee.scheduler.framework.api.deferred_resize import (
    FITS,
    PREEMPTION_DISABLED,
    is_deferred_resize,
    is_disabled_by_kubelet,
    is_disabled_by_node,
)
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.resize_preemption import Flavour, ResizePreemption, Tracking
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.scheduling.algorithm import AlgorithmError, pre_filter
from nominee.scheduler.framework.scheduling.diagnosis import Diagnosis, FitError, NodeStatusTable
from nominee.scheduler.framework.types import PodInfo

SKIPPED_PLUGINS: Final = frozenset(
    {
        "DynamicResources",
        "GangScheduling",
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeResourcesBalancedAllocation",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""The in-tree plugins that decide only where a pod may run: a resize runs all others."""

_NOT_DEFERRED: Final = "the resize is not deferred any more"
_OTHER_NODE: Final = Status(
    Code.UnschedulableAndUnresolvable, ("node(s) didn't satisfy plugin(s) [NodeName]",), "NodeName"
)
_PARKED: Final = Status(Code.UnschedulableAndUnresolvable, (FITS,), "NodeResourcesFit")


class QueueCalls(Protocol):
    """The methods of the queue that deferred resizes need."""

    def add(self, pod: PodInfo, now: float) -> None: ...

    def update(self, old: core.Pod, new: PodInfo, now: float) -> None: ...

    def delete(self, pod: core.Pod) -> None: ...


def is_resize(pod: core.Pod) -> bool:
    """Return whether an attempt at the pod is one at its resize: no other bound pod is ever queued."""
    return bool(pod.spec.nodeName)


def own_node(pod: core.Pod) -> str:
    """Return the only node that an attempt at a resize considers; "" for any other attempt."""
    return pod.spec.nodeName


class Resizes:
    """The resizes that the queue has: none, while preemption for them is off."""

    def is_queued(self, uid: str) -> bool:
        return False

    def pod_changed(self, old: core.Pod | None, new: core.Pod, now: float) -> None:
        pass

    def pod_gone(self, pod: core.Pod) -> None:
        pass

    def node_changed(self, node: core.Node, now: float) -> None:
        pass

    def after_failure(self, pod: PodInfo, failed: Failed) -> AfterFailure:
        raise AssertionError(f"{pod.key} is bound, and only deferred resizes bring bound pods into the queue")

    def run(self, framework: Framework, cache: Cache, state: CycleState, pod: PodInfo) -> Failed:
        raise AssertionError(f"{pod.key} is bound, and only deferred resizes bring bound pods into the queue")


class DeferredResizes(Resizes):
    """The pods whose resize is deferred, by node, and which of them the queue has.

    `is_ours` returns whether a profile of that scheduler name exists; `resolved` is called for a pod that
    needs no preemption for its resize any more and is still nominated to its node. `report` gets each pod
    whose resize enters or leaves the queue, with the change and the reason.
    """

    def __init__(
        self,
        queue: QueueCalls,
        cache: Cache,
        options: ResizePreemption,
        *,
        is_ours: Callable[[str], bool],
        pod_info: Callable[[core.Pod], PodInfo] = PodInfo,
        resolved: Callable[[core.Pod], None] = lambda pod: None,
        report: Callable[[core.Pod, str, str], None] = lambda pod, change, reason: None,
    ) -> None:
        self.options = options
        self._queue = queue
        self._cache = cache
        self._is_ours = is_ours
        self._pod_info = pod_info
        self._resolved = resolved
        self._report = report
        self._deferred: dict[str, dict[str, core.Pod]] = {}  # node, uid
        self._queued: set[str] = set()

    def is_queued(self, uid: str) -> bool:
        """Return whether the pod is to be tried: it is in the queue, or in flight."""
        return uid in self._queued

    def pod_changed(self, old: core.Pod | None, new: core.Pod, now: float) -> None:
        """Take a bound pod, new or changed, after the cache has taken it."""
        uid, node_name = new.metadata.uid, new.spec.nodeName
        # A terminating pod makes room itself.
        wants_room = is_deferred_resize(new) and not new.metadata.HasField("deletionTimestamp")
        is_ours = self._is_ours(new.spec.schedulerName)
        if wants_room and is_ours:
            pods = self._deferred.setdefault(node_name, {})
            is_new, pods[uid] = uid not in pods, new
            self._sync(old, new, now, is_new=is_new)
            return
        self.pod_gone(new, "the pod is terminating" if is_deferred_resize(new) else _NOT_DEFERRED)
        tracks = self.options.tracking is Tracking.NOMINATED_NODE_NAME
        if tracks and is_ours and new.status.nominatedNodeName == node_name:
            self._resolved(new)

    def pod_gone(self, pod: core.Pod, reason: str = "the pod is deleted") -> None:
        """Forget a pod: it is deleted, or its resize is not deferred any more."""
        pods = self._deferred.get(pod.spec.nodeName)
        if pods is not None and pods.pop(pod.metadata.uid, None) is not None and not pods:
            del self._deferred[pod.spec.nodeName]
        self._leave_queue(pod, reason)

    def node_changed(self, node: core.Node, now: float) -> None:
        """Apply the node's policy to its deferred pods, after the cache has taken the node.

        The KEP's scheduler reads the node itself for kubelets that do not know the policy (KEP-5836,
        "Version Skew Strategy"). That of 1.37 keeps the pods queued: a plugin rejects them.
        """
        if self.options.flavour is Flavour.KEP:
            for pod in self._deferred.get(node.metadata.name, {}).values():
                self._sync(pod, pod, now)

    def _sync(self, old: core.Pod | None, new: core.Pod, now: float, *, is_new: bool = False) -> None:
        uid = new.metadata.uid
        forbidden = self._why_forbidden(new)
        if forbidden:
            self._leave_queue(new, forbidden)
            if is_new:
                self._report(new, "not queued", forbidden)
        elif uid not in self._queued:
            self._queued.add(uid)
            self._report(new, "queued", "preemption may make room for it")
            self._queue.add(self._pod_info(new), now)
        elif old is not None and old is not new:
            self._queue.update(old, self._pod_info(new), now)

    def _leave_queue(self, pod: core.Pod, reason: str) -> None:
        if pod.metadata.uid in self._queued:
            self._report(pod, "left the queue", reason)
            self._queued.discard(pod.metadata.uid)
            self._queue.delete(pod)

    def _why_forbidden(self, pod: core.Pod) -> str:
        """Return the reason why preemption for the resize is disabled, or ""."""
        if self.options.flavour is not Flavour.KEP:
            return ""
        if is_disabled_by_kubelet(pod):
            return f"the pod has the condition {PREEMPTION_DISABLED}"
        node = self._cache.get_node(pod.spec.nodeName)
        is_disabled = is_disabled_by_node(None if node is None else node.node)
        return "the node's podPreemptionPolicy disables preemption for resizes" if is_disabled else ""

    def run(self, framework: Framework, cache: Cache, state: CycleState, pod: PodInfo) -> Failed:
        """Run the scheduling cycle of a resize."""
        return run(framework, cache, state, pod, self.options)

    def after_failure(self, pod: PodInfo, failed: Failed) -> AfterFailure:
        """Return the consequences of a cycle: the pod is bound, and its PodScheduled stays True.

        Nothing is written to nominatedNodeName, but for Option 3 of the KEP. An event reports the result, as
        the KEP plans for beta; Kubernetes 1.37 records none. Source: KEP-5836, "Failure Handler Adjustments
        for Deferred Pods".
        """
        nominating = failed.nominating if self.options.tracking is Tracking.NOMINATED_NODE_NAME else None
        return AfterFailure(
            nominating=nominating,
            call=None if nominating is None else PodStatusPatch(pod=pod.pod, nominating=nominating),
            records_event=self.options.flavour is Flavour.KEP,
            is_queued_if_bound=self.is_queued(pod.uid),
        )


def run(
    framework: Framework, cache: Cache, state: CycleState, pod: PodInfo, options: ResizePreemption
) -> Failed:
    """Run the scheduling cycle of a deferred resize; it always ends with the pod back in the queue."""
    cache.update_snapshot(framework.snapshot)
    state.skip_plugins = SKIPPED_PLUGINS | framework.skips_deferred_resizes
    try:
        status = _fit(framework, state, pod)
    except FitError as error:
        return after_no_fit(framework, state, pod, error)
    except Exception as error:  # noqa: BLE001  # plugins come from outside; the pod is retried, the loop lives
        return failed_without_fit_error(error)
    if status is None:
        if options.flavour is Flavour.V1_37:
            permit, _ = framework.run_permit_plugins(state, pod, pod.pod.spec.nodeName)
            return failed_by(permit if permit is not None and not permit.is_wait else _PARKED)
        status = _PARKED
    return after_no_fit(framework, state, pod, _fit_error(framework, pod, status))


def _fit(framework: Framework, state: CycleState, pod: PodInfo) -> Status | None:
    """Return why the resize does not fit on the pod's own node; None when it does.

    Raises:
        NoNodesError, FitError, AlgorithmError: as in any scheduling cycle.
    """
    pre_filter(framework, state, pod, framework.snapshot)
    node = framework.snapshot.get(pod.pod.spec.nodeName)
    if node is None:
        return _OTHER_NODE
    status = framework.run_search(
        state, lambda: framework.run_filter_plugins_with_nominated_pods(state, pod, node)
    )
    if status is None or status.is_success:
        return None
    if not status.is_rejected:
        raise AlgorithmError(status)
    return status


def _fit_error(framework: Framework, pod: PodInfo, status: Status) -> FitError:
    snapshot = framework.snapshot
    diagnosis = Diagnosis(NodeStatusTable(snapshot, _OTHER_NODE))
    diagnosis.add_plugin(status)
    row = snapshot.row_of.get(pod.pod.spec.nodeName)
    if row is not None:
        diagnosis.statuses.set_row(row, status)
    return FitError(len(snapshot), diagnosis)
