"""Another client acts on objects that a process is at work on, while the process waits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.cases.perturbations import Action
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, controller_of, copy_of, is_terminating, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client

OBJECTS_MAX: Final = 20
_MARK: Final = "chaos.nominee.dev/touched"


async def interfere(client: Client, action: Action, labels: Mapping[str, str]) -> None:
    """Touch, replace or remove the pod that a failpoint's labels name; without one do nothing."""
    if "pod" not in labels:
        return
    key = ObjectKey.parse(labels["pod"])
    with suppress(StatusError):  # it may be gone, or come back first
        if action is Action.TOUCH:
            await _touch(client, kinds.POD, key)
        elif action is Action.RECREATE:
            await _recreate(client, key)
        elif action is Action.REMOVE:
            await client.delete(kinds.POD, key.name, key.namespace, grace_period_seconds=0)


async def touch_all(client: Client, plural: str) -> None:
    """Touch the objects of a kind, OBJECTS_MAX at most."""
    for kind in kinds.by_name(plural):
        with suppress(StatusError):  # the kind may not be served
            for each in (await client.list(kind, limit=OBJECTS_MAX)).items:
                with suppress(StatusError):  # the object may be gone
                    await _touch(client, kind, key_of(each))


async def _touch(client: Client, kind: Kind[Message], key: ObjectKey) -> None:
    """Add a label, and remove it: the object has another resourceVersion, and is as before."""
    for value in ("true", None):
        await client.patch(kind, key.name, key.namespace, {"metadata": {"labels": {_MARK: value}}})


async def _recreate(client: Client, key: ObjectKey) -> None:
    """Replace the pod, unless it terminates; a controller creates its own pods again."""
    pod = await client.get(kinds.POD, key.name, key.namespace)
    if is_terminating(pod):
        return
    again = _created_again(pod)
    await client.delete(kinds.POD, key.name, key.namespace, grace_period_seconds=0)
    if controller_of(pod) is None:
        await client.create(again)


def _created_again(pod: core.Pod) -> core.Pod:
    """Return the pod as its author would create it again."""
    again = copy_of(pod)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        again.metadata.ClearField(name)
    again.spec.ClearField("nodeName")
    again.ClearField("status")
    return again
