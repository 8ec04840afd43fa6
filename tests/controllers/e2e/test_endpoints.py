"""EndpointSlices and Endpoints of Services over real processes."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core, discovery
from nominee.machinery.wire import codec
from tests.controllers.builders import node, pod
from tests.controllers.e2e.support import Lab, running
from tests.support.cluster import Cluster

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SLICES, MIRROR = "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"
STILL = ("--node-monitor-grace-period", "1h")


def _service(name: str = "web", selector: bool = True, **spec: Any) -> core.Service:
    body = {"ports": [{"port": 80, "targetPort": 8080}], **spec}
    if selector:
        body["selector"] = {"app": "web"}
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": body}
    return codec.from_json(core.Service, document)


async def _run(lab: Lab, name: str, ip: str, *, ready: bool = True) -> core.Pod:
    made = await lab.create(pod(name, labels={"app": "web"}))
    await lab.run_pod(made, "n1", ready=ready)
    status = {"podIP": ip, "podIPs": [{"ip": ip}]}
    return await lab.client.patch(kinds.POD, name, "default", {"status": status}, subresource="status")


def _addresses(found: list[discovery.EndpointSlice], controller: str) -> dict[str, bool]:
    """Return addresses and whether they are ready, of one controller's slices."""
    own = [each for each in found if each.metadata.labels.get(MANAGED_BY) == controller]
    return {row.addresses[0]: row.conditions.ready for each in own for row in each.endpoints}


async def _until_slices(lab: Lab, addresses: dict[str, bool], controller: str = SLICES) -> None:
    await lab.listed(kinds.ENDPOINT_SLICE, lambda found: _addresses(found, controller) == addresses)


def _subsets(found: core.Endpoints) -> tuple[list[str], list[str]]:
    return (
        [row.ip for subset in found.subsets for row in subset.addresses],
        [row.ip for subset in found.subsets for row in subset.notReadyAddresses],
    )


async def test_endpoints_follow_the_pods(cluster: Cluster) -> None:
    async with running(cluster, *STILL) as lab:
        await lab.create(node(labels={"topology.kubernetes.io/zone": "z1"}))
        service = await lab.create(_service())
        await _run(lab, "a", "10.0.0.1")
        await _run(lab, "b", "10.0.0.2", ready=False)
        await _until_slices(lab, {"10.0.0.1": True, "10.0.0.2": False})
        await lab.object(kinds.ENDPOINTS, "web", lambda e: _subsets(e) == (["10.0.0.1"], ["10.0.0.2"]))
        found = await lab.all(kinds.ENDPOINT_SLICE)
        (own,) = [each for each in found if each.metadata.labels.get(MANAGED_BY) == SLICES]
        assert own.metadata.name.startswith("web-")
        assert own.metadata.ownerReferences[0].uid == service.metadata.uid
        assert own.metadata.labels["kubernetes.io/service-name"] == "web"
        assert (own.ports[0].port, own.ports[0].protocol, own.addressType) == (8080, "TCP", "IPv4")
        assert {row.zone for row in own.endpoints} == {"z1"}

        await lab.client.delete(kinds.POD, "a", "default")
        await lab.object(kinds.POD, "a", is_terminating)
        await _until_slices(lab, {"10.0.0.1": False, "10.0.0.2": False})
        await lab.object(kinds.ENDPOINTS, "web", lambda e: _subsets(e) == ([], ["10.0.0.2"]))
        await lab.client.delete(kinds.POD, "a", "default", grace_period_seconds=0)
        await _until_slices(lab, {"10.0.0.2": False})

        await lab.client.delete(kinds.SERVICE, "web", "default")
        await lab.gone(kinds.ENDPOINTS, "web")
        await lab.listed(
            kinds.ENDPOINT_SLICE,
            lambda found: not any(SLICES in each.metadata.labels.values() for each in found),
        )


@pytest.mark.slow
async def test_controllers_that_were_killed_make_no_slice_twice(cluster: Cluster) -> None:
    async with running(cluster, *STILL) as lab:
        await lab.create(node())
        await _run(lab, "a", "10.0.0.1")
        lab.arm("controllers.endpoint_slices.write.before", "crash")
        await lab.create(_service())
        assert await cluster.exited("controllers") == -9
        await cluster.start("controllers")
        await _until_slices(lab, {"10.0.0.1": True})
        await _run(lab, "b", "10.0.0.2")
        await _until_slices(lab, {"10.0.0.1": True, "10.0.0.2": True})
        found = await lab.all(kinds.ENDPOINT_SLICE)
        assert len([each for each in found if each.metadata.labels.get(MANAGED_BY) == SLICES]) == 1


async def test_endpoints_that_a_client_keeps_are_mirrored(cluster: Cluster) -> None:
    async with running(cluster, *STILL) as lab:
        await lab.create(_service("external", selector=False))
        own = codec.from_json(
            core.Endpoints,
            {
                "metadata": {"name": "external", "namespace": "default"},
                "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}],
            },
        )
        await lab.create(own)
        await _until_slices(lab, {"192.0.2.7": True}, MIRROR)
        subsets = [{"addresses": [{"ip": "192.0.2.8"}], "ports": [{"port": 80}]}]
        await lab.client.patch(kinds.ENDPOINTS, "external", "default", {"subsets": subsets})
        await _until_slices(lab, {"192.0.2.8": True}, MIRROR)
        selector = {"spec": {"selector": {"app": "web"}}}
        await lab.client.patch(kinds.SERVICE, "external", "default", selector)
        await _until_slices(lab, {}, MIRROR)
        await lab.object(kinds.ENDPOINTS, "external", lambda e: _subsets(e) == ([], []))
