"""The garbage collector's shell: deletes objects whose owners are gone, and orphans or deletes dependents.

It has informers for the kinds of `COLLECTED`, and finds dependents by their owners' uids. Those that the API
server serves only with a feature gate are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from google.protobuf.message import Message

from nominee.controllers.garbage.ownership import (
    ORPHAN,
    Delete,
    DeleteDependents,
    DropFinalizer,
    DropReferences,
    OrphanDependents,
    Owner,
    decide,
    orphans_dependents,
    waits_for_dependents,
)
from nominee.controllers.shell.controller import UNSEEN_SECONDS, Context, Worker
from nominee.controllers.shell.owner_references import drop_references
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind, Object
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import meta
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime import failpoints

DELETE_BEFORE = failpoints.declare(
    "controllers.garbage.delete.before",
    "the owners of an object are gone, or wait for its deletion; it is not deleted",
)
ORPHAN_BEFORE = failpoints.declare(
    "controllers.garbage.orphan.before",
    "an object is deleted with orphaning; its dependents still refer to it",
)

_LEFT_ALONE: Final = frozenset({kinds.EVENT, *kinds.STORED_AS})
"""Events are the only kind that upstream leaves alone (ignoredResources); the others are views of another."""
COLLECTED: Final[tuple[Kind[Message], ...]] = tuple(
    kind for kind in kinds.KINDS if not (kind.gate or kind.read_only or kind in _LEFT_ALONE)
)
"""The kinds whose objects are collected, and whose finalizers of the propagation policies are removed."""


class ObjectReference(NamedTuple):
    """An object's kind, namespace and name."""

    kind: Kind[Message]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


def _reference(obj: Object) -> ObjectReference:
    return ObjectReference(kinds.of(cast("Message", obj)), obj.metadata.namespace, obj.metadata.name)


class GarbageCollector(Worker[ObjectReference]):
    """Reconciles objects whose owners are gone or wait for their dependents."""

    name = "garbage-collector-controller"
    component = "garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._informers: dict[Kind[Message], Informer[Any]] = {
            kind: context.informers.of(kind) for kind in COLLECTED
        }
        for informer in self._informers.values():
            informer.add_handler(
                on_add=self._changed,
                on_update=self._updated,
                on_delete=lambda obj, _stale: self._gone(obj),
            )

    # --- events of the watches ---

    def _changed(self, obj: Object) -> None:
        if is_terminating(obj):
            if waits_for_dependents(obj) or orphans_dependents(obj):
                self.queue.add(_reference(obj))
            self._queue_waiting_owners(obj)
        elif obj.metadata.ownerReferences and any(
            self._cached_state(reference, obj.metadata.namespace) is not Owner.SOLID
            for reference in obj.metadata.ownerReferences
        ):
            self.queue.add(_reference(obj))

    def _updated(self, old: Object, new: Object) -> None:
        self._changed(new)
        if old.metadata.ownerReferences != new.metadata.ownerReferences:
            # An owner may have waited for a reference of this object that is gone or no longer blocks.
            self._queue_waiting_owners(old)

    def _gone(self, obj: Object) -> None:
        for dependent in self._dependents(obj.metadata.uid):
            self.queue.add(_reference(dependent))
        self._queue_waiting_owners(obj)

    def _queue_waiting_owners(self, obj: Object) -> None:
        for reference in obj.metadata.ownerReferences:
            owner = self._owner(reference, obj.metadata.namespace)
            if owner is not None and waits_for_dependents(owner):
                self.queue.add(_reference(owner))

    # --- look-ups ---

    def _dependents(self, uid: str) -> list[Object]:
        return [obj for informer in self._informers.values() for obj in informer.by_index("owner", uid)]

    def _owner(self, reference: meta.OwnerReference, namespace: str) -> Object | None:
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        if kind is None or kind not in self._informers:
            return None
        owner: Object | None = self._informers[kind].get(reference.name, namespace if kind.namespaced else "")
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _cached_state(self, reference: meta.OwnerReference, namespace: str) -> Owner:
        """Return the state of an owner in the informers; ABSENT may mean that they are behind."""
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        if kind is None or (kind.namespaced and not namespace):
            return Owner.SOLID
        owner = self._owner(reference, namespace)
        if owner is None:
            return Owner.ABSENT
        return Owner.WAITING if waits_for_dependents(owner) else Owner.SOLID

    async def _states(self, obj: Object) -> dict[str, Owner]:
        """Return the state of each owner, by uid; ask the API server before one counts as absent."""
        states = {}
        namespace = obj.metadata.namespace
        for reference in obj.metadata.ownerReferences:
            state = self._cached_state(reference, namespace)
            if state is Owner.ABSENT:
                state = await self._live_state(reference, namespace)
            states[reference.uid] = state
        return states

    async def _live_state(self, reference: meta.OwnerReference, namespace: str) -> Owner:
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        assert kind is not None
        owner = await self._get(ObjectReference(kind, namespace if kind.namespaced else "", reference.name))
        if owner is None or owner.metadata.uid != reference.uid:
            return Owner.ABSENT
        return Owner.WAITING if waits_for_dependents(owner) else Owner.SOLID

    async def _get(self, key: ObjectReference) -> Object | None:
        found = await get_if_exists(self.client, key.kind, key.name, key.namespace)
        return cast("Object | None", found)

    # --- reconciliation ---

    async def reconcile(self, key: ObjectReference) -> float | None:
        """Reconcile an object.

        One whose owner no informer has shown yet is looked at again: an owner that is created and deleted
        while its watch is broken is never shown. Source: garbagecollector 1.36, isObserved
        (kubernetes/kubernetes#56121).
        """
        cached = self._informers[key.kind].get(key.name, key.namespace)
        obj = await self._get(key)
        if obj is None or (cached is not None and cached.metadata.uid != obj.metadata.uid):
            return None
        states = await self._states(obj)
        dependents = self._dependents(obj.metadata.uid)
        action = decide(obj, lambda reference: states[reference.uid], dependents)
        match action:
            case DropReferences(uids):
                await drop_references(self.client, obj, uids)
            case Delete(policy, unblock):
                await DELETE_BEFORE.hit(object=str(key))
                await self._delete(await self._unblock_owners(obj) if unblock else obj, policy)
            case DeleteDependents():
                self._queue_all(dependent for dependent in dependents if not is_terminating(dependent))
            case DropFinalizer(finalizer):
                await self._drop_finalizer(obj, finalizer)
            case OrphanDependents():
                await ORPHAN_BEFORE.hit(object=str(key))
                for dependent in dependents:
                    await drop_references(self.client, dependent, [obj.metadata.uid])
                await self._drop_finalizer(obj, ORPHAN)
        return UNSEEN_SECONDS if self._has_unseen_owner(obj, states) else None

    def _has_unseen_owner(self, obj: Object, states: Mapping[str, Owner]) -> bool:
        """Return whether an owner lives for the API server, and is in no informer that would show its end."""
        return any(
            states[reference.uid] is not Owner.ABSENT
            and kinds.by_kind(reference.apiVersion, reference.kind) in self._informers
            and self._cached_state(reference, obj.metadata.namespace) is Owner.ABSENT
            for reference in obj.metadata.ownerReferences
        )

    def _queue_all(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            self.queue.add(_reference(obj))

    async def _delete(self, obj: Object, policy: str) -> None:
        key = _reference(obj)
        await self.client.delete(
            key.kind,
            key.name,
            key.namespace,
            uid=obj.metadata.uid,
            # An object that got an owner meanwhile must not be deleted.
            resource_version=obj.metadata.resourceVersion,
            propagation_policy=policy,
        )

    async def _unblock_owners(self, obj: Object) -> Object:
        """Set blockOwnerDeletion of the object's owner references to false; return the object as written."""
        blocking = [r.uid for r in obj.metadata.ownerReferences if r.blockOwnerDeletion]
        references = [{"uid": uid, "blockOwnerDeletion": False} for uid in blocking]
        key = _reference(obj)
        change = {"metadata": {"ownerReferences": references, "uid": obj.metadata.uid}}
        written = await self.client.patch(
            key.kind, key.name, key.namespace, change, patch_type=PatchType.STRATEGIC
        )
        return cast("Object", written)

    async def _drop_finalizer(self, obj: Object, finalizer: str) -> None:
        key = _reference(obj)
        left = [name for name in obj.metadata.finalizers if name != finalizer]
        change = {"metadata": {"resourceVersion": obj.metadata.resourceVersion, "finalizers": left or None}}
        await self.client.patch(key.kind, key.name, key.namespace, change, patch_type=PatchType.MERGE)
