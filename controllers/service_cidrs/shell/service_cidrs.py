"""The ServiceCIDR controller: finalizer, condition Ready, and the end of a range."""

from __future__ import annotations

from controllers.finalizers import without_finalizer
from controllers.service_cidrs import protection
from controllers.shell.controller import Context, Controller
from machinery.api import kinds
from machinery.api.objects import ObjectKey, is_terminating, key_of
from machinery.api.pb import networking
from machinery.runtime.clock import rfc3339

FINALIZER = "networking.k8s.io/service-cidr-finalizer"
READY, TERMINATING = "Ready", "Terminating"
READY_MESSAGE = "Kubernetes Service CIDR is ready"
HELD_MESSAGE = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)
GRACE_SECONDS = 10.0
"""For every API server to hear that a range is going before its last address may be given."""


class ServiceCIDRController(Controller):
    """Keeps one range at a time."""

    name = "service-cidr-controller"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.ranges = self.watch(kinds.SERVICE_CIDR)
        self.ranges.add_handler(
            on_add=self._overlapping, on_delete=lambda found, _stale: self._overlapping(found)
        )
        self.addresses = context.informers.of(kinds.IP_ADDRESS)
        self.addresses.add_handler(on_delete=lambda found, _stale: self._address_gone(found))

    def _overlapping(self, changed: networking.ServiceCIDR) -> None:
        """A range that comes or goes may free or hold those that it overlaps."""
        for each in self.ranges.list():
            if protection.overlaps(each, changed):
                self.queue.add(key_of(each))

    def _address_gone(self, gone: networking.IPAddress) -> None:
        for each in self.ranges.list():
            if is_terminating(each) and protection.covers(each, gone.metadata.name):
                self.queue.add(key_of(each))

    async def reconcile(self, key: ObjectKey) -> float | None:
        found = self.ranges.get(key.name)
        if found is None:
            return None
        if is_terminating(found):
            return await self._end(found)
        if FINALIZER not in found.metadata.finalizers:
            patch = {"metadata": {"finalizers": [FINALIZER]}}
            await self.client.patch(kinds.SERVICE_CIDR, key.name, "", patch)
        if not _says(found, "True", None):
            await self._report(key.name, "True", "", READY_MESSAGE)
        return None

    async def _end(self, found: networking.ServiceCIDR) -> float | None:
        name = found.metadata.name
        others = [each for each in self.ranges.list() if each.metadata.name != name]
        if not protection.may_be_deleted(found, others, self.addresses.list()):
            if not _says(found, "False", TERMINATING):
                await self._report(name, "False", TERMINATING, HELD_MESSAGE)
            return None
        left = GRACE_SECONDS - (self.clock.now() - found.metadata.deletionTimestamp.seconds)
        if left > 0:
            return left
        freed = without_finalizer(found, FINALIZER)
        if freed is not None:
            await self.client.update(freed)
        return None

    async def _report(self, name: str, status: str, reason: str, message: str) -> None:
        condition = {
            "type": READY,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": rfc3339(self.clock.now()),
        }
        patch = {"status": {"conditions": [condition]}}
        await self.client.patch(kinds.SERVICE_CIDR, name, "", patch, subresource="status")


def _says(found: networking.ServiceCIDR, status: str, reason: str | None) -> bool:
    """Whether the condition Ready has this status, and reason unless None."""
    return any(
        each.type == READY and each.status == status and reason in (None, each.reason)
        for each in found.status.conditions
    )
