"""Options of a pod spec's validation: feature gates, and the fields that the stored spec uses.

Source: kube-apiserver 1.36, pkg/api/pod GetValidationOptionsFromPodSpecAndMeta.
"""

from __future__ import annotations

from dataclasses import dataclass

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates

NUMERIC_OPERATORS = ("Lt", "Gt")


@dataclass(frozen=True, slots=True)
class PodOptions:
    """`numeric_tolerations`: the operators Lt and Gt are known (KEP-5471)."""

    numeric_tolerations: bool = False


def of(gates: Gates, old: core.PodSpec | None = None) -> PodOptions:
    """Return the options of a spec; `old` is the stored one, whose values stay valid."""
    return PodOptions(
        numeric_tolerations=gates.enabled("TaintTolerationComparisonOperators")
        or (old is not None and any(each.operator in NUMERIC_OPERATORS for each in old.tolerations))
    )
