"""The shapes of objects at rest: a disturbed run ends with the objects of the undisturbed one. No I/O.

A shape is what an object has beside its name, times and numbers: conditions, finalizers, taints, a node. So a
taint, a condition or an object that only a disturbance leaves behind is found, whatever it is. What processes
hold in memory is compared, too (lab/chaos/rest/memory.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.rest.memory import MEMORY, holdings, is_holding, may_be_fewer
from nominee.lab.chaos.rest.perpetual import runs_on
from nominee.lab.chaos.rest.state import Finding, State
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import apps, core, devices

_WITHOUT_SHAPE: Final = frozenset({kinds.LEASE, kinds.ENDPOINT_SLICE, kinds.CONTROLLER_REVISION})
"""A lease says who was the last leader; the slices of a service may be one or several. A template that is
replaced before its controller sees it has no revision."""


def shapes_of(state: State) -> dict[str, int]:
    """Return how many objects of each shape there are, and the holdings of the processes."""
    objects = (row for kind, row in state.objects.items() if has_shape(kind))
    return dict(Counter(_shape(each) for row in objects for each in row)) | holdings(state)


def other_shapes(state: State) -> Iterator[Finding]:
    """Find shapes of which there are more or fewer objects than after the undisturbed run.

    What processes hold is compared if the state has it.
    """
    expected = state.expectations.shapes
    if expected is None or runs_on(state):
        return
    present, has_memory = shapes_of(state), any(path == MEMORY for _, path in state.debug)
    for shape in sorted(present.keys() | expected.keys()):
        if is_holding(shape) and not has_memory:
            continue
        count, before = present.get(shape, 0), expected.get(shape, 0)
        if count > before or (count < before and not may_be_fewer(shape)):
            yield Finding(shape, f"is there {_times(count)}, and {_times(before)} after the undisturbed run")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _shape(obj: Message) -> str:
    metadata = metadata_of(obj)
    place = f" in {metadata.namespace}" if metadata.namespace else ""
    return f"a {kinds.of(obj).kind.lower()}{place} with ({', '.join(facts_of(obj))})"


def has_shape(kind: AnyKind) -> bool:
    """Return whether objects of a kind have a shape."""
    return kind not in _WITHOUT_SHAPE


def facts_of(obj: Message) -> Iterator[str]:
    """Yield the facts that make the shape of an object."""
    metadata = metadata_of(obj)
    if metadata.HasField("deletionTimestamp"):
        yield "deletionTimestamp"
    yield from sorted(f"finalizer {name}" for name in metadata.finalizers)
    yield from sorted(f"owner {owner.kind}" for owner in metadata.ownerReferences)
    yield from sorted(f"annotation {key}" for key in metadata.annotations)
    yield from sorted(f"label {key}" for key in metadata.labels)
    yield from _conditions(obj)
    match obj:
        case core.Pod():
            yield obj.status.phase
            yield from ["nodeName"] if obj.spec.nodeName else []
            yield from ["nominatedNodeName"] if obj.status.nominatedNodeName else []
            yield from ["restarts"] if any(each.restartCount for each in obj.status.containerStatuses) else []
        case core.Node():
            yield from sorted(f"taint {taint.key}:{taint.effect}" for taint in obj.spec.taints)
        case core.PersistentVolume() | core.PersistentVolumeClaim() | core.Namespace():
            yield obj.status.phase
        case devices.ResourceClaim():
            yield "allocated" if obj.status.HasField("allocation") else "not allocated"
            yield f"reserved for {len(obj.status.reservedFor)}"
        case apps.ReplicaSet() | apps.Deployment():
            yield f"replicas {obj.spec.replicas}"


def _conditions(obj: Message) -> list[str]:
    status: Message | None = getattr(obj, "status", None)
    conditions = getattr(status, "conditions", ())
    return sorted(f"{each.type}={each.status}" for each in conditions)
