"""The namespace controller's shell: empties a namespace that is being deleted, then finalizes it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from controllers.garbage.namespace_status import conditions, with_conditions, without_content_finalizer
from controllers.shell.controller import Context, Controller
from machinery.api import kinds
from machinery.api.errors import StatusError, is_conflict, is_not_found
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, is_terminating
from machinery.api.pb import core
from machinery.runtime import failpoints
from machinery.runtime.clock import to_time

FINALIZE_BEFORE = failpoints.declare("controllers.namespace.finalize.before")

AGAIN_SECONDS_MIN, AGAIN_SECONDS_MAX = 1.0, 15.0
"""Pods end within their grace; they are looked for again after half of what is left of it."""
_PAGE = 500
# What is served in two APIs is stored once.
CONTENT: Final[tuple[Kind[Any], ...]] = tuple(
    kind for kind in kinds.KINDS if kind.namespaced and kind not in (kinds.POD, *kinds.STORED_AS)
)


class NamespaceController(Controller):
    """Empties namespaces that are being deleted: pods first, then the rest."""

    name = "namespace-controller"
    component = "namespace-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.namespaces = self.watch(kinds.NAMESPACE)
        context.informers.of(kinds.POD).add_handler(on_delete=lambda pod, _stale: self._pod_gone(pod))

    def _pod_gone(self, pod: core.Pod) -> None:
        namespace = self.namespaces.get(pod.metadata.namespace)
        if namespace is not None and is_terminating(namespace):
            self._enqueue(namespace)

    async def reconcile(self, key: ObjectKey) -> float | None:
        known = self.namespaces.get(key.name)
        if known is None or not is_terminating(known):
            return None
        namespace = await self.client.get(kinds.NAMESPACE, key.name)
        if not is_terminating(namespace) or without_content_finalizer(namespace) is None:
            return None
        left = Content()
        await self._empty(kinds.POD, key.name, left)
        if not left.remaining:
            for kind in CONTENT:
                await self._empty(kind, key.name, left)
        rows = conditions(left.remaining, left.finalizers, left.failure)
        changed = with_conditions(namespace, rows, to_time(self.clock.now()))
        if changed is not None:
            namespace = await self.client.update(changed, subresource="status")
        if left.remaining:
            return min(max(left.grace_seconds / 2, AGAIN_SECONDS_MIN), AGAIN_SECONDS_MAX)
        finalized = without_content_finalizer(namespace)
        if finalized is not None:
            await FINALIZE_BEFORE.hit(namespace=key.name)
            await self.client.update(finalized, subresource="finalize")
        return None

    async def _empty(self, kind: Kind[Any], namespace: str, left: Content) -> None:
        """Deletes what is there of one kind, and counts what does not go at once."""
        token = ""
        while True:
            try:
                page = await self.client.list(kind, namespace, limit=_PAGE, continue_token=token)
            except StatusError as error:
                if is_not_found(error):
                    return  # an older API server does not serve this kind, so nothing of it is there
                raise
            for obj in page.items:
                if not await self._delete(kind, obj, left):
                    left.add(kind, obj, self.clock.now())
            token = page.continue_token
            if not token:
                return

    async def _delete(self, kind: Kind[Any], obj: Any, left: Content) -> bool:
        """Whether it is gone."""
        metadata = obj.metadata
        if is_terminating(obj) and metadata.deletionTimestamp.seconds > self.clock.now():
            return False  # its grace runs
        try:
            return await self.client.delete(
                kind, metadata.name, metadata.namespace, uid=metadata.uid, propagation_policy="Background"
            )
        except StatusError as error:
            if is_not_found(error):
                return True
            if not is_conflict(error):
                left.failure = left.failure or str(error)
            return False


class Content:
    """What is left of a namespace's content."""

    def __init__(self) -> None:
        self.remaining: Counter[str] = Counter()
        self.finalizers: Counter[str] = Counter()
        self.failure = ""
        self.grace_seconds = 0.0

    def add(self, kind: Kind[Any], obj: Any, now: float) -> None:
        self.remaining[f"{kind.plural}.{kind.group}"] += 1
        self.finalizers.update(obj.metadata.finalizers)
        grace = 0.0
        if is_terminating(obj):
            grace = obj.metadata.deletionTimestamp.seconds - now
        elif isinstance(obj, core.Pod) and obj.spec.nodeName:
            grace = float(obj.spec.terminationGracePeriodSeconds)
        self.grace_seconds = max(self.grace_seconds, grace)
