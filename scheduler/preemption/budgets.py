"""Read pod disruption budgets for preemption, which prefers not to violate them, but may.

Source: kube-scheduler 1.36, DefaultPreemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nominee.machinery.api.pb import policy
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.victim_groups import Victim


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget, read once per preemption."""

    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]  # pods whose eviction the API server has counted already

    def covers(self, pod: PodInfo) -> bool:
        """Return whether evicting the pod counts against this budget; pods without labels never do."""
        return (
            self.namespace == pod.namespace
            and bool(pod.labels)
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )


def read_budgets(pdbs: Iterable[policy.PodDisruptionBudget]) -> list[Budget]:
    """Return the budgets; those whose selector is missing, empty or invalid cover nothing here."""
    budgets = []
    for pdb in pdbs:
        try:
            selector = LabelSelector.from_message(
                pdb.spec.selector if pdb.spec.HasField("selector") else None
            )
        except SelectorError:
            continue
        if selector.empty or selector.selects_nothing:
            continue
        budgets.append(
            Budget(
                pdb.metadata.namespace,
                selector,
                pdb.status.disruptionsAllowed,
                frozenset(pdb.status.disruptedPods),
            )
        )
    return budgets


def violations(victims: Iterable[Victim], budgets: Sequence[Budget], *, first_only: bool) -> list[int]:
    """Return for each victim how many of its pods would violate a budget if they were evicted.

    Budgets are used up in the order of the victims, over all potential ones. Pods of a group count on every
    node. With `first_only` a pod uses up no budget behind the first one that it violates (since
    kube-scheduler 1.37, FilterVictimsWithPDBViolation).
    """
    left = [budget.allowed for budget in budgets]
    return [sum(_violates(pod, budgets, left, first_only) for pod in victim.pods) for victim in victims]


def _violates(pod: PodInfo, budgets: Sequence[Budget], left: list[int], first_only: bool) -> bool:
    """Take the pod from the remaining disruptions of the budgets that cover it."""
    violates = False
    for index, budget in enumerate(budgets):
        if budget.covers(pod):
            left[index] -= 1
            violates = violates or left[index] < 0
            if violates and first_only:
                break
    return violates
