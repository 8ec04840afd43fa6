"""Services, pods with addresses and slices for the tests of endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nominee.machinery.api.pb import core, discovery
from nominee.machinery.wire import codec
from tests.controllers.builders import node, pod

NODES = {"n1": node("n1", labels={"topology.kubernetes.io/zone": "z1"}), "n2": node("n2")}
PORT = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(
    name: str = "web",
    *,
    ports: Sequence[Mapping[str, Any]] = (PORT,),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> core.Service:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    body = {
        "selector": {"app": name},
        "ports": list(ports),
        "clusterIP": "10.96.0.9",
        "ipFamilies": ["IPv4"],
        **spec,
    }
    return codec.from_json(core.Service, {"metadata": metadata, "spec": body})


def backend(
    number: int, *ips: str, ready: bool = True, on: str = "n1", phase: str = "Running", **more: Any
) -> core.Pod:
    """Return a pod of the Service `web` with the address 10.0.0.`number`, or with these."""
    made = pod(f"p{number:04}", uid=f"u{number}", node=on, ready=ready, phase=phase, **more)
    for ip in ips or (f"10.0.{number // 250}.{number % 250 + 1}",):
        made.status.podIPs.add(ip=ip)
        made.status.podIP = made.status.podIP or ip
    return made


def stored(slices: Iterable[discovery.EndpointSlice]) -> list[discovery.EndpointSlice]:
    """Return slices as the API server would store them: with names and revisions."""
    found = []
    for index, each in enumerate(slices):
        new = discovery.EndpointSlice()
        new.CopyFrom(each)
        if not new.metadata.name:
            new.metadata.name = f"{new.metadata.generateName}{index}"
            new.metadata.uid = new.metadata.name
        new.metadata.resourceVersion = "1"
        found.append(new)
    return found


def sizes(slices: Iterable[discovery.EndpointSlice]) -> list[int]:
    return [len(each.endpoints) for each in slices]
