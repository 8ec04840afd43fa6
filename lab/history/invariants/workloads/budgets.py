"""Evictions spend the allowance of a PodDisruptionBudget once each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.former_objects import LATE_SECONDS, FormerObjects
from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD, POD_DISRUPTION_BUDGET
from nominee.machinery.api.objects import condition_is, get_condition, is_terminating
from nominee.machinery.api.pb import core, policy
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.runtime.clock import from_time

PENDING_SECONDS: Final = 55.0
"""How long an allowed eviction stays counted at least: the controller forgets it after 120 s of its clock,
which may be a minute ahead."""
NEW_SECONDS: Final = 10.0
"""How long a component may not know a new pod or a new budget."""


class Budgets(Checker):
    """Follows disruptionsAllowed and disruptedPods, which an eviction and the controller write in turn.

    Both write the version that they have read. An eviction takes one disruption from what is allowed, and
    enters its pod; the controller keeps the pod until it terminates, and does not count it as healthy
    meanwhile. If each holds, evictions alone never take more pods than the budget allows. Between the writes
    of an eviction another pod may take the name: that one is evicted, and only the former one was counted.
    Source: kube-apiserver 1.36, EvictionREST; kube-controller-manager 1.36, disruption controller.
    """

    about = Invariant(
        name="budgets-are-spent-once",
        description="An eviction of a ready pod takes one disruption from its budget, whose status is of its "
        "newest generation, and counts until the pod terminates.",
        checks="writes of budgets, and evictions of pods that have one",
        exceptions={
            "new": f"the budget is not {NEW_SECONDS:.0f} s old, or the pod or the labels by which it is "
            "selected: a cache may not have them yet, so that the controller forgets the eviction",
            "stale-start": "WatchListClient is off: a controller manager that was restarted may begin "
            "with an older state",
            "former-object": f"an evicted pod whose predecessor of the name was deleted within "
            f"{LATE_SECONDS:.0f} s: an eviction that was counted for that one has no uid",
        },
    )
    kinds = frozenset({POD, POD_DISRUPTION_BUDGET})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._pods: dict[str, Revision] = {}
        self._created: dict[str, float] = {}
        """When a pod was created, or got labels that a budget selects, by key."""
        self._forgotten: dict[str, float] = {}
        """When a budget forgot the eviction of a pod that the controller's cache may not have had, by key."""
        self._budgets: dict[str, Revision] = {}
        self._selected: dict[str, float] = {}
        self._former = FormerObjects()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check a write of a budget, or an eviction."""
        if revision.kind is POD:
            yield from self._observe_pod(revision)
            return
        before, budget = revision.before(POD_DISRUPTION_BUDGET), revision.after(POD_DISRUPTION_BUDGET)
        if budget is None:
            self._budgets.pop(revision.key, None)
            return
        self._budgets[revision.key] = revision
        if before is None or before.metadata.uid != budget.metadata.uid or before.spec != budget.spec:
            self._selected[revision.key] = revision.time
        elif before.status != budget.status:
            self.checked += 1
            problem = _problem(before, budget.status)
            if problem:
                yield self.violation(problem, revision)
            yield from self._check_kept(before, budget, revision)

    def _check_kept(
        self, before: policy.PodDisruptionBudget, budget: policy.PodDisruptionBudget, revision: Revision
    ) -> Iterator[Violation]:
        for name, since in before.status.disruptedPods.items():
            if name in budget.status.disruptedPods or revision.time - from_time(since) > PENDING_SECONDS:
                continue
            seen = self._pods.get(POD.key(revision.namespace, name))
            pod = None if seen is None else seen.after(POD)
            if seen is None or pod is None or is_terminating(pod) or not selects(budget, pod):
                continue
            if self.served_time.between(self._created.get(seen.key, 0.0), revision.time) < NEW_SECONDS:
                self.allow("new")
                self._forgotten[seen.key] = revision.time
                continue
            if "controllers" not in self.settings.lists_newest:
                self.allow("stale-start")
                continue
            yield self.violation(
                f"the budget forgot the eviction of {seen.subject}, which does not terminate yet",
                seen,
                revision,
            )

    def _observe_pod(self, revision: Revision) -> Iterator[Violation]:
        self._former.observe(revision)
        pod, before = revision.after(POD), same_pod_before(revision)
        if pod is not None and (before is None or self._is_selected(before, pod, revision.namespace)):
            self._created[revision.key] = revision.time
        if pod is None:
            self._pods.pop(revision.key, None)
            self._created.pop(revision.key, None)
            self._forgotten.pop(revision.key, None)
            return
        self._pods[revision.key] = revision
        if before is not None and not _is_evicted(before) and _is_evicted(pod) and _is_protected(before):
            yield from self._check_eviction(before, revision)

    def _is_selected(self, before: core.Pod, pod: core.Pod, namespace: str) -> bool:
        """Return whether a budget selects a pod by its new labels that it did not select before."""
        return before.metadata.labels != pod.metadata.labels and any(
            not selects(budget, before) for _, budget in selecting(self._budgets.values(), pod, namespace)
        )

    def _check_eviction(self, before: core.Pod, revision: Revision) -> Iterator[Violation]:
        found = selecting(self._budgets.values(), before, revision.namespace)
        if len(found) != 1:
            return
        ((seen, budget),) = found
        self.checked += 1
        if revision.name in budget.status.disruptedPods:
            return
        if self._former.was_deleted(revision.key, revision.time, self.served_time):
            self.allow("former-object")
            return
        begun = max(self._selected.get(seen.key, 0.0), self._forgotten.get(revision.key, 0.0))
        if self.served_time.between(begun, revision.time) < NEW_SECONDS:
            self.allow("new")
            return
        yield self.violation(
            f"the ready pod was evicted, and {seen.subject} has not counted it", seen, revision
        )


def _problem(before: policy.PodDisruptionBudget, new: policy.PodDisruptionBudgetStatus) -> str:
    """Return how a write enters evictions without taking them from disruptionsAllowed, or ""."""
    old = before.status
    entered = [name for name, since in new.disruptedPods.items() if from_time(since) != _entered(old, name)]
    if entered and old.observedGeneration < before.metadata.generation:
        return (
            f"the eviction of {', '.join(sorted(entered))} was allowed by a status of generation "
            f"{old.observedGeneration}, and the budget has generation {before.metadata.generation}"
        )
    if not entered or new.disruptionsAllowed == old.disruptionsAllowed - len(entered) >= 0:
        return ""
    return (
        f"the eviction of {', '.join(sorted(entered))} was counted, and disruptionsAllowed went from "
        f"{old.disruptionsAllowed} to {new.disruptionsAllowed}"
    )


def _entered(status: policy.PodDisruptionBudgetStatus, name: str) -> float | None:
    return from_time(status.disruptedPods[name]) if name in status.disruptedPods else None


def selecting(
    budgets: Iterable[Revision], pod: core.Pod, namespace: str
) -> list[tuple[Revision, policy.PodDisruptionBudget]]:
    """Return the budgets that select a pod of a namespace, with their newest writes, of all newest writes."""
    return [
        (each, budget)
        for each in budgets
        if each.namespace == namespace
        and (budget := each.after(POD_DISRUPTION_BUDGET)) is not None
        and selects(budget, pod)
    ]


def selects(budget: policy.PodDisruptionBudget, pod: core.Pod) -> bool:
    """Return whether a budget of the pod's namespace selects it."""
    if not budget.spec.HasField("selector"):
        return False
    try:
        return LabelSelector.from_message(budget.spec.selector).matches(pod.metadata.labels)
    except SelectorError:
        return False


def _is_evicted(pod: core.Pod) -> bool:
    condition = get_condition(pod.status.conditions, "DisruptionTarget")
    return (
        condition is not None and condition.reason == "EvictionByEvictionAPI" and condition.status == "True"
    )


def _is_protected(pod: core.Pod) -> bool:
    """Return whether an eviction of the pod must be counted."""
    is_ready = condition_is(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and is_ready and not is_terminating(pod)
