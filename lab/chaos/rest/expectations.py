"""The findings at rest that a scenario asks for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.state import ANY_NODE, Expectations
from nominee.lab.history.invariants.pod_rules.late_rejections import OUT_OF
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.comparison import NONE, matches
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.observing.base import Condition, leaves
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.node_group import ResizeGroup
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

_PHASE = ".status.phase"
_RACES: Final = {
    ("metadata", "labels"): "NodeAffinity",
    ("spec", "taints"): "TaintToleration",
    ("status", "capacity"): OUT_OF,
    ("status", "allocatable"): OUT_OF,
}
"""How the reasons begin for which a kubelet refuses a pod that is bound while a field of its node changes.

One that is restarted refuses pods that its node does not match any more (kubernetes/kubernetes#124586, open
in 1.36). A resize, or a pod that its author has put on the node, may exceed the node together with a binding
(KEP-1287, "Scheduler and API Server Interaction")."""


def expectations_of(scenario: Scenario) -> Expectations:
    """Return the states that a scenario asks for.

    Pods that it waits for or expects as Failed, its changes that may fail some, and node groups whose
    instances it deletes.
    """
    conditions = [
        leaf
        for condition in _conditions(scenario)
        for leaf in leaves(condition)
        if isinstance(leaf, ObjectCondition) and _is_about_failure(leaf)
    ]

    def rejects(pod: core.Pod) -> bool:
        return any(condition.chooses(kinds.POD, pod) for condition in conditions)

    actions = [step.action for step in scenario.steps]
    emptied = {each.group for each in actions if isinstance(each, ResizeGroup) and each.delete}
    races = frozenset(_races(scenario))
    return Expectations(rejects=rejects, races=races, emptied_groups=frozenset(emptied))


def _races(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for step in scenario.steps:
        match step.action:
            case Patch(subresource="resize"):
                yield ANY_NODE, OUT_OF
            case Patch() as patch if names.kind(patch.kind) is kinds.NODE:
                changed = (reason for field, reason in _RACES.items() if _changes(patch.patch, *field))
                yield from ((_node(patch.name), reason) for reason in changed)
            case Apply() as apply:
                pods = (each.get("spec", {}) for each in apply.manifests if each["kind"] == "Pod")
                yield from ((_node(spec["nodeName"]), OUT_OF) for spec in pods if spec.get("nodeName"))


def _node(name: str) -> str:
    """Return the name of a node, ANY_NODE if only the run knows it."""
    return ANY_NODE if not name or "$" in name else name


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
