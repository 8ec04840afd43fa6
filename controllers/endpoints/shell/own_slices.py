"""The EndpointSlices that one controller manages: watches and writes them, and recognizes its own writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nominee.controllers.endpoints.filling import Writes
from nominee.controllers.endpoints.pending_writes import PendingWrites
from nominee.controllers.endpoints.slices import MANAGED_BY_LABEL, SERVICE_LABEL
from nominee.controllers.shell.controller import namespace_ends
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import discovery
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime import failpoints

WRITE_BEFORE = failpoints.declare(
    "controllers.endpoint_slices.write.before",
    "EndpointSlices of a Service, or those that mirror its Endpoints, must change; none is written",
)
STALE_SECONDS: Final = 0.05
"""After which a key is reconciled again whose objects the informer does not show yet."""


class OwnSlices:
    """The slices labelled as managed by `controller`, by the Service that they are labelled with.

    `changed` is called with the key of the Service when another client changed a slice.
    """

    def __init__(
        self,
        client: Client,
        informer: Informer[discovery.EndpointSlice],
        controller: str,
        changed: Callable[[ObjectKey], None],
    ) -> None:
        self._client = client
        self._informer = informer
        self._controller = controller
        self._changed = changed
        self._pending = PendingWrites()
        informer.add_handler(
            on_add=self._set, on_update=self._updated, on_delete=lambda found, _stale: self._gone(found)
        )

    def of(self, key: ObjectKey) -> list[discovery.EndpointSlice]:
        return [found for found in self._informer.by_index("service", str(key)) if self._is_own(found)]

    def is_stale(self, key: ObjectKey) -> bool:
        """Report whether the informer does not show all that was written."""
        return self._pending.is_stale(key, self._informer.resource_version, self.of(key))

    def forget(self, key: ObjectKey) -> None:
        self._pending.forget(key)

    async def write(self, key: ObjectKey, writes: Writes) -> None:
        """Create, update, delete, in this order. Raises StatusError, which names the slice.

        In a namespace that is being deleted nothing is created, and the rest is left to its end.
        """
        if writes.is_empty:
            return
        await WRITE_BEFORE.hit(service=str(key))
        for new in writes.create:
            try:
                self._pending.wrote(key, await self._client.create(new))
            except StatusError as error:
                if namespace_ends(error):
                    return
                raise _about(error, f"failed to create EndpointSlice for Service {key}") from error
        for changed in writes.update:
            try:
                self._pending.wrote(key, await self._client.update(changed))
            except StatusError as error:
                what = f"failed to update {changed.metadata.name} EndpointSlice for Service {key}"
                raise _about(error, what) from error
        for gone in writes.delete:
            await self._delete(key, gone)

    async def _delete(self, key: ObjectKey, gone: discovery.EndpointSlice) -> None:
        metadata = gone.metadata
        try:
            await self._client.delete(
                kinds.ENDPOINT_SLICE, metadata.name, metadata.namespace, uid=metadata.uid
            )
        except StatusError as error:
            if not is_not_found(error):
                what = f"failed to delete {metadata.name} EndpointSlice for Service {key}"
                raise _about(error, what) from error
        self._pending.deleted(key, gone)

    def _is_own(self, found: discovery.EndpointSlice) -> bool:
        return found.metadata.labels.get(MANAGED_BY_LABEL) == self._controller

    def _set(self, found: discovery.EndpointSlice) -> None:
        if self._is_own(found) and not self._pending.is_own(_service_of(found), found):
            self._changed(_service_of(found))

    def _updated(self, old: discovery.EndpointSlice, new: discovery.EndpointSlice) -> None:
        self._set(new)
        if self._is_own(old) and (not self._is_own(new) or _service_of(old) != _service_of(new)):
            self._changed(_service_of(old))

    def _gone(self, found: discovery.EndpointSlice) -> None:
        if self._is_own(found) and not self._pending.is_own_deletion(_service_of(found), found):
            self._changed(_service_of(found))


def _service_of(found: discovery.EndpointSlice) -> ObjectKey:
    """Return the key of the Service that a slice is labelled with; its name is "" without the label."""
    return ObjectKey(found.metadata.namespace, found.metadata.labels.get(SERVICE_LABEL, ""))


def _about(error: StatusError, what: str) -> StatusError:
    return StatusError(error.code, error.reason, f"{what}: {error.message}", details=error.details)
