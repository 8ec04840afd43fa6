"""Golden cases: a small cluster of ordinary manifests, loaded into the scheduler's framework."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from machinery import kinds
from machinery.clock import FakeClock
from machinery.label_keys import merge_label_keys
from machinery.versions import Gates, Version
from machinery.wire import codec
from scheduler.framework.cache import Cache
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nominator import Nominator
from scheduler.framework.profile import Profile
from scheduler.framework.runtime import Environment, Framework
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import PodInfo, ResourceOptions
from scheduler.plugins.registry import IN_TREE, default_profile

GOLDEN_VERSION = Version(1, 36)


def golden_folder() -> Path:
    return Path(os.environ.get("NOMINEE_GOLDEN", Path(__file__).parents[1] / "golden"))


def read_lines(name: str) -> Iterator[dict[str, Any]]:
    with (golden_folder() / name).open() as file:
        for line in file:
            yield json.loads(line)


def read_object(document: Mapping[str, Any]) -> Message | None:
    """The message of a manifest; None for a kind that we do not serve."""
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    return None if kind is None else codec.from_json(kind.message, document)


class ListLister:
    """A lister over a list."""

    def __init__(self, objects: list[Any]) -> None:
        self._objects = objects

    def get(self, name: str, namespace: str = "") -> Any | None:
        for obj in self._objects:
            if obj.metadata.name == name and obj.metadata.namespace == namespace:
                return obj
        return None

    def list(self, namespace: str = "") -> list[Any]:
        return [obj for obj in self._objects if namespace in ("", obj.metadata.namespace)]


@dataclass
class World:
    """Everything a case needs."""

    framework: Framework
    cache: Cache
    snapshot: Snapshot
    pods: dict[str, PodInfo]
    state: CycleState


def options_of(gates: Gates) -> ResourceOptions:
    return ResourceOptions(
        in_place_resize=gates.enabled("InPlacePodVerticalScaling"),
        pod_level=gates.enabled("PodLevelResources"),
        pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    )


def build_world(
    documents: list[Mapping[str, Any]],
    *,
    gates: Mapping[str, bool] | None = None,
    version: Version = GOLDEN_VERSION,
    profile: Profile | None = None,
) -> World:
    objects: dict[Any, list[Any]] = {}
    for document in documents:
        obj = read_object(document)
        if obj is not None:
            objects.setdefault(kinds.of(obj), []).append(obj)
    effective = Gates("scheduler", version, gates or {})
    for pod in objects.get(kinds.POD, []):
        merge_label_keys(pod, effective)  # as the API server has done to them
    snapshot, nominator, cache = Snapshot(), Nominator(), Cache()
    environment = Environment(
        snapshot=snapshot,
        nominator=nominator,
        gates=effective,
        version=version,
        clock=FakeClock(1_800_000_000.0),
        rng=random.Random(1),
        listers={kind: ListLister(found) for kind, found in objects.items()},
    )
    framework = Framework(profile or default_profile(), IN_TREE, environment)
    pods: dict[str, PodInfo] = {}
    for node in objects.get(kinds.NODE, []):
        cache.add_node(node)
    for pod in objects.get(kinds.POD, []):
        info = PodInfo(pod, options_of(effective))
        pods[str(info.key)] = info
        if pod.status.phase in ("Succeeded", "Failed"):
            continue
        if pod.spec.nodeName:
            cache.add_pod(info)
        elif framework.run_pre_enqueue_plugins(info) is None:
            nominator.add(info)
    cache.update_snapshot(snapshot)
    return World(framework, cache, snapshot, pods, CycleState())
