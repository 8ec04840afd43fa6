"""The disruption controller's shell: keeps the status of PodDisruptionBudgets."""

from __future__ import annotations

from controllers.controller import Context, Controller
from controllers.workloads.budget import EVICTION_SECONDS_MAX, Scale, status_of
from machinery import kinds
from machinery.clock import to_time
from machinery.objects import ObjectKey, controller_of
from machinery.pb import core, policy
from machinery.selectors import LabelSelector
from machinery.wire.codec import to_json


class Disruption(Controller):
    """Counts healthy pods for each budget, so that the API server knows which evictions to allow."""

    name = "disruption-controller"

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
        return Scale(owner.uid, None)

    async def reconcile(self, key: ObjectKey) -> float | None:
        budget = self.budgets.get(key.name, key.namespace)
        if budget is None:
            return None
        pods = [
            pod
            for pod in self.pods.list(key.namespace)
            if pod.status.phase not in ("Succeeded", "Failed") and self._selects(budget, pod)
        ]
        scales = {pod.metadata.uid: self._scale_of(pod) for pod in pods}
        status = status_of(budget, pods, scales, to_time(self.clock.now()))
        if to_json(status) != to_json(budget.status):
            new = policy.PodDisruptionBudget()
            new.CopyFrom(budget)
            new.status.CopyFrom(status)
            await self.client.update(new, subresource="status")
        return EVICTION_SECONDS_MAX if status.disruptedPods else None
