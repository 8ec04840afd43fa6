"""The slices of a Service as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from nominee.controllers.endpoints.filling import Writes
from nominee.controllers.endpoints.slices import SliceReconciliation, name_prefix, plan
from nominee.controllers.endpoints.trigger_time import TriggerTimes, annotate
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core, discovery, meta
from nominee.machinery.wire.codec import to_json
from tests.controllers.builders import EPOCH
from tests.controllers.endpoints.builders import NODES, PORT, backend, service, sizes, stored


def _plan(
    of: core.Service, pods: Iterable[core.Pod], existing: Iterable[discovery.EndpointSlice] = ()
) -> SliceReconciliation:
    return plan(of, pods, NODES.get, existing)


def _made(of: core.Service, pods: Iterable[core.Pod]) -> list[discovery.EndpointSlice]:
    """Return the slices of a Service that had none, as stored."""
    return stored(_plan(of, pods).writes.create)


def _counts(writes: Writes) -> tuple[int, int, int]:
    return len(writes.create), len(writes.update), len(writes.delete)


def _rows(slices: Iterable[discovery.EndpointSlice]) -> list[Any]:
    return [to_json(row) for each in slices for row in each.endpoints]


def test_a_slice_of_one_pod() -> None:
    (made,) = _plan(service(labels={"team": "x"}), [backend(0)]).writes.create
    assert to_json(made) == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": "web-",
            "namespace": "default",
            "labels": {
                "team": "x",
                "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": [
            {
                "addresses": ["10.0.0.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "p0000", "uid": "u0"},
                "nodeName": "n1",
                "zone": "z1",
            }
        ],
    }


@pytest.mark.parametrize(
    ("of", "one", "conditions"),
    [
        (service(), backend(0, ready=False), (False, False, False)),
        (service(), backend(0, deleted=True), (False, True, True)),
        (service(), backend(0, deleted=True, ready=False), (False, False, True)),
        (service(publishNotReadyAddresses=True), backend(0, ready=False), (True, False, False)),
        (service(publishNotReadyAddresses=True), backend(0, deleted=True), (True, True, True)),
    ],
)
def test_conditions(of: core.Service, one: core.Pod, conditions: tuple[bool, bool, bool]) -> None:
    (made,) = _made(of, [one])
    found = made.endpoints[0].conditions
    assert (found.ready, found.serving, found.terminating) == conditions


@pytest.mark.parametrize("left_out", [backend(0, phase="Succeeded"), backend(0, phase="Failed")])
def test_a_pod_that_ended_is_no_endpoint(left_out: core.Pod) -> None:
    assert _rows(_made(service(), [left_out])) == []


def test_a_pod_without_an_address_is_no_endpoint() -> None:
    waits = backend(0)
    waits.status.ClearField("podIP")
    waits.status.ClearField("podIPs")
    assert _rows(_made(service(), [waits])) == []


def test_a_pod_of_a_missing_node_waits_unless_not_ready_addresses_are_published() -> None:
    lost = backend(0, on="gone")
    found = _plan(service(), [lost])
    assert ([each.metadata.name for each in found.without_node], _rows(found.writes.create)) == (
        ["p0000"],
        [],
    )
    published = _plan(service(publishNotReadyAddresses=True), [lost])
    assert published.without_node == ()
    assert "zone" not in _rows(published.writes.create)[0]


def test_a_named_port_is_each_pods_own() -> None:
    named = {**PORT, "targetPort": "web"}
    pods = [backend(number) for number in range(4)]
    for one, number in zip(pods, (8080, 8080, 9090), strict=False):
        one.spec.containers[0].ports.add(name="web", containerPort=number, protocol="TCP")
    made = _made(service(ports=[named, {**PORT, "name": "more", "targetPort": 1}]), pods)
    ports = {tuple((port.name, port.port) for port in each.ports): len(each.endpoints) for each in made}
    assert ports == {
        (("http", 8080), ("more", 1)): 2,
        (("http", 9090), ("more", 1)): 1,
        (("more", 1),): 1,
    }


def test_only_a_sidecars_ports_count_of_init_containers() -> None:
    one = backend(0)
    one.spec.initContainers.add(name="first").ports.add(name="web", containerPort=1, protocol="TCP")
    sidecar = one.spec.initContainers.add(name="beside", restartPolicy="Always")
    sidecar.ports.add(name="web", containerPort=2, protocol="TCP")
    (made,) = _made(service(ports=[{**PORT, "targetPort": "web"}]), [one])
    assert made.ports[0].port == 2


def test_both_families_of_a_dual_stack_service() -> None:
    pods = [backend(0, "10.0.0.1", "fd00::0:1"), backend(1)]
    made = _made(service(ipFamilies=["IPv4", "IPv6"]), pods)
    found = {each.addressType: [row.addresses[0] for row in each.endpoints] for each in made}
    assert found == {"IPv4": ["10.0.0.1", "10.0.0.2"], "IPv6": ["fd00::1"]}


def test_slices_of_a_removed_family_are_deleted() -> None:
    dual = service(ipFamilies=["IPv4", "IPv6"])
    existing = _made(dual, [backend(0, "10.0.0.1", "fd00::1")])
    writes = _plan(service(), [backend(0, "10.0.0.1", "fd00::1")], existing).writes
    assert _counts(writes) == (0, 0, 1)
    assert writes.delete[0].addressType == "IPv6"


def test_a_headless_service() -> None:
    one = backend(0, hostname="h", subdomain="web")
    (made,) = _made(service(clusterIP="None", ports=()), [one])
    assert made.metadata.labels["service.kubernetes.io/headless"] == ""
    assert (list(made.ports), made.endpoints[0].hostname) == ([], "h")
    (other,) = _made(service("other", clusterIP="None"), [one])
    assert not other.endpoints[0].HasField("hostname")


def test_a_service_without_endpoints_has_one_empty_slice() -> None:
    existing = _made(service(), [])
    assert [(sizes([each]), list(each.ports)) for each in existing] == [([0], [])]
    assert _plan(service(), [], existing).writes.is_empty
    # It becomes the slice of the first pods, and their slice becomes it again.
    filled = _plan(service(), [backend(0)], existing).writes
    assert (_counts(filled), sizes(filled.update)) == ((0, 1, 0), [1])
    assert filled.update[0].metadata.name == existing[0].metadata.name
    emptied = _plan(service(), [], stored(filled.update)).writes
    assert (_counts(emptied), sizes(emptied.update)) == ((0, 1, 0), [0])


@pytest.mark.parametrize(
    ("number", "filled"),
    [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])],
)
def test_no_slice_has_more_than_a_hundred_endpoints(number: int, filled: list[int]) -> None:
    assert sizes(_made(service(), map(backend, range(number)))) == filled


@pytest.mark.parametrize(
    ("before", "after", "counts", "updated"),
    [
        (range(50), range(50), (0, 0, 0), []),
        (range(50), range(60), (0, 1, 0), [60]),  # the slice with most room for them
        (range(150), range(160), (0, 1, 0), [60]),  # of two slices the one with room
        (range(150), range(205), (1, 0, 0), []),  # no slice has room for all of them
        (range(150), range(1, 160), (0, 2, 0), [100, 59]),  # what is written anyway is filled first
        (range(150), range(100), (0, 0, 1), []),
        (range(150), [*range(100), *range(150, 200)], (0, 1, 0), [50]),
        (range(200), range(100, 200), (0, 0, 1), []),
    ],
)
def test_few_slices_are_written(
    before: Sequence[int], after: Sequence[int], counts: tuple[int, int, int], updated: list[int]
) -> None:
    existing = _made(service(), map(backend, before))
    writes = _plan(service(), map(backend, after), existing).writes
    assert (_counts(writes), sizes(writes.update)) == (counts, updated)
    left = {each.metadata.name: each for each in existing}
    left.update({each.metadata.name: each for each in stored(writes.update)})
    for gone in writes.delete:
        del left[gone.metadata.name]
    names = sorted(row.targetRef.name for each in (*left.values(), *writes.create) for row in each.endpoints)
    assert names == sorted(f"p{number:04}" for number in after)


@pytest.mark.parametrize(
    "changed",
    [backend(0, ready=False), backend(0, on="n2"), backend(0, deleted=True), backend(0, "10.9.9.9")],
)
def test_a_pod_that_changes_is_written(changed: core.Pod) -> None:
    existing = _made(service(), [backend(0), backend(1)])
    assert _counts(_plan(service(), [changed, backend(1)], existing).writes) == (0, 1, 0)


def test_labels_follow_the_service() -> None:
    existing = _made(service(labels={"a": "1"}), [backend(0)])
    writes = _plan(service(labels={"a": "2"}), [backend(0)], existing).writes
    assert _counts(writes) == (0, 1, 0)
    assert writes.update[0].metadata.labels["a"] == "2"
    reserved = service(labels={"a": "1", "kubernetes.io/service-name": "lies"})
    assert _plan(reserved, [backend(0)], existing).writes.is_empty


def test_slices_of_a_recreated_service_are_deleted() -> None:
    existing = _made(service(), [backend(0)])
    again = service()
    again.metadata.uid = "another"
    writes = _plan(again, [backend(0)], existing).writes
    assert _counts(writes) == (1, 0, 1)


def test_a_terminating_service_gets_no_slice() -> None:
    goes = service()
    goes.metadata.deletionTimestamp.seconds = EPOCH
    assert _plan(goes, [backend(0)]).writes.is_empty


@pytest.mark.parametrize(
    ("distribution", "annotations", "hints"),
    [
        (None, {}, [None, None]),
        ("PreferClose", {}, [{"forZones": [{"name": "z1"}]}, None]),
        ("PreferSameZone", {}, [{"forZones": [{"name": "z1"}]}, None]),
        (
            "PreferSameNode",
            {},
            [{"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]}, {"forNodes": [{"name": "n2"}]}],
        ),
        ("PreferClose", {"service.kubernetes.io/topology-mode": "Auto"}, [None, None]),
    ],
)
def test_hints(distribution: str | None, annotations: dict[str, str], hints: list[Any]) -> None:
    spec: dict[str, Any] = {"trafficDistribution": distribution} if distribution else {}
    pods = [backend(0), backend(1, on="n2"), backend(2, ready=False)]
    of = service(annotations=annotations, **spec)
    existing = _made(of, pods)
    assert [row.get("hints") for row in _rows(existing)] == [*hints, None]
    assert _plan(of, pods, existing).writes.is_empty
    # Hints that are no longer wanted go, those that are missing come: also of slices that have not changed.
    plain = _plan(service(), pods, existing).writes
    assert len(plain.update) == (1 if any(hints) else 0)
    if any(hints):
        back = _plan(of, pods, stored(plain.update)).writes
        assert [row.get("hints") for row in _rows(back.update)] == [*hints, None]


def test_a_long_name_has_no_dash() -> None:
    assert (name_prefix("web"), name_prefix("a" * 253)) == ("web-", "a" * 253)


def test_the_time_of_the_change() -> None:
    times, of = TriggerTimes(), service()
    created = of.metadata.creationTimestamp.seconds
    assert times.next(of, [backend(0, ready_since=5)]) == created
    assert times.next(of, [backend(0, ready_since=5)]) == 0
    both = [backend(0, ready_since=9), backend(1, ready_since=7)]
    assert times.next(of, both) == EPOCH + 7
    times.forget(key_of(of))
    assert times.next(of, both) == created
    metadata = meta.ObjectMeta()
    annotate(metadata, EPOCH + 7)
    name = "endpoints.kubernetes.io/last-change-trigger-time"
    assert dict(metadata.annotations) == {name: "2023-11-14T22:13:27Z"}
    annotate(metadata, 0)
    assert not metadata.annotations
