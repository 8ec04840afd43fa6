"""The invariants that do not count with the perturbations of a case, or count at rest only. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.tolerance import hang_seconds, silent_watches
from nominee.lab.history.invariants.table import OF_NOW, OF_REPORTS, OF_VIEWS
from nominee.lab.scenario.fields.options import InvariantException
from nominee.lab.scenario.format.model import Scenario

_AT_REST: Final = tuple(
    InvariantException(name=name, reason="a call hangs: it is checked when the cluster has come to rest")
    for name in sorted(OF_NOW | OF_REPORTS)
)

_SILENT: Final = tuple(
    InvariantException(name=name, reason="a watch is silent for longer than a process may see changes later")
    for name in sorted(OF_VIEWS)
)


def without_now(scenario: Scenario, case: Case) -> Scenario:
    """Return the scenario without the invariants of now and of reports, if a call may hang until its end.

    A kubelet, for example, saves an allocation before it reports it.
    """
    if not hang_seconds(case):
        return scenario
    return replace(scenario, except_invariants=(*scenario.except_invariants, *_AT_REST))


def without_views(scenario: Scenario, case: Case) -> Scenario:
    """Return the scenario without the invariants about the view of a process, if a watch is silent."""
    if not silent_watches(case):
        return scenario
    return replace(scenario, except_invariants=(*scenario.except_invariants, *_SILENT))
