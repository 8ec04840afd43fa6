"""The disruption controller's shell: keeps the status of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.disruption.budget import (
    Scale,
    SyncError,
    failed_status,
    not_deleted,
    recheck_seconds,
    stale_disruption,
    status_of,
    unmanaged,
)
from controllers.shell.controller import Context, Controller
from machinery.api import kinds
from machinery.api.objects import ObjectKey, controller_of, set_condition
from machinery.api.pb import core, policy
from machinery.api.selectors import LabelSelector
from machinery.runtime.clock import to_time
from machinery.wire.codec import to_json

_UNMANAGED = (
    "The budget selects pods that no controller owns, and it is given as maxUnavailable or a percentage, so "
    "its status cannot be right. Set spec.minAvailable to an integer to count such pods."
)


class Disruption(Controller):
    """Counts healthy pods for each budget, so that the API server knows which evictions to allow."""

    name = "disruption-controller"
    component = "controllermanager"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.budgets = self.watch(kinds.POD_DISRUPTION_BUDGET)
        self.sets = context.informers.of(kinds.REPLICA_SET)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_add=self._pod_changed,
            on_update=self._pod_updated,
            on_delete=lambda pod, _stale: self._pod_changed(pod),
        )
        self.sets.add_handler(
            on_update=lambda old, new: (
                self._namespace_changed(new.metadata.namespace)
                if old.spec.replicas != new.spec.replicas
                else None
            )
        )

    def _pod_updated(self, old: core.Pod, new: core.Pod) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._pod_changed(old)
        self._pod_changed(new)

    def _pod_changed(self, pod: core.Pod) -> None:
        for budget in self.budgets.list(pod.metadata.namespace):
            if self._selects(budget, pod):
                self._enqueue(budget)

    def _namespace_changed(self, namespace: str) -> None:
        for budget in self.budgets.list(namespace):
            self._enqueue(budget)

    @staticmethod
    def _selects(budget: policy.PodDisruptionBudget, pod: core.Pod) -> bool:
        return budget.spec.HasField("selector") and LabelSelector.from_message(budget.spec.selector).matches(
            pod.metadata.labels
        )

    def _scale_of(self, pod: core.Pod) -> Scale | None:
        owner = controller_of(pod)
        if owner is None:
            return None
        if owner.kind == "ReplicaSet":
            replica_set = self.sets.get(owner.name, pod.metadata.namespace)
            if replica_set is not None and replica_set.metadata.uid == owner.uid:
                return Scale(owner.uid, replica_set.spec.replicas)
            return None
        kind = kinds.by_kind(owner.apiVersion, owner.kind)
        return Scale(owner.uid, None, kind.group_resource if kind else f"{owner.apiVersion} {owner.kind}")

    async def reconcile(self, key: ObjectKey) -> float | None:
        budget: policy.PodDisruptionBudget | None = self.budgets.get(key.name, key.namespace)
        if budget is None:
            return None
        pods = [pod for pod in self.pods.list(key.namespace) if self._selects(budget, pod)]
        scales = {pod.metadata.uid: self._scale_of(pod) for pod in pods}
        now = to_time(self.clock.now())
        problem = ""
        try:
            status = status_of(budget, pods, scales, now)
        except SyncError as error:
            problem = str(error)
            status = failed_status(budget, problem, now)
        if to_json(status) != to_json(budget.status):
            new = policy.PodDisruptionBudget()
            new.CopyFrom(budget)
            new.status.CopyFrom(status)
            await self.client.update(new, subresource="status")
            # Only what is new is told, once it is written: the write has the budget looked at again.
            if problem:
                note = f"Failed to calculate the number of expected pods: {problem}"
                self._tell(budget, "Warning", "CalculateExpectedPodCountFailed", note)
            else:
                self._tell_of_pods(budget, pods, now.seconds)
        return recheck_seconds(status, now.seconds)

    def _tell(self, about: object, type_: str, reason: str, note: str) -> None:
        self.recorder.event(about, type_, reason, action="", note=note)

    def _tell_of_pods(
        self, budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], now_seconds: float
    ) -> None:
        namespace = budget.metadata.namespace
        if not pods:
            self._tell(budget, "Normal", "NoPods", "No matching pods found")
        if unmanaged(budget, pods):
            self._tell(budget, "Warning", "UnmanagedPods", _UNMANAGED)
        for pod in not_deleted(budget, pods, now_seconds):
            note = f"Pod was expected by PDB {namespace}/{budget.metadata.name} to be deleted but it wasn't"
            self._tell(pod, "Warning", "NotDeleted", note)


class StaleDisruption(Controller):
    """Takes DisruptionTarget back from pods that were to be disrupted and still live two minutes later."""

    name = "disruption-controller-stale-pods"
    component = "controllermanager"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(on_add=self._seen, on_update=lambda _old, new: self._seen(new))

    def _seen(self, pod: core.Pod) -> None:
        if pod.status.conditions and stale_disruption(pod, self.clock.now()) is not None:
            self._enqueue(pod)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod: core.Pod | None = self.pods.get(key.name, key.namespace)
        wait = stale_disruption(pod, self.clock.now()) if pod is not None else None
        if pod is None or wait is None:
            return None
        if wait > 0:
            return wait
        new = core.Pod()
        new.CopyFrom(pod)
        void = core.PodCondition(type="DisruptionTarget", status="False")
        if set_condition(new.status.conditions, void, to_time(self.clock.now())):
            await self.client.update(new, subresource="status")
        return None
