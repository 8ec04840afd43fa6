"""Functions for every object: its key, owners and conditions.

Works on any Kubernetes message with `metadata`. Nothing here changes a message unless its name says `set`.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.kinds import M, Object, of
from nominee.machinery.api.pb import core, meta

ADOPTED = "nominee.dev/adopted"
"""Annotation of a Node of another cluster: the version that its kubelet emulates; "" before there is one."""
_DIGITS_MAX = 39
"""Of a resourceVersion: 128 bits. Python refuses to read numbers of thousands of digits."""


class ObjectKey(NamedTuple):
    """The key of an object: namespace ("" for cluster-scoped kinds) and name; printed `ns/name`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """`ns/name` or `name`; ValueError as client-go's SplitMetaNamespaceKey words it."""
        parts = text.split("/")
        if len(parts) > 2:
            raise ValueError(f'unexpected key format: "{text}"')
        return cls("", parts[0]) if len(parts) == 1 else cls(parts[0], parts[1])


def metadata_of(obj: Object | Message) -> meta.ObjectMeta:
    """Return the metadata of a message that is known to be an object, as those of every kind are."""
    metadata: meta.ObjectMeta = obj.metadata  # type: ignore[union-attr]  # Message does not declare it
    return metadata


def key_of(obj: Object | Message) -> ObjectKey:
    """Return the object's key."""
    metadata: meta.ObjectMeta = obj.metadata  # type: ignore[union-attr]  # as above, without another call
    return ObjectKey(metadata.namespace, metadata.name)


def copy_of(message: M) -> M:
    """Return a copy of a message, which may be changed."""
    new = type(message)()
    new.CopyFrom(message)
    return new


def resource_version_of(obj: Object | Message) -> int:
    """Return the object's resourceVersion as a number; see `resource_version_number`."""
    metadata: meta.ObjectMeta = obj.metadata  # type: ignore[union-attr]  # as above
    return resource_version_number(metadata.resourceVersion)


def resource_version_number(text: str) -> int:
    """Return a resourceVersion as a number that orders the states of objects: 0 where it is not a number.

    Source: KEP-5504 (resource versions are comparable as decimal integers).
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0


def is_terminating(obj: Object) -> bool:
    """Return whether deletion has begun (deletionTimestamp is set)."""
    return obj.metadata.HasField("deletionTimestamp")


def has_ended(pod: core.Pod) -> bool:
    """Return whether all containers of a pod have ended for good."""
    return pod.status.phase in ("Succeeded", "Failed")


def controller_of(obj: Object) -> meta.OwnerReference | None:
    """Return the owner reference with `controller: true`, or None."""
    for reference in obj.metadata.ownerReferences:
        if reference.controller:
            return reference
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Return whether `owner` is the object's controller, by uid."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == owner.metadata.uid


def is_owned_by(obj: Object, owner: Object) -> bool:
    """Return whether any owner reference names `owner`, by uid."""
    return any(reference.uid == owner.metadata.uid for reference in obj.metadata.ownerReferences)


def owner_reference(owner: Any, *, controller: bool = True, block: bool = True) -> meta.OwnerReference:
    """Return a reference to `owner`, by default as its controller (metav1.NewControllerRef)."""
    kind = of(owner)
    return meta.OwnerReference(
        apiVersion=kind.api_version,
        kind=kind.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=controller,
        blockOwnerDeletion=block,
    )


class Condition(Protocol):
    """A row of `status.conditions` of any kind."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def lastTransitionTime(self) -> meta.Time: ...

    def HasField(self, field_name: Any) -> bool: ...


C = TypeVar("C", bound=Condition)


def get_condition(conditions: Iterable[C], condition_type: str) -> C | None:
    """Return the first condition of a type, or None. It is the shared row itself: copy before changing it."""
    for condition in conditions:
        if condition.type == condition_type:
            return condition
    return None


def condition_is(conditions: Iterable[Condition], condition_type: str, status: str = "True") -> bool:
    """Return whether the condition exists and has this status."""
    condition = get_condition(conditions, condition_type)
    return condition is not None and condition.status == status


def set_condition(conditions: MutableSequence[C], new: C, now: meta.Time) -> bool:
    """Add or replace the condition of `new.type` in place, and return whether something changed.

    The transition time becomes `now` when the status changes (or the condition is new) and is kept
    otherwise, whatever `new` carries. A condition that differs only in its transition time is no change;
    lastProbeTime is replaced.

    Source: podutil.UpdatePodCondition, 1.36.
    """
    old = get_condition(conditions, new.type)
    row: Any = type(new)()
    row.CopyFrom(new)
    if old is None or old.status != new.status or not old.HasField("lastTransitionTime"):
        row.lastTransitionTime.CopyFrom(now)
    else:
        row.lastTransitionTime.CopyFrom(old.lastTransitionTime)
    if old is None:
        # A repeated field of messages has append, but Python's MutableSequence needs insert: it has that too.
        conditions.append(row)
        return True
    if row == old:
        return False
    target: Any = old
    target.CopyFrom(row)
    return True


def remove_condition(conditions: MutableSequence[C], condition_type: str) -> bool:
    """Remove all conditions of a type in place, and return whether there was one."""
    before = len(conditions)
    for index in reversed(range(before)):
        if conditions[index].type == condition_type:
            del conditions[index]
    return len(conditions) != before
