"""The ServiceCIDR controller: finalizer, condition Ready, and the end of a range."""

from __future__ import annotations

from nominee.controllers.service_cidrs import protection
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, is_terminating, key_of
from nominee.machinery.api.pb import networking


class ServiceCIDRController(Controller):
    """Sets finalizer and status of each range, and ends ranges that are deleted and not in use."""

    name = "service-cidr-controller"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.ranges = self.watch(kinds.SERVICE_CIDR)
        self.ranges.add_handler(
            on_add=self._overlapping, on_delete=lambda service_cidr, _stale: self._overlapping(service_cidr)
        )
        self.addresses = context.informers.of(kinds.IP_ADDRESS)
        self.addresses.add_handler(on_delete=lambda service_cidr, _stale: self._address_gone(service_cidr))

    def _overlapping(self, changed: networking.ServiceCIDR) -> None:
        """Queue the ranges that overlap one which was created or deleted."""
        for each in self.ranges.list():
            if protection.overlaps(each, changed):
                self.queue.add(key_of(each))

    def _address_gone(self, gone: networking.IPAddress) -> None:
        for each in self.ranges.list():
            if is_terminating(each) and protection.covers(each, gone.metadata.name):
                self.queue.add(key_of(each))

    async def reconcile(self, key: ObjectKey) -> float | None:
        service_cidr = self.ranges.get(key.name)
        if service_cidr is None:
            return None
        if is_terminating(service_cidr):
            return await self._end(service_cidr)
        if protection.FINALIZER not in service_cidr.metadata.finalizers:
            patch = {"metadata": {"finalizers": [protection.FINALIZER]}}
            await self.client.patch(kinds.SERVICE_CIDR, key.name, "", patch)
        await self._patch_status(key.name, protection.ready_patch(service_cidr, self.clock.now()))
        return None

    async def _end(self, service_cidr: networking.ServiceCIDR) -> float | None:
        name = service_cidr.metadata.name
        others = [each for each in self.ranges.list() if each.metadata.name != name]
        if not protection.may_be_deleted(service_cidr, others, self.addresses.list()):
            await self._patch_status(name, protection.held_patch(service_cidr, self.clock.now()))
            return None
        left = protection.GRACE_SECONDS - (self.clock.now() - service_cidr.metadata.deletionTimestamp.seconds)
        if left > 0:
            return left
        await self.drop_finalizer(service_cidr, protection.FINALIZER)
        return None

    async def _patch_status(self, name: str, patch: dict[str, object] | None) -> None:
        if patch is not None:
            await self.client.patch(kinds.SERVICE_CIDR, name, "", patch, subresource="status")
