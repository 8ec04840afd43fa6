"""The ServiceCIDR `kubernetes`: the range of `--service-cluster-ip-range`.

The API server creates it again when it is deleted, and sets its Ready condition when it has none.

Source: kube-apiserver 1.36, controlplane/controller/defaultservicecidr.
"""

from __future__ import annotations

import ipaddress

from nominee.apiserver.objects.requests import Create, RegistryAPI, Update, get_if_exists
from nominee.apiserver.registry.services.addresses import READY
from nominee.apiserver.registry.services.allocation import DEFAULT_ADDRESSES
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import networking
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock, to_time

NAME = "kubernetes"
MESSAGE = "Kubernetes default Service CIDR is ready"
AGAIN_SECONDS = 10.0
_log = logs.get()


async def run(registry: RegistryAPI, clock: Clock) -> None:
    """Ensure the ServiceCIDR at intervals until cancelled."""
    while True:
        await clock.sleep(AGAIN_SECONDS)
        try:
            await ensure(registry, clock)
        except StatusError as error:
            _log.warning("The ServiceCIDR kubernetes cannot be kept", error=str(error))


async def ensure(
    registry: RegistryAPI, clock: Clock, network: ipaddress.IPv4Network = DEFAULT_ADDRESSES
) -> None:
    """Create the ServiceCIDR if it is missing, and set its Ready condition if it has none.

    Raises: StatusError.
    """
    found = await get_if_exists(registry, kinds.SERVICE_CIDR, "", NAME)
    if found is None:
        made = networking.ServiceCIDR()
        made.metadata.name = NAME
        made.spec.cidrs.append(str(network))
        try:
            found = (await registry.perform(Create(kinds.SERVICE_CIDR, "", made))).object.message
        except StatusError as error:
            if not errors.is_already_exists(error):
                raise
            # Another API server created it and sets the condition, too.
            return
    if found.metadata.HasField("deletionTimestamp") or list(found.spec.cidrs) != [str(network)]:
        return
    if any(each.type == READY and each.status in ("True", "False") for each in found.status.conditions):
        return
    changed: networking.ServiceCIDR = copy_of(found)
    del changed.status.conditions[:]
    condition = changed.status.conditions.add(type=READY, status="True", message=MESSAGE)
    condition.lastTransitionTime.CopyFrom(to_time(clock.now()))
    with errors.ignoring(errors.is_conflict):
        await registry.perform(Update(kinds.SERVICE_CIDR, "", NAME, "status", changed))
