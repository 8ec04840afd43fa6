"""What PodDisruptionBudgets still allow, while a simulation spends it.

Source: cluster-autoscaler 1.36, pdb.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from machinery.api.pb import core, policy
from machinery.api.selectors import LabelSelector


@dataclass(slots=True)
class _Budget:
    namespace: str
    selector: LabelSelector
    allowed: int

    def covers(self, pod: core.Pod) -> bool:
        return self.namespace == pod.metadata.namespace and self.selector.matches(pod.metadata.labels)


class RemainingBudgets:
    """All budgets, with what is left of `status.disruptionsAllowed`."""

    def __init__(self, budgets: Iterable[policy.PodDisruptionBudget]) -> None:
        self._budgets = [
            _Budget(
                budget.metadata.namespace,
                LabelSelector.from_message(
                    budget.spec.selector if budget.spec.HasField("selector") else None
                ),
                budget.status.disruptionsAllowed,
            )
            for budget in budgets
        ]

    def covering(self, pod: core.Pod) -> bool:
        """Whether any budget is about the pod."""
        return any(budget.covers(pod) for budget in self._budgets)

    def exhausted_for(self, pod: core.Pod) -> bool:
        """Whether a budget of the pod allows nothing any more."""
        return any(budget.allowed < 1 and budget.covers(pod) for budget in self._budgets)

    def allow_at_once(self, pods: Iterable[core.Pod]) -> bool:
        """Whether all these pods may go without any waiting for another."""
        moved = list(pods)
        return all(
            sum(budget.covers(pod) for pod in moved) <= max(budget.allowed, 0) for budget in self._budgets
        )

    def spend(self, pods: Iterable[core.Pod]) -> None:
        """These pods are going to go."""
        for pod in pods:
            for budget in self._budgets:
                if budget.covers(pod):
                    budget.allowed -= 1
