"""The findings at rest that a scenario asks for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.chaos.rest.state import Expectations
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.comparison import NONE, matches
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.observing.base import Condition, leaves
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

_PHASE = ".status.phase"


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
    return Expectations(
        rejects=rejects,
        resizes=any(patch.subresource == "resize" for patch in patches),
        labels=any(
            names.kind(patch.kind) is kinds.NODE and _changes_labels(patch.patch) for patch in patches
        ),
    )


def _changes_labels(patch: Json) -> bool:
    """Return whether a patch, an object or a list of operations, is about labels."""
    if isinstance(patch, list):
        operations = [each for each in patch if isinstance(each, dict)]
        paths = [str(each.get(name, "")) for each in operations for name in ("path", "from")]
        return any(path == "/metadata" or path.startswith("/metadata/labels") for path in paths)
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    return isinstance(metadata, dict) and "labels" in metadata


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
