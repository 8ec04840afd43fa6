"""Endpoints, their mirrors, and which pods a Service selects: tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from nominee.controllers.endpoints.mirroring import is_mirrored, plan
from nominee.controllers.endpoints.pending_writes import PendingWrites
from nominee.controllers.endpoints.shell.members import ServicePods
from nominee.controllers.endpoints.subsets import desired, desired_subsets, repack, truncate
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.manager import TABLE, Options
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.machinery.wire.codec import to_json
from tests.controllers.builders import EPOCH
from tests.controllers.contexts import context_of
from tests.controllers.endpoints.builders import NODES, PORT, backend, service, stored
from tests.support.fake_api import FakeApi

OVER = "endpoints.kubernetes.io/over-capacity"


def _shown(subsets: Iterable[core.EndpointSubset]) -> list[Any]:
    """Return (ready addresses, other addresses, ports) of each subset."""
    return [
        (
            [row.ip for row in subset.addresses],
            [row.ip for row in subset.notReadyAddresses],
            [port.port for port in subset.ports],
        )
        for subset in subsets
    ]


@pytest.mark.parametrize(
    ("of", "pods", "subsets"),
    [
        (service(), [], []),
        (service(), [backend(1), backend(0)], [(["10.0.0.1", "10.0.0.2"], [], [8080])]),
        (service(), [backend(0), backend(1, ready=False)], [(["10.0.0.1"], ["10.0.0.2"], [8080])]),
        (service(publishNotReadyAddresses=True), [backend(0, ready=False)], [(["10.0.0.1"], [], [8080])]),
        (service(), [backend(0, deleted=True)], []),
        (service(publishNotReadyAddresses=True), [backend(0, deleted=True)], [(["10.0.0.1"], [], [8080])]),
        (service(), [backend(0, phase="Failed")], []),
        (service(ports=[PORT, {**PORT, "name": "b", "targetPort": 1}]), [backend(0)],
         [(["10.0.0.1"], [], [1, 8080])]),
        (service(clusterIP="None", ports=()), [backend(0)], [(["10.0.0.1"], [], [])]),
        (service(ipFamilies=["IPv6", "IPv4"]), [backend(0, "10.0.0.1", "fd00::1")],
         [(["fd00::1"], [], [8080])]),
        (service(ipFamilies=["IPv6"]), [backend(0)], []),
    ],
)  # fmt: skip
def test_subsets(of: core.Service, pods: list[core.Pod], subsets: list[Any]) -> None:
    found = _shown(desired_subsets(of, pods))
    assert [(ready, other, sorted(ports)) for ready, other, ports in found] == subsets


def test_named_ports_that_differ_make_subsets() -> None:
    pods = [backend(number) for number in range(3)]
    for one, number in zip(pods, (8080, 9090), strict=False):
        one.spec.containers[0].ports.add(name="web", containerPort=number, protocol="TCP")
    found = desired_subsets(service(ports=[{**PORT, "targetPort": "web"}]), pods)
    assert _shown(found) == [(["10.0.0.1"], [], [8080]), (["10.0.0.2"], [], [9090])]


def test_endpoints_as_they_are_written() -> None:
    of = service(labels={"team": "x"}, clusterIP="None")
    made = desired(of, [backend(0, hostname="h", subdomain="web")], None, EPOCH)
    assert made is not None
    assert to_json(made) == {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {
                "team": "x",
                "endpoints.kubernetes.io/managed-by": "endpoint-controller",
                "service.kubernetes.io/headless": "",
            },
            "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "2023-11-14T22:13:20Z"},
        },
        "subsets": [
            {
                "addresses": [
                    {
                        "ip": "10.0.0.1",
                        "hostname": "h",
                        "nodeName": "n1",
                        "targetRef": {"kind": "Pod", "namespace": "default", "name": "p0000", "uid": "u0"},
                    }
                ],
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("of", "pods"),
    [
        (service(labels={"a": "2"}), [backend(0)]),
        (service(labels={"a": "1"}), [backend(0, ready=False)]),
        (service(labels={"a": "1"}), []),
        (service(labels={"a": "1"}, clusterIP="None"), [backend(0)]),
    ],
)
def test_endpoints_are_written_when_they_change(of: core.Service, pods: list[core.Pod]) -> None:
    before = service(labels={"a": "1"})
    current = desired(before, [backend(0)], None, EPOCH)
    assert current is not None
    assert desired(before, [backend(0)], current, 0) is None
    new = desired(of, pods, current, 0)
    assert new is not None
    assert not new.metadata.annotations  # no time is known: the old one goes


@pytest.mark.parametrize(
    ("ready", "other", "left"),
    [
        ([1000], [0], [(1000, 0)]),
        ([1001], [5], [(1000, 0)]),
        ([400], [700], [(400, 600)]),
        ([1000, 1000], [5, 5], [(500, 0), (500, 0)]),
        ([900, 300], [0, 0], [(750, 0), (250, 0)]),
        ([300, 300], [500, 250], [(300, 267), (300, 133)]),
    ],
)
def test_no_more_than_a_thousand_addresses(
    ready: list[int], other: list[int], left: list[tuple[int, int]]
) -> None:
    subsets = []
    for number, waiting in zip(ready, other, strict=True):
        subset = core.EndpointSubset()
        for index in range(number):
            subset.addresses.add(ip=f"10.0.{index // 250}.{index % 250}")
        for index in range(waiting):
            subset.notReadyAddresses.add(ip=f"10.1.{index // 250}.{index % 250}")
        subsets.append(subset)
    assert truncate(subsets) == (sum(ready) + sum(other) > 1000)
    assert [(len(s.addresses), len(s.notReadyAddresses)) for s in subsets] == left


def test_endpoints_over_capacity_are_annotated_and_written_once() -> None:
    pods = [backend(number) for number in range(1001)]
    made = desired(service(), pods, None, EPOCH)
    assert made is not None
    assert (len(made.subsets[0].addresses), made.metadata.annotations[OVER]) == (1000, "truncated")
    assert desired(service(), pods, made, 0) is None
    fewer = desired(service(), pods[:5], made, 0)
    assert fewer is not None
    assert OVER not in fewer.metadata.annotations


def _endpoints(*subsets: Any, **metadata: Any) -> core.Endpoints:
    document = {
        "metadata": {"name": "web", "namespace": "default", "uid": "e", **metadata},
        "subsets": [*subsets],
    }
    return codec.from_json(core.Endpoints, document)


def _subset(*ready: str, other: Iterable[str] = (), port: int = 80) -> dict[str, Any]:
    return {
        "addresses": [{"ip": ip} for ip in ready],
        "notReadyAddresses": [{"ip": ip} for ip in other],
        "ports": [{"port": port, "protocol": "TCP"}],
    }


def test_subsets_are_repacked() -> None:
    found = repack(
        _endpoints(
            _subset("10.0.0.2"), _subset("10.0.0.1", "10.0.0.2", port=81), _subset("10.0.0.1"),
            _subset(other=["10.0.0.1"], port=82),
        ).subsets
    )  # fmt: skip
    assert _shown(found) == [([], ["10.0.0.1"], [82]), (["10.0.0.1", "10.0.0.2"], [], [80, 81])]
    # An address that is both counts as not ready.
    assert _shown(repack(_endpoints(_subset("10.0.0.1"), _subset(other=["10.0.0.1"])).subsets)) == [
        ([], ["10.0.0.1"], [80])
    ]


def test_a_mirror() -> None:
    own = _endpoints(
        _subset("10.0.0.1", other=["10.0.0.2"]),
        labels={"team": "x"},
        annotations={"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    )
    writes, warnings = plan(own, [])
    (made,) = writes.create
    assert warnings == []
    assert to_json(made) == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": "web-",
            "namespace": "default",
            "labels": {
                "team": "x",
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
            },
            "annotations": {"a": "1"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Endpoints",
                    "name": "web",
                    "uid": "e",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", "port": 80}],
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": True}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
        ],
    }
    assert plan(own, stored([made]))[0].is_empty


@pytest.mark.parametrize(
    ("after", "counts"),
    [
        ([_subset("10.0.0.1")], (0, 0, 0)),
        ([_subset("10.0.0.1", "10.0.0.2")], (0, 1, 0)),
        ([_subset("10.0.0.1", port=81)], (0, 1, 0)),
        ([_subset("10.0.0.1", "fd00::1")], (1, 0, 0)),
        ([_subset("10.0.0.1"), _subset("10.0.0.9", port=81)], (1, 0, 0)),
        ([], (0, 0, 1)),
    ],
)
def test_mirrors_follow(after: list[Any], counts: tuple[int, int, int]) -> None:
    existing = stored(plan(_endpoints(_subset("10.0.0.1")), [])[0].create)
    writes, _ = plan(_endpoints(*after), existing)
    assert (len(writes.create), len(writes.update), len(writes.delete)) == counts
    relabelled, _ = plan(_endpoints(*after, labels={"b": "2"}), existing)
    assert len(relabelled.update) == (1 if after else 0)


def test_what_a_mirror_leaves_out() -> None:
    many = [f"10.0.{index // 250}.{index % 250}" for index in range(1002)]
    writes, warnings = plan(_endpoints(_subset(*many), _subset("bad", port=81)), [])
    assert [len(each.endpoints) for each in writes.create] == [1000]
    assert warnings == [
        PlannedEvent(
            "InvalidIPAddress",
            "Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
            "Warning",
        ),
        PlannedEvent(
            "TooManyAddressesToMirror",
            "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset."
            " 3 addresses were skipped",
            "Warning",
        ),
    ]


@pytest.mark.parametrize(
    ("metadata", "mirrored"),
    [
        ({}, True),
        ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, False),
        ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "false"}}, True),
        ({"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, False),
    ],
)
def test_what_is_mirrored(metadata: dict[str, Any], mirrored: bool) -> None:
    assert is_mirrored(_endpoints(**metadata)) is mirrored


def test_writes_that_the_informer_has_yet_to_show() -> None:
    pending, key = PendingWrites(), ObjectKey("default", "web")
    one = _endpoints()
    one.metadata.resourceVersion = "7"
    assert not pending.is_stale(key, "5", [])
    pending.wrote(key, one)
    assert pending.is_own(key, one)
    assert pending.is_stale(key, "6", [])
    assert not pending.is_stale(key, "7", [])
    assert not pending.is_own(key, one)
    pending.deleted(key, one)
    assert pending.is_own_deletion(key, one)
    assert pending.is_stale(key, "9", [one])
    assert not pending.is_stale(key, "9", [])


class Api(FakeApi):
    def ready(self) -> list[str]:
        slices = self.all_of(kinds.ENDPOINT_SLICE)
        return sorted(r.addresses[0] for s in slices for r in s.endpoints if r.conditions.ready)

    def endpoints(self) -> list[str]:
        subsets = [s for e in self.all_of(kinds.ENDPOINTS) for s in e.subsets]
        return sorted(row.ip for subset in subsets for row in subset.addresses)


@asynccontextmanager
async def _controllers(api: Api) -> AsyncIterator[None]:
    api.put(NODES["n1"])
    context = context_of(api, FakeClock())
    names = ("endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller")
    runners = [TABLE[name](context, Options()) for name in names]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        for runner in runners:
            tasks.start_soon(runner.run)
        yield
        tasks.cancel_scope.cancel()


async def test_the_controllers_see_which_pods_are_selected() -> None:
    api, one = Api(), backend(0, labels={"app": "web"})
    api.put(one)
    api.put(service())
    async with _controllers(api):

        async def show(expected: list[str]) -> None:
            await api.until(lambda: api.ready() == expected and api.endpoints() == expected)

        await show(["10.0.0.1"])
        api.put(backend(1))
        api.put(backend(2, labels={"app": "web"}))
        await show(["10.0.0.1", "10.0.0.3"])
        one.metadata.labels["app"] = "other"
        api.put(one)
        await show(["10.0.0.3"])
        api.put(service(selector={"app": "other"}))
        await show(["10.0.0.1"])
        api.remove(kinds.POD, "p0000")
        await show([])
        created = [request.key for request in api.requests if request.verb == "create"]
        assert len(created) == 2  # one slice, one Endpoints


@pytest.mark.parametrize(("pods", "seconds"), [(50, 0.0), (51, 0.051), (2000, 1.0)])
async def test_changes_of_many_pods_are_gathered(pods: int, seconds: float) -> None:
    api = Api()
    for number in range(pods):
        api.put(backend(number, labels={"app": "web"}))
    api.put(service())
    context = context_of(api, FakeClock())
    services, informer = context.informers.of(kinds.SERVICE), context.informers.of(kinds.POD)
    members = ServicePods(services, informer, lambda _: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        assert members.batch_seconds(ObjectKey("default", "web")) == pytest.approx(seconds)
        tasks.cancel_scope.cancel()


async def test_changes_of_another_client_are_reconciled() -> None:
    api = Api()
    api.put(backend(0, labels={"app": "web"}))
    api.put(service())
    async with _controllers(api):
        await api.until(lambda: api.ready() == ["10.0.0.1"] and api.endpoints() == ["10.0.0.1"])
        (written,) = api.all_of(kinds.ENDPOINT_SLICE)
        changed = type(written)()
        changed.CopyFrom(written)
        del changed.endpoints[:]
        api.put(changed)
        await api.until(lambda: api.ready() == ["10.0.0.1"])
        api.remove(kinds.ENDPOINT_SLICE, written.metadata.name)
        await api.until(lambda: api.ready() == ["10.0.0.1"])
        api.remove(kinds.ENDPOINTS, "web")
        await api.until(lambda: api.endpoints() == ["10.0.0.1"])
        api.remove(kinds.SERVICE, "web")
        await api.until(lambda: not api.endpoints())
