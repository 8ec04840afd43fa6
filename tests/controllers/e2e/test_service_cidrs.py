"""A range of addresses on a real cluster: ready, used, and held while it is in use."""

from __future__ import annotations

import pytest

from nominee.controllers.service_cidrs.protection import FINALIZER
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, networking
from tests.controllers.e2e.support import running
from tests.support.cluster import Cluster


def condition(found: networking.ServiceCIDR) -> tuple[str, str]:
    return next(
        ((each.status, each.reason) for each in found.status.conditions if each.type == "Ready"), ("", "")
    )


@pytest.mark.slow
async def test_a_range_is_held_while_it_has_addresses(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        default = await lab.object(kinds.SERVICE_CIDR, "kubernetes", lambda c: bool(c.metadata.finalizers))
        assert list(default.metadata.finalizers) == [FINALIZER]
        assert condition(default) == ("True", "")
        added = networking.ServiceCIDR()
        added.metadata.name = "more"
        added.spec.cidrs.append("10.7.0.0/28")
        await lab.create(added)
        await lab.object(kinds.SERVICE_CIDR, "more", lambda c: condition(c) == ("True", ""))
        service = core.Service()
        service.metadata.name, service.metadata.namespace = "there", "default"
        service.spec.clusterIP = "10.7.0.3"
        service.spec.ports.add(port=80)
        await lab.create(service)
        await lab.client.delete(kinds.SERVICE_CIDR, "more", "")
        held = await lab.object(kinds.SERVICE_CIDR, "more", lambda c: condition(c)[0] == "False")
        assert condition(held) == ("False", "Terminating")
        await lab.client.delete(kinds.SERVICE, "there", "default")
        await lab.gone(kinds.IP_ADDRESS, "10.7.0.3")
        await lab.gone(kinds.SERVICE_CIDR, "more")
