"""Counts the usage of each ResourceQuota's namespace; the API server charges admitted objects to it.

A quota is counted again soon after a pod or claim is deleted or changes its usage or its scopes; objects of
other kinds are counted periodically. Source: kube-controller-manager 1.36, resourcequota-controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from nominee.controllers.quotas.usage import is_charged, limits_differ, measured_kinds, recount, usage_of
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.resources import quota

RESYNC_SECONDS = 300.0
"""Upstream's --resource-quota-sync-period."""
UNWATCHED_SECONDS = 10.0
"""The period of counting kinds that are not watched."""
COALESCE_SECONDS = 0.25
"""How long changes are gathered, so that pods that end together are counted once."""
_WATCHED = (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM, kinds.RESOURCE_CLAIM)


class QuotaController(Controller):
    """Keeps the status of each ResourceQuota."""

    name = "resourcequota-controller"
    workers = 2

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.quotas = context.informers.of(kinds.RESOURCE_QUOTA)
        self.quotas.add_handler(
            on_add=self._enqueue,
            on_update=lambda old, new: self._enqueue(new) if limits_differ(new) else None,
        )
        self.informers: dict[Kind[Message], Informer[Any]] = {
            kind: context.informers.of(kind) for kind in _WATCHED
        }
        for informer in self.informers.values():
            informer.add_handler(
                on_add=self._added,
                on_update=self._updated,
                on_delete=lambda obj, _stale: self._changed(obj),
            )

    def _updated(self, old: Message, new: Message) -> None:
        if len(self.quotas) and (
            metadata_of(old).generation != metadata_of(new).generation
            or quota.may_recount(kinds.of(new), old, new, self.clock.now())
        ):
            self._changed(new)

    def _added(self, obj: Message) -> None:
        self._changed(obj, unless=lambda found: is_charged(found, obj))

    def _changed(self, obj: Message, unless: Callable[[core.ResourceQuota], bool] = lambda _: False) -> None:
        if not len(self.quotas):
            return
        for found in self.quotas.list(metadata_of(obj).namespace):
            if unless(found):
                continue
            self.queue.add_after(ObjectKey(found.metadata.namespace, found.metadata.name), COALESCE_SECONDS)

    async def reconcile(self, key: ObjectKey) -> float | None:
        found = self.quotas.get(key.name, key.namespace)
        if found is None:
            return None
        objects: dict[Kind[Message], Iterable[Message]] = {}
        again = RESYNC_SECONDS
        for kind in measured_kinds(found):
            if kind in self.informers:
                objects[kind] = self.informers[kind].list(key.namespace)
            else:
                listed = await self.client.list(kind, key.namespace, resource_version="0")
                objects[kind], again = listed.items, UNWATCHED_SECONDS
        new = recount(found, usage_of(found, objects, self.clock.now()))
        if new is not None:
            await self.client.update(new, subresource="status")
        return again
