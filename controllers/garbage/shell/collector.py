"""The garbage collector's shell: deletes objects whose owners are gone, in whichever order was asked for.

It knows the kinds of `COLLECTED` from its informers, and finds dependents by their owners' uids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from controllers.garbage.ownership import (
    ORPHAN,
    Delete,
    DeleteDependents,
    DropFinalizer,
    DropReferences,
    Keep,
    OrphanDependents,
    Owner,
    decide,
    orphans_dependents,
    waits_for_dependents,
)
from controllers.shell.controller import Context, Worker
from machinery.api import kinds
from machinery.api.errors import StatusError, is_not_found
from machinery.api.kinds import Kind
from machinery.api.objects import is_terminating
from machinery.api.pb import meta
from machinery.patch.patch_type import PatchType
from machinery.runtime import failpoints

DELETE_BEFORE = failpoints.declare("controllers.garbage.delete.before")
ORPHAN_BEFORE = failpoints.declare("controllers.garbage.orphan.before")

COLLECTED: Final[tuple[Kind[Any], ...]] = (
    kinds.NODE,
    kinds.POD,
    kinds.CONFIG_MAP,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.REPLICA_SET,
    kinds.LEASE,
    kinds.DEPLOYMENT,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.CONTROLLER_REVISION,
    kinds.REPLICATION_CONTROLLER,
    kinds.JOB,
    kinds.CRON_JOB,
    kinds.SERVICE,
    kinds.ENDPOINTS,
    kinds.ENDPOINT_SLICE,
    kinds.RESOURCE_CLAIM,
    kinds.SECRET,
)


class ObjectReference(NamedTuple):
    """One object of some kind."""

    kind: Kind[Any]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


def _reference(obj: Any) -> ObjectReference:
    return ObjectReference(kinds.of(obj), obj.metadata.namespace, obj.metadata.name)


class GarbageCollector(Worker[ObjectReference]):
    """Looks at objects whose owners go or wait, one at a time."""

    name = "garbage-collector-controller"
    component = "garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._informers = {kind: context.informers.of(kind) for kind in COLLECTED}
        for informer in self._informers.values():
            informer.add_handler(
                on_add=self._changed,
                on_update=self._updated,
                on_delete=lambda obj, _stale: self._gone(obj),
            )

    # --- what the watches say ---

    def _changed(self, obj: Any) -> None:
        if is_terminating(obj):
            if waits_for_dependents(obj) or orphans_dependents(obj):
                self.queue.add(_reference(obj))
            self._queue_waiting_owners(obj)
        elif obj.metadata.ownerReferences and any(
            self._seen(reference, obj.metadata.namespace) is not Owner.SOLID
            for reference in obj.metadata.ownerReferences
        ):
            self.queue.add(_reference(obj))

    def _updated(self, old: Any, new: Any) -> None:
        self._changed(new)
        if old.metadata.ownerReferences != new.metadata.ownerReferences:
            # An owner may have waited for this object only: for a reference that is gone or no longer blocks.
            self._queue_waiting_owners(old)

    def _gone(self, obj: Any) -> None:
        for dependent in self._dependents(obj.metadata.uid):
            self.queue.add(_reference(dependent))
        self._queue_waiting_owners(obj)

    def _queue_waiting_owners(self, obj: Any) -> None:
        for reference in obj.metadata.ownerReferences:
            owner = self._owner(reference, obj.metadata.namespace)
            if owner is not None and waits_for_dependents(owner):
                self.queue.add(_reference(owner))

    # --- looking things up ---

    def _dependents(self, uid: str) -> list[Any]:
        return [obj for informer in self._informers.values() for obj in informer.by_index("owner", uid)]

    def _owner(self, reference: meta.OwnerReference, namespace: str) -> Any | None:
        """The owner as the informers know it."""
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        if kind is None or kind not in self._informers:
            return None
        found = self._informers[kind].get(reference.name, namespace if kind.namespaced else "")
        return found if found is not None and found.metadata.uid == reference.uid else None

    def _seen(self, reference: meta.OwnerReference, namespace: str) -> Owner:
        """What the informers say of an owner; ABSENT may only mean that they are behind."""
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        if kind is None or (kind.namespaced and not namespace):
            return Owner.SOLID
        owner = self._owner(reference, namespace)
        if owner is None:
            return Owner.ABSENT
        return Owner.WAITING if waits_for_dependents(owner) else Owner.SOLID

    async def _states(self, obj: Any) -> dict[str, Owner]:
        """What is true of each owner, by uid; asks the API server before it says that one is absent."""
        states = {}
        namespace = obj.metadata.namespace
        for reference in obj.metadata.ownerReferences:
            state = self._seen(reference, namespace)
            if state is Owner.ABSENT:
                state = await self._asked(reference, namespace)
            states[reference.uid] = state
        return states

    async def _asked(self, reference: meta.OwnerReference, namespace: str) -> Owner:
        kind = kinds.by_kind(reference.apiVersion, reference.kind)
        assert kind is not None
        owner = await self._get(ObjectReference(kind, namespace if kind.namespaced else "", reference.name))
        if owner is None or owner.metadata.uid != reference.uid:
            return Owner.ABSENT
        return Owner.WAITING if waits_for_dependents(owner) else Owner.SOLID

    async def _get(self, key: ObjectReference) -> Any | None:
        try:
            return await self.client.get(key.kind, key.name, key.namespace)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    # --- what is done ---

    async def reconcile(self, key: ObjectReference) -> float | None:
        known = self._informers[key.kind].get(key.name, key.namespace)
        obj = await self._get(key)
        if obj is None or (known is not None and known.metadata.uid != obj.metadata.uid):
            return None
        states = await self._states(obj)
        dependents = self._dependents(obj.metadata.uid)
        action = decide(obj, lambda reference: states[reference.uid], dependents)
        match action:
            case Keep():
                pass
            case DropReferences(uids):
                await self._drop_references(obj, uids)
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
                    await self._drop_references(dependent, frozenset({obj.metadata.uid}))
                await self._drop_finalizer(obj, ORPHAN)
        return None

    def _queue_all(self, objects: Iterable[Any]) -> None:
        for obj in objects:
            self.queue.add(_reference(obj))

    async def _delete(self, obj: Any, policy: str) -> None:
        key = _reference(obj)
        await self.client.delete(
            key.kind,
            key.name,
            key.namespace,
            uid=obj.metadata.uid,
            # What gained an owner meanwhile must stay.
            resource_version=obj.metadata.resourceVersion,
            propagation_policy=policy,
        )

    async def _unblock_owners(self, obj: Any) -> Any:
        """Set blockOwnerDeletion of the object's owner references to false; return the object as written."""
        blocking = [r.uid for r in obj.metadata.ownerReferences if r.blockOwnerDeletion]
        references = [{"uid": uid, "blockOwnerDeletion": False} for uid in blocking]
        key = _reference(obj)
        change = {"metadata": {"ownerReferences": references, "uid": obj.metadata.uid}}
        return await self.client.patch(
            key.kind, key.name, key.namespace, change, patch_type=PatchType.STRATEGIC
        )

    async def _drop_references(self, obj: Any, uids: frozenset[str]) -> None:
        gone = [{"$patch": "delete", "uid": uid} for uid in sorted(uids)]
        key = _reference(obj)
        change = {"metadata": {"ownerReferences": gone, "uid": obj.metadata.uid}}
        try:
            await self.client.patch(key.kind, key.name, key.namespace, change, patch_type=PatchType.STRATEGIC)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _drop_finalizer(self, obj: Any, finalizer: str) -> None:
        key = _reference(obj)
        left = [name for name in obj.metadata.finalizers if name != finalizer]
        change = {"metadata": {"resourceVersion": obj.metadata.resourceVersion, "finalizers": left or None}}
        await self.client.patch(key.kind, key.name, key.namespace, change, patch_type=PatchType.MERGE)
