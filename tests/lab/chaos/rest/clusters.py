"""A correct cluster at rest, as manifests by name, and a state of manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from nominee.lab.chaos.rest.state import Expectations, State
from nominee.machinery.api import kinds
from nominee.machinery.wire.files.manifests import parse_object
from nominee.machinery.wire.values.scalars import Json

NOW = 1_000_000.0
Manifest = dict[str, Any]
Manifests = dict[str, Manifest]
Change = Callable[[Manifests], object]
RUNNING = frozenset({"apiserver", "scheduler", "kubelet", "controllers", "autoscaler"})


def owner(manifest: Manifest) -> Manifest:
    """Return the metadata of an object that a controller made for another one."""
    metadata = manifest["metadata"]
    reference = {"name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "ownerReferences": [{**reference, "apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}]
    }


def manifest(kind: str, name: str, *, api: str = "v1", namespace: str = "default", **fields: Any) -> Manifest:
    """Return a manifest; `metadata` adds to its metadata."""
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "7", "generation": 1}
    if namespace:
        metadata["namespace"] = namespace
    metadata.update(fields.pop("metadata", {}))
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, *, node: str = "n1", **metadata: Any) -> Manifest:
    """Return a pod that runs on a node and is ready; without a node one that is unschedulable."""
    spec: Manifest = {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "1"}}}]}
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]
    status: Manifest = {
        "phase": "Running",
        "podIP": f"10.0.{len(name)}.{sum(map(ord, name)) % 256}",
        "conditions": conditions,
    }
    if node:
        spec["nodeName"] = node
    else:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"phase": "Pending", "conditions": [condition]}
    labels = {"labels": {"app": "web"}}
    return manifest("Pod", name, spec=spec, status=status, metadata={**labels, **metadata})


def correct() -> Manifests:
    """Return the manifests of a cluster in which every rule holds."""
    text = (Path(__file__).parent / "cluster.yaml").read_text(encoding="utf-8")
    manifests: Manifests = yaml.safe_load(text)
    return manifests


def state(
    manifests: Manifests,
    *,
    running: frozenset[str] = RUNNING,
    debug: Mapping[tuple[str, str], Json] | None = None,
    expectations: Expectations | None = None,
) -> State:
    """Return the state of a cluster with these objects."""
    objects: dict[Any, list[Any]] = {}
    for each in manifests.values():
        message = parse_object(each, strict=True)
        objects.setdefault(kinds.of(message), []).append(message)
    return State(
        objects=objects,
        now=NOW,
        running=running,
        debug=debug or {},
        expectations=expectations or Expectations(),
    )


def changed(change: Change) -> Manifests:
    """Return the correct cluster after a change of its manifests."""
    manifests = correct()
    change(manifests)
    return manifests


def put(path: str, value: Any) -> Change:
    """Return a change that sets a field: `budget/status/currentHealthy`; None removes it."""

    def change(manifests: Manifests) -> None:
        *parents, last = path.split("/")
        place: Any = manifests
        for each in parents:
            place = place[int(each)] if isinstance(place, list) else place.setdefault(each, {})
        if value is None:
            del place[last]
        else:
            place[last] = value

    return change
