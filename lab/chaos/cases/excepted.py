"""The invariants that do not count with the perturbations of a case, or count at rest only. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.tolerance import hang_seconds, is_among, silent_watches
from nominee.lab.history.invariants.table import OF_NOW, OF_REPORTS, OF_VIEWS
from nominee.lab.scenario.fields.options import InvariantException
from nominee.lab.scenario.format.model import Scenario

_AT_REST: Final = tuple(
    InvariantException(name=name, reason="a process may be late: it is checked at rest")
    for name in sorted(OF_NOW | OF_REPORTS)
)
_VIEW: Final = "a watch is silent for longer than this invariant allows a process to lag"


def without_now(scenario: Scenario, case: Case) -> Scenario:
    """Return the scenario without the invariants of now and of reports, if a process may be late.

    A kubelet, for example, saves an allocation before it reports it, and the call may hang.
    """
    if not hang_seconds(case):
        return scenario
    return replace(scenario, except_invariants=(*scenario.except_invariants, *_AT_REST))


def without_views(scenario: Scenario, case: Case) -> Scenario:
    """Return the scenario without the invariants about the view of components whose watches are silent."""
    blind = [each.component for each in silent_watches(case)]
    excepted = tuple(
        InvariantException(name=name, reason=_VIEW)
        for name, components in sorted(OF_VIEWS.items())
        if any(is_among(process, components) for process in blind)
    )
    return replace(scenario, except_invariants=(*scenario.except_invariants, *excepted))
