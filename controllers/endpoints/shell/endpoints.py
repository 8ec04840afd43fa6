"""The Endpoints controller's shell."""

from __future__ import annotations

from typing import Final

from nominee.controllers.endpoints.pending_writes import PendingWrites
from nominee.controllers.endpoints.pods import has_endpoints
from nominee.controllers.endpoints.shell.members import ServicePods
from nominee.controllers.endpoints.subsets import CONTROLLER, MANAGED_BY_LABEL, desired
from nominee.controllers.endpoints.trigger_time import TriggerTimes
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller, namespace_ends
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime import failpoints

WRITE_BEFORE = failpoints.declare(
    "controllers.endpoints.write.before", "the Endpoints of a Service must change; they are not written"
)

STALE_SECONDS: Final = 0.05
"""After which a Service is reconciled again whose Endpoints the informer does not show yet."""


class EndpointsController(Controller):
    """Keeps the Endpoints of each Service that selects pods."""

    name = "endpoints-controller"
    component = "endpoint-controller"
    workers = 5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._endpoints = context.informers.of(kinds.ENDPOINTS)
        pods = context.informers.of(kinds.POD)
        self._members = ServicePods(context.informers.of(kinds.SERVICE), pods, self._pods_changed)
        self._services = self.watch(kinds.SERVICE)
        self._endpoints.add_handler(
            on_add=self._listed, on_delete=lambda gone, _stale: self.queue.add(key_of(gone))
        )
        self._pending = PendingWrites()
        self._times = TriggerTimes()

    def _listed(self, found: core.Endpoints) -> None:
        """Look at Endpoints that this controller made: their Service may be gone since."""
        key = key_of(found)
        if found.metadata.labels.get(MANAGED_BY_LABEL) == CONTROLLER and not self._pending.is_own(key, found):
            self.queue.add(key)

    def _pods_changed(self, key: ObjectKey) -> None:
        self.queue.add_after(key, self._members.batch_seconds(key))

    async def reconcile(self, key: ObjectKey) -> float | None:
        service = self._services.get_by_key(key)
        current = self._endpoints.get_by_key(key)
        if service is None:
            await self._delete(key, current)
            return None
        if not has_endpoints(service):
            return None
        if self._pending.is_stale(key, self._endpoints.resource_version, ()):
            return STALE_SECONDS
        pods = self._members.of(service)
        new = desired(service, pods, current, self._times.next(service, pods))
        if new is not None:
            await WRITE_BEFORE.hit(service=str(key))
            await self._write(key, new, create=current is None)
        return None

    async def _delete(self, key: ObjectKey, current: core.Endpoints | None) -> None:
        self._times.forget(key)
        self._pending.forget(key)
        if current is not None:
            await self.delete_if_exists(current)

    async def _write(self, key: ObjectKey, new: core.Endpoints, *, create: bool) -> None:
        try:
            made = await (self.client.create(new) if create else self.client.update(new))
        except StatusError as error:
            if create and namespace_ends(error):
                return
            if create:
                reason, what = "FailedToCreateEndpoint", f"Failed to create endpoint for service {key}"
            else:
                reason, what = "FailedToUpdateEndpoint", f"Failed to update endpoint {key}"
            self.record(new, PlannedEvent(reason, f"{what}: {error}", "Warning"))
            raise
        self._pending.wrote(key, made)
