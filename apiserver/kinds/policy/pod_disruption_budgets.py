"""PodDisruptionBudgets (kube-apiserver 1.36, pkg/apis/policy/validation and pkg/registry/policy)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import conditions
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.values.int_or_percent import int_or_percent, shown_value
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import policy
from nominee.machinery.wire import codec

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def _validate(obj: policy.PodDisruptionBudget) -> Iterator[Cause]:
    """The spec."""
    spec = obj.spec
    least, most = spec.HasField("minAvailable"), spec.HasField("maxUnavailable")
    if least and most:
        value = {
            "MinAvailable": shown_value(spec.minAvailable),
            "Selector": codec.to_json(spec.selector) if spec.HasField("selector") else None,
            "MaxUnavailable": shown_value(spec.maxUnavailable),
            "UnhealthyPodEvictionPolicy": (
                spec.unhealthyPodEvictionPolicy if spec.HasField("unhealthyPodEvictionPolicy") else None
            ),
        }
        yield field.invalid("spec", value, "minAvailable and maxUnavailable cannot be both set")
    if least:
        yield from int_or_percent("spec.minAvailable", spec.minAvailable)
    if most:
        yield from int_or_percent("spec.maxUnavailable", spec.maxUnavailable)
    if spec.HasField("selector"):
        yield from label_selector("spec.selector", spec.selector)
    if spec.HasField("unhealthyPodEvictionPolicy") and spec.unhealthyPodEvictionPolicy not in _POLICIES:
        yield field.not_supported(
            "spec.unhealthyPodEvictionPolicy", spec.unhealthyPodEvictionPolicy, _POLICIES
        )


def _validate_status(found: policy.PodDisruptionBudgetStatus) -> Iterator[Cause]:
    yield from conditions.conditions("status.conditions", found.conditions)
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        yield from field.non_negative(f"status.{name}", getattr(found, name))


class BudgetStrategy(Strategy[policy.PodDisruptionBudget]):
    """The main resource."""

    counts_generation = True
    validates_metadata = False

    def validate(self, new: policy.PodDisruptionBudget, env: Environment) -> list[Cause]:
        return list(_validate(new))

    def validate_update(
        self, new: policy.PodDisruptionBudget, old: policy.PodDisruptionBudget, env: Environment
    ) -> list[Cause]:
        return list(_validate(new))


class BudgetStatusStrategy(StatusStrategy[policy.PodDisruptionBudget]):
    def validate_update(
        self, new: policy.PodDisruptionBudget, old: policy.PodDisruptionBudget, env: Environment
    ) -> list[Cause]:
        return list(_validate_status(new.status))


def _row(budget: policy.PodDisruptionBudget, now: float) -> Cells:
    def limit(name: str) -> str:
        if not budget.spec.HasField(name):
            return "N/A"
        return str(shown_value(getattr(budget.spec, name)))

    allowed = budget.status.disruptionsAllowed
    limits = [limit("minAvailable"), limit("maxUnavailable")]
    return [*limits, allowed]


RULES = KindRules(
    kind=kinds.POD_DISRUPTION_BUDGET,
    strategy=BudgetStrategy(
        kinds.POD_DISRUPTION_BUDGET, {"status": BudgetStatusStrategy(kinds.POD_DISRUPTION_BUDGET)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Min Available", "The minimum number of pods that must be available."),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
        Column(
            "Allowed Disruptions",
            "Calculated number of pods that may be disrupted at this time.",
            "integer",
        ),
        AGE,
    ),
    needs_resource_version=True,
)
