"""Fields of a pod that this version, or its gates, do not know: dropped on write unless stored before.

Source: kube-apiserver 1.36, DropDisabledPodFields; gates by version: machinery.features.gate_table.
"""

from __future__ import annotations

from typing import Literal

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates

_SPEC_FIELDS: tuple[tuple[Literal["resources", "schedulingGates", "schedulingGroup"], str], ...] = (
    ("resources", "PodLevelResources"),
    ("schedulingGates", "PodSchedulingReadiness"),
    ("schedulingGroup", "GenericWorkload"),
)


def _used(spec: core.PodSpec, name: Literal["resources", "schedulingGates", "schedulingGroup"]) -> bool:
    return bool(spec.schedulingGates) if name == "schedulingGates" else spec.HasField(name)


def drop(new: core.Pod, old: core.Pod | None, gates: Gates) -> None:
    """Remove in place the fields that the gates disable.

    `old` is the stored pod (None on create): fields that it uses are kept.
    """
    for name, gate in _SPEC_FIELDS:
        if not gates.enabled(gate) and _used(new.spec, name) and not (old and _used(old.spec, name)):
            new.spec.ClearField(name)
    if not gates.enabled("InPlacePodVerticalScaling"):
        _drop_resize(new, old)
    if not gates.enabled("PodObservedGenerationTracking"):
        _drop_observed_generation(new, old)


def _drop_resize(new: core.Pod, old: core.Pod | None) -> None:
    used = old is not None and any(container.resizePolicy for container in old.spec.containers)
    if not used:
        for container in (*new.spec.containers, *new.spec.initContainers):
            container.ClearField("resizePolicy")
    status_used = old is not None and any(
        row.allocatedResources or row.HasField("resources") for row in old.status.containerStatuses
    )
    if not status_used:
        for row in (*new.status.containerStatuses, *new.status.initContainerStatuses):
            row.ClearField("allocatedResources")
            row.ClearField("resources")
        new.status.ClearField("resize")


def _drop_observed_generation(new: core.Pod, old: core.Pod | None) -> None:
    if old is not None and old.status.observedGeneration:
        return
    if new.status.observedGeneration:
        new.status.observedGeneration = 0
    for condition in new.status.conditions:
        if condition.observedGeneration:
            condition.observedGeneration = 0
