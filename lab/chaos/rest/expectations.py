"""The findings at rest that a scenario asks for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.state import Expectations
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.comparison import NONE, matches
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.observing.base import Condition, leaves
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

_PHASE = ".status.phase"
_OUT_OF: Final = "OutOf"
"""Of OutOfcpu, OutOfpods and so on. A resize, or a pod that its author has put on the node, may exceed the
node together with a binding (KEP-1287, "Scheduler and API Server Interaction")."""
_RACES: Final = {
    ("metadata", "labels"): "NodeAffinity",
    ("spec", "taints"): "TaintToleration",
    ("status", "capacity"): _OUT_OF,
    ("status", "allocatable"): _OUT_OF,
}
"""How the reasons begin for which a kubelet refuses a pod that is bound while a field of its node changes.

One that is restarted refuses pods that its node does not match any more (kubernetes/kubernetes#124586, open
in 1.36)."""


def expectations_of(scenario: Scenario) -> Expectations:
    """Return the pods that a scenario waits for or expects as Failed, and its changes that may fail some."""
    conditions = [
        leaf
        for condition in _conditions(scenario)
        for leaf in leaves(condition)
        if isinstance(leaf, ObjectCondition) and _is_about_failure(leaf)
    ]

    def rejects(pod: core.Pod) -> bool:
        return any(condition.chooses(kinds.POD, pod) for condition in conditions)

    patches = [step.action for step in scenario.steps if isinstance(step.action, Patch)]
    of_nodes = [each.patch for each in patches if names.kind(each.kind) is kinds.NODE]
    races = {
        reason for (part, field), reason in _RACES.items() for each in of_nodes if _changes(each, part, field)
    }
    has_resize = any(each.subresource == "resize" for each in patches)
    manifests = [
        each for step in scenario.steps if isinstance(step.action, Apply) for each in step.action.manifests
    ]
    if has_resize or any(
        each["kind"] == "Pod" and each.get("spec", {}).get("nodeName") for each in manifests
    ):
        races.add(_OUT_OF)
    return Expectations(rejects=rejects, races=tuple(sorted(races)))


def _changes(patch: Json, part: str, field: str) -> bool:
    """Return whether a patch, an object or a list of operations, is about a field of a part of an object."""
    if isinstance(patch, list):
        operations = [each for each in patch if isinstance(each, dict)]
        paths = [str(each.get(name, "")) for each in operations for name in ("path", "from")]
        return any(path == f"/{part}" or path.startswith(f"/{part}/{field}") for path in paths)
    found = patch.get(part) if isinstance(patch, dict) else None
    return isinstance(found, dict) and field in found


def _conditions(scenario: Scenario) -> Iterator[Condition]:
    for step in scenario.steps:
        match step.action:
            case Expect(mode=Mode.NEVER):
                pass
            case Wait(condition=condition) | Expect(condition=condition):
                yield condition


def _is_about_failure(condition: ObjectCondition) -> bool:
    phase = condition.json_path.get(_PHASE)
    return phase is not None and condition.count != NONE and matches(phase, ["Failed"])
