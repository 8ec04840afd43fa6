"""The disruption controller's shell: keeps the status of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from nominee.controllers.disruption.budget import (
    SCALED,
    Scale,
    Scaled,
    SyncError,
    budget_events,
    failed_status,
    failure_event,
    has_failed,
    not_deleted,
    not_deleted_event,
    recheck_seconds,
    scale_of,
    selects,
    stale_disruption,
    status_of,
    without_stale_disruption,
)
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, controller_of
from nominee.machinery.api.pb import core, policy
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import to_time


class Disruption(Controller):
    """Counts healthy pods for each budget, so that the API server knows which evictions to allow."""

    name = "disruption-controller"
    component = "controllermanager"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.budgets = self.watch(kinds.POD_DISRUPTION_BUDGET)
        self.owners = {kind.kind: cast("Informer[Scaled]", context.informers.of(kind)) for kind in SCALED}
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_add=self._pod_changed,
            on_update=self._pod_updated,
            on_delete=lambda pod, _stale: self._pod_changed(pod),
        )
        for informer in self.owners.values():
            informer.add_handler(on_add=self._owner_added, on_update=self._owner_updated)

    def _pod_updated(self, old: core.Pod, new: core.Pod) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._pod_changed(old)
        self._pod_changed(new)

    def _pod_changed(self, pod: core.Pod) -> None:
        for budget in self.budgets.list(pod.metadata.namespace):
            if selects(budget, pod):
                self._enqueue(budget)

    def _owner_added(self, owner: Scaled) -> None:
        """Queue the budgets that could not be counted: the watch may have shown the pods before their owner.

        Upstream waits for the next event of a pod, which may not come.
        """
        for budget in self.budgets.list(owner.metadata.namespace):
            if has_failed(budget):
                self._enqueue(budget)

    def _owner_updated(self, old: Scaled, new: Scaled) -> None:
        """Queue the budgets whose pods have another scale: the owner has another size, or another owner."""
        if old.spec.replicas != new.spec.replicas or controller_of(old) != controller_of(new):
            for budget in self.budgets.list(new.metadata.namespace):
                self._enqueue(budget)

    def _scale_of(self, pod: core.Pod) -> Scale | None:
        return scale_of(pod, lambda kind, name: self.owners[kind].get(name, pod.metadata.namespace))

    async def reconcile(self, key: ObjectKey) -> float | None:
        budget = self.budgets.get(key.name, key.namespace)
        if budget is None:
            return None
        pods = [pod for pod in self.pods.by_index("namespace", key.namespace) if selects(budget, pod)]
        scales = {pod.metadata.uid: self._scale_of(pod) for pod in pods}
        now = to_time(self.clock.now())
        problem = ""
        try:
            status = status_of(budget, pods, scales, now)
        except SyncError as error:
            problem = str(error)
            status = failed_status(budget, problem, now)
        if await self.write_status(budget, status) is not None:
            # Events follow a write only: the write makes the watch queue the budget again.
            if problem:
                self.record(budget, failure_event(problem))
            else:
                self._record_events(budget, pods, now.seconds)
        return recheck_seconds(status, now.seconds)

    def _record_events(
        self, budget: policy.PodDisruptionBudget, pods: Sequence[core.Pod], now_seconds: float
    ) -> None:
        for event in budget_events(budget, pods):
            self.record(budget, event)
        for pod in not_deleted(budget, pods, now_seconds):
            self.record(pod, not_deleted_event(budget))


class StaleDisruption(Controller):
    """Sets DisruptionTarget=False on pods that were not deleted within two minutes."""

    name = "disruption-controller-stale-pods"
    component = "controllermanager"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.pods.on_change(self._seen, deletions=False)

    def _seen(self, pod: core.Pod) -> None:
        if pod.status.conditions and stale_disruption(pod, self.clock.now()) is not None:
            self._enqueue(pod)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self.pods.get(key.name, key.namespace)
        wait = stale_disruption(pod, self.clock.now()) if pod is not None else None
        if pod is None or wait is None:
            return None
        if wait > 0:
            return wait
        new = without_stale_disruption(pod, to_time(self.clock.now()))
        if new is not None:
            await self.client.update(new, subresource="status")
        return None
