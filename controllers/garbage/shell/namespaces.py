"""The namespace controller's shell: empties a namespace that is being deleted, then finalizes it."""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from nominee.controllers.garbage.namespace_status import (
    RemainingContent,
    is_begun,
    with_conditions,
    without_content_finalizer,
)
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_conflict, is_not_found
from nominee.machinery.api.kinds import Kind, Object
from nominee.machinery.api.objects import ObjectKey, is_terminating, key_of, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time

FINALIZE_BEFORE = failpoints.declare(
    "controllers.namespace.finalize.before", "a terminating namespace is empty; its finalizer is not removed"
)

GRACE_SECONDS: Final = 5.0
"""A namespace is left alone for so long after each change, as upstream does (namespace_controller.go): an API
server may not know yet that it terminates, or may still write an object that it let in before."""
_PAGE_SIZE = 500
CONTENT: Final[tuple[Kind[Message], ...]] = tuple(
    kind for kind in kinds.KINDS if kind.namespaced and kind not in (kinds.POD, *kinds.STORED_AS)
)
"""The kinds to delete after the pods; an object that is served in two API groups is stored in one."""


class NamespaceController(Controller):
    """Empties namespaces that are being deleted: pods first, then the rest."""

    name = "namespace-controller"
    component = "namespace-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.namespaces = self.watch(kinds.NAMESPACE)
        context.informers.of(kinds.POD).add_handler(on_delete=lambda pod, _stale: self._pod_gone(pod))

    def _enqueue(self, obj: Object | Message) -> None:
        if metadata_of(obj).HasField("deletionTimestamp"):
            self.queue.add_after(key_of(obj), GRACE_SECONDS)

    def _pod_gone(self, pod: core.Pod) -> None:
        namespace = self.namespaces.get(pod.metadata.namespace)
        if namespace is not None and is_terminating(namespace) and is_begun(namespace):
            self.queue.add(key_of(namespace))

    async def reconcile(self, key: ObjectKey) -> float | None:
        cached = self.namespaces.get(key.name)
        if cached is None or not is_terminating(cached):
            return None
        namespace = await self.client.get(kinds.NAMESPACE, key.name)
        if not is_terminating(namespace) or without_content_finalizer(namespace) is None:
            return None
        left = RemainingContent()
        await self._empty(kinds.POD, key.name, left)
        if not left.by_resource:
            for kind in CONTENT:
                await self._empty(kind, key.name, left)
        changed = with_conditions(namespace, left.conditions(), to_time(self.clock.now()))
        if changed is not None:
            namespace = await self.client.update(changed, subresource="status")
        if left.by_resource:
            return left.recheck_seconds()
        finalized = without_content_finalizer(namespace)
        if finalized is not None:
            await FINALIZE_BEFORE.hit(namespace=key.name)
            await self.client.update(finalized, subresource="finalize")
        return None

    async def _empty(self, kind: Kind[Message], namespace: str, left: RemainingContent) -> None:
        """Delete the objects of one kind, and count those that are still there."""
        token = ""
        while True:
            try:
                page = await self.client.list(kind, namespace, limit=_PAGE_SIZE, continue_token=token)
            except StatusError as error:
                if is_not_found(error):
                    return  # an older API server does not serve this kind, so there are no such objects
                raise
            for obj in page.items:
                if not await self._delete(kind, obj, left):
                    left.add(kind, obj, self.clock.now())
            token = page.continue_token
            if not token:
                return

    async def _delete(self, kind: Kind[Message], obj: Message, left: RemainingContent) -> bool:
        """Delete an object; return whether it is gone."""
        metadata = metadata_of(obj)
        if metadata.HasField("deletionTimestamp") and metadata.deletionTimestamp.seconds > self.clock.now():
            return False  # its grace period has not passed
        try:
            return await self.client.delete(
                kind, metadata.name, metadata.namespace, uid=metadata.uid, propagation_policy="Background"
            )
        except StatusError as error:
            if is_not_found(error):
                return True
            if not is_conflict(error):
                left.fail(str(error))
            return False
