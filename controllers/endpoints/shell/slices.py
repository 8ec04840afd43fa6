"""The EndpointSlice controller's shell."""

from __future__ import annotations

from typing import Final

from nominee.controllers.endpoints.pods import has_endpoints
from nominee.controllers.endpoints.shell.members import ServicePods
from nominee.controllers.endpoints.shell.own_slices import STALE_SECONDS, OwnSlices
from nominee.controllers.endpoints.slices import CONTROLLER, plan
from nominee.controllers.endpoints.trigger_time import TriggerTimes, annotate
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, is_terminating, key_of
from nominee.machinery.api.pb import core

NODE_MISSING_SECONDS: Final = 1.0
"""After which a Service is reconciled again that has a pod on a node which does not exist."""


class EndpointSliceController(Controller):
    """Keeps the slices of each Service that selects pods."""

    name = "endpointslice-controller"
    component = "endpoint-slice-controller"
    workers = 5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._nodes = context.informers.of(kinds.NODE)
        services, pods = context.informers.of(kinds.SERVICE), context.informers.of(kinds.POD)
        self._members = ServicePods(services, pods, self._pods_changed)
        self._services = self.watch(kinds.SERVICE)
        slices = context.informers.of(kinds.ENDPOINT_SLICE)
        self._slices = OwnSlices(self.client, slices, CONTROLLER, self.queue.add)
        self._times = TriggerTimes()

    def _pods_changed(self, key: ObjectKey) -> None:
        self.queue.add_after(key, self._members.batch_seconds(key))

    async def reconcile(self, key: ObjectKey) -> float | None:
        service = self._services.get_by_key(key)
        if service is None:
            self._times.forget(key)
            self._slices.forget(key)
            return None
        if not has_endpoints(service):
            return None
        if self._slices.is_stale(key):
            return STALE_SECONDS
        pods = self._members.of(service)
        time = self._times.next(service, pods)
        existing = [found for found in self._slices.of(key) if not is_terminating(found)]
        work = plan(service, pods, self._nodes.get, existing)
        for each in (*work.writes.create, *work.writes.update):
            annotate(each.metadata, time)
        try:
            await self._slices.write(key, work.writes)
        except StatusError as error:
            self._failed(service, str(error))
            raise
        for pod in work.without_node:
            problem = (
                f"skipping Pod {pod.metadata.name} for Service {key}: Node {pod.spec.nodeName} Not Found"
            )
            self._failed(service, problem)
        return NODE_MISSING_SECONDS if work.without_node else None

    def _failed(self, service: core.Service, problem: str) -> None:
        note = f"Error updating Endpoint Slices for Service {key_of(service)}: {problem}"
        self.record(service, PlannedEvent("FailedToUpdateEndpointSlices", note, "Warning"))
