"""PodDisruptionBudgets during a simulation of node removals. Pure.

Source: cluster-autoscaler 1.36, core/scaledown/pdb.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nominee.machinery.api.pb import core, policy
from nominee.machinery.api.selectors import LabelSelector


@dataclass(slots=True)
class _Budget:
    namespace: str
    selector: LabelSelector
    disruptions_allowed: int

    def matches(self, pod: core.Pod) -> bool:
        return self.namespace == pod.metadata.namespace and self.selector.matches(pod.metadata.labels)


class RemainingPdbTracker:
    """Tracks each budget's `status.disruptionsAllowed` after the simulated removals."""

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

    def has_matching(self, pod: core.Pod) -> bool:
        """Report whether any budget selects the pod."""
        return any(budget.matches(pod) for budget in self._budgets)

    def is_exhausted(self, pod: core.Pod) -> bool:
        """Report whether a budget that selects the pod allows no more disruptions."""
        return any(budget.disruptions_allowed < 1 and budget.matches(pod) for budget in self._budgets)

    def can_remove_at_once(self, pods: Iterable[core.Pod]) -> bool:
        """Report whether the budgets allow to evict all these pods together."""
        removed = list(pods)
        return all(
            sum(budget.matches(pod) for pod in removed) <= max(budget.disruptions_allowed, 0)
            for budget in self._budgets
        )

    def remove(self, pods: Iterable[core.Pod]) -> None:
        """Count these pods as disrupted."""
        for pod in pods:
            for budget in self._budgets:
                if budget.matches(pod):
                    budget.disruptions_allowed -= 1
