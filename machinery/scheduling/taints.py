"""Taints, and the tolerations of pods.

Source: component-helpers' scheduling package, 1.36; Gt and Lt are KEP-5471.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import parse_int64

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""The key of the taint with which a user says that a node is shut down: its pods may be removed by force."""
# What keeps a pod away (PreferNoSchedule only costs score).
FORBIDDING: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})

_DECIMAL_INTEGER = re.compile(r"-?[1-9][0-9]*|0", re.ASCII)


def _compare(operator: str, tolerated: str, tainted: str) -> bool:
    """`Gt` tolerates taints above the toleration's value, `Lt` those below; only plain integers compare."""
    if not _DECIMAL_INTEGER.fullmatch(tolerated) or not _DECIMAL_INTEGER.fullmatch(tainted):
        return False
    bound, number = parse_int64(tolerated), parse_int64(tainted)
    if bound is None or number is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def tolerates(toleration: core.Toleration, taint: core.Taint, *, comparison: bool = False) -> bool:
    """Return whether one toleration covers one taint.

    An empty effect covers all effects, an empty key all keys. `comparison` is the gate
    TaintTolerationComparisonOperators.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == "Exists":
        return True
    if operator in ("Gt", "Lt"):
        return comparison and _compare(operator, toleration.value, taint.value)
    return False


def matching_toleration(
    tolerations: Iterable[core.Toleration], taint: core.Taint, *, comparison: bool = False
) -> core.Toleration | None:
    """Return the first toleration that covers the taint, or None."""
    return next((one for one in tolerations if tolerates(one, taint, comparison=comparison)), None)


def is_tolerated(
    tolerations: Iterable[core.Toleration], taint: core.Taint, *, comparison: bool = False
) -> bool:
    """Return whether any of the tolerations covers the taint."""
    return matching_toleration(tolerations, taint, comparison=comparison) is not None


def find_untolerated(
    taints: Iterable[core.Taint],
    tolerations: Collection[core.Toleration],
    *,
    effects: Collection[str] = FORBIDDING,
    comparison: bool = False,
) -> core.Taint | None:
    """Return the first taint with one of `effects` that no toleration covers, or None."""
    for taint in taints:
        if taint.effect in effects and not is_tolerated(tolerations, taint, comparison=comparison):
            return taint
    return None


def find_taint(taints: Iterable[core.Taint], key: str, effect: str = "") -> core.Taint | None:
    """Return the first taint with this key, and this effect unless "", or None."""
    for taint in taints:
        if taint.key == key and effect in ("", taint.effect):
            return taint
    return None
