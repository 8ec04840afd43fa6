"""The EndpointSlice mirroring controller's shell."""

from __future__ import annotations

from nominee.controllers.endpoints.filling import Writes
from nominee.controllers.endpoints.mirroring import CONTROLLER, is_mirrored, plan
from nominee.controllers.endpoints.shell.own_slices import STALE_SECONDS, OwnSlices
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core


class EndpointSliceMirroringController(Controller):
    """Mirrors the Endpoints of Services without a selector. Its keys are the Services' and the Endpoints'."""

    name = "endpointslice-mirroring-controller"
    component = "endpoint-slice-mirroring-controller"
    workers = 5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._endpoints = self.watch(kinds.ENDPOINTS)
        self._services = context.informers.of(kinds.SERVICE)
        self._services.add_handler(
            on_add=self._enqueue,
            on_update=self._service_updated,
            on_delete=lambda gone, _stale: self._enqueue(gone),
        )
        slices = context.informers.of(kinds.ENDPOINT_SLICE)
        self._slices = OwnSlices(self.client, slices, CONTROLLER, self.queue.add)

    def _service_updated(self, old: core.Service, new: core.Service) -> None:
        if bool(old.spec.selector) != bool(new.spec.selector):
            self._enqueue(new)

    async def reconcile(self, key: ObjectKey) -> float | None:
        own = self._slices.of(key)
        endpoints, service = self._endpoints.get_by_key(key), self._services.get_by_key(key)
        if endpoints is None and service is None and not own:
            self._slices.forget(key)
            return None
        if self._slices.is_stale(key):
            return STALE_SECONDS
        if endpoints is None or service is None or service.spec.selector or not is_mirrored(endpoints):
            await self._slices.write(key, Writes(delete=own))
            return None
        writes, warnings = plan(endpoints, own)
        for each in warnings:
            self.record(endpoints, each)
        try:
            await self._slices.write(key, writes)
        except StatusError as error:
            note = f"Error mirroring EndpointSlices for Endpoints {key}: {error}"
            self.record(endpoints, PlannedEvent("FailedToUpdateEndpointSlices", note, "Warning"))
            raise
        return None
