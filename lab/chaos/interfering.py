"""Another client acts on objects that a process is at work on, while the process waits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.cases.perturbations import Action
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import (
    StatusError,
    is_already_exists,
    is_conflict,
    is_not_found,
    is_retryable,
)
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey, copy_of, key_of, metadata_of
from nominee.machinery.api.pb import batch, core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime.clock import Clock

_OBJECTS_MAX: Final = 20
_CREATIONS_MAX: Final = 20
_CREATION_SECONDS: Final = 0.05
_OF_JOBS: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "batch.kubernetes.io/") for name in ("controller-uid", "job-name")
)
"""Labels that the API server gives to the pods of a Job without a selector of its own."""
_LEFT_ALONE: Final = frozenset({"endpoints", "endpointslices", "events", "leases", "persistentvolumeclaims"})
"""Written by components all the time, or tied to another object for good."""
_MARK: Final = "chaos.nominee.dev/touched"


async def interfere(client: Client, action: Action, labels: Mapping[str, str], clock: Clock) -> bool:
    """Touch, replace or remove the object that a failpoint's labels name; return whether it was possible."""
    named = _named(labels)
    if named is None:
        return False
    kind, key = named
    try:
        if action is Action.TOUCH:
            await _touch(client, kind, key, clock)
        elif action is Action.RECREATE:
            await _recreate(client, kind, key, clock)
        elif action is Action.REMOVE:
            await _delete(client, kind, key)
    except StatusError:  # it may be gone
        return False
    return True


def _named(labels: Mapping[str, str]) -> tuple[AnyKind, ObjectKey] | None:
    """Return the object of the labels: a pod, or the object of a write of the API server."""
    if "pod" in labels:
        return kinds.POD, ObjectKey.parse(labels["pod"])
    namespace, _, name = labels.get("object", "").partition("/")
    resource = labels.get("resource", "")
    kind = next((each for each in kinds.by_name(resource) if each.namespaced), None)
    if kind is None or resource in _LEFT_ALONE or not (namespace and name):
        return None
    return kind, ObjectKey(namespace, name)


async def touch_all(client: Client, plural: str, clock: Clock) -> int:
    """Touch the objects of a kind, _OBJECTS_MAX at most; return their number."""
    count = 0
    for kind in kinds.by_name(plural):
        with suppress(StatusError):  # the kind may not be served
            for each in (await client.list(kind, limit=_OBJECTS_MAX)).items:
                with suppress(StatusError):  # the object may be gone
                    await _touch(client, kind, key_of(each), clock)
                    count += 1
    return count


async def _touch(client: Client, kind: AnyKind, key: ObjectKey, clock: Clock) -> None:
    """Add a label, and remove it: the object has another resourceVersion, and is as before."""

    async def label(value: str | None) -> None:
        await client.patch(kind, key.name, key.namespace, {"metadata": {"labels": {_MARK: value}}})

    # A label whose answer was lost may be there: it must not stay.
    await retry_unavailable(lambda: label("true"), clock=clock)
    await retry_unavailable(lambda: label(None), clock=clock)


async def _delete(client: Client, kind: AnyKind, key: ObjectKey, *, uid: str = "") -> None:
    """Delete an object, a pod without grace."""
    grace = 0 if kind is kinds.POD else None
    await client.delete(kind, key.name, key.namespace, grace_period_seconds=grace, uid=uid)


async def _delete_for_certain(client: Client, kind: AnyKind, found: Message, clock: Clock) -> None:
    """Delete this object, again where the answer was lost: then it may be gone, or another have its name."""
    key, uid, is_lost = key_of(found), metadata_of(found).uid, False

    async def attempt() -> None:
        nonlocal is_lost
        try:
            await _delete(client, kind, key, uid=uid)
        except StatusError as error:
            if is_lost and (is_not_found(error) or is_conflict(error)):
                return
            is_lost = is_lost or is_retryable(error)
            raise

    await retry_unavailable(attempt, clock=clock)


async def _recreate(client: Client, kind: AnyKind, key: ObjectKey, clock: Clock) -> None:
    """Replace the object, unless it terminates; a controller creates its own objects again."""
    found = await client.get(kind, key.name, key.namespace)
    if metadata_of(found).HasField("deletionTimestamp"):
        return
    again = _created_again(found)
    await _delete_for_certain(client, kind, found, clock)
    if any(owner.controller for owner in metadata_of(found).ownerReferences):
        return
    for _ in range(_CREATIONS_MAX):  # a finalizer may keep the former one for a moment
        try:
            await retry_unavailable(lambda: client.create(again), clock=clock)
        except StatusError as error:
            if not is_already_exists(error):
                return
            await clock.sleep(_CREATION_SECONDS)
        else:
            return


def _created_again(obj: Message) -> Message:
    """Return the object as its author would create it again."""
    again = copy_of(obj)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "finalizers"):
        metadata_of(again).ClearField(name)
    if isinstance(again, core.Pod):
        again.spec.ClearField("nodeName")
    elif isinstance(again, batch.Job) and not again.spec.manualSelector:
        again.spec.ClearField("selector")
        for name in [each for each in again.spec.template.metadata.labels if each in _OF_JOBS]:
            del again.spec.template.metadata.labels[name]
    if "status" in again.DESCRIPTOR.fields_by_name:
        again.ClearField("status")
    return again
