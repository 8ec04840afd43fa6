"""A cluster of manifests inside the scheduler's framework, without processes.

What the API server fills in when an object is created (defaults, label keys) is filled in here too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from machinery import defaults
from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.objects import ObjectKey, key_of
from machinery.api.pb import core, scheduling
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock
from machinery.scheduling.label_keys import merge_label_keys
from machinery.scheduling.priority import SYSTEM_CLASSES
from machinery.wire import codec
from nominee.explain.claims import made_for
from scheduler.framework.cache import Cache
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Plugin
from scheduler.framework.nominator import Nominator
from scheduler.framework.pod_requests import ResourceOptions
from scheduler.framework.profile import Profile
from scheduler.framework.runtime import Environment, Framework
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import PodInfo
from scheduler.plugins.registry import IN_TREE, default_profile

FINISHED = ("Succeeded", "Failed")


class ObjectLister:
    """A lister over objects that do not change."""

    changes = 0

    def __init__(self, objects: Iterable[Any]) -> None:
        self._objects: dict[ObjectKey, Any] = {key_of(obj): obj for obj in objects}

    def get(self, name: str, namespace: str = "") -> Any | None:
        return self._objects.get(ObjectKey(namespace, name))

    def list(self, namespace: str = "") -> list[Any]:
        return [obj for key, obj in self._objects.items() if namespace in ("", key.namespace)]


@dataclass(slots=True)
class World:
    """A cluster, and one scheduling cycle's state in it. `pods` by `namespace/name`, finished ones too.

    `frameworks` by profile; `framework` is the first one.
    """

    frameworks: Mapping[str, Framework]
    cache: Cache
    snapshot: Snapshot
    pods: dict[str, PodInfo]
    state: CycleState
    unknown: list[str] = field(default_factory=list)  # kinds of manifests that no kind here serves

    @property
    def framework(self) -> Framework:
        return next(iter(self.frameworks.values()))

    def framework_of(self, pod: PodInfo) -> Framework | None:
        """Of the pod's scheduler name; None if no profile has it."""
        return self.frameworks.get(pod.pod.spec.schedulerName)

    def pending(self) -> list[PodInfo]:
        """Pods that wait for a node."""
        return [
            pod
            for pod in self.pods.values()
            if not pod.pod.spec.nodeName and pod.pod.status.phase not in FINISHED
        ]


def read_object(document: Mapping[str, Any]) -> Message | None:
    """The message of a manifest; None for a kind that is not served."""
    kind = kinds.by_kind(document.get("apiVersion", ""), document.get("kind", ""))
    return None if kind is None else codec.from_json(kind.message, document)


def _name(kind: Kind[Any], obj: Any) -> None:
    """A namespace and a uid, which the API server gives to an object that comes without."""
    metadata = obj.metadata
    if kind.namespaced and not metadata.namespace:
        metadata.namespace = "default"
    if not metadata.uid:
        metadata.uid = f"{kind.plural}/{metadata.namespace}/{metadata.name}"


def _set_priorities(pods: Iterable[core.Pod], classes: Iterable[scheduling.PriorityClass]) -> None:
    """What the Priority admission plugin does to pods that say only their class, or nothing."""
    values = dict(SYSTEM_CLASSES)
    policies = {}
    default = ""
    for each in classes:
        values[each.metadata.name] = each.value
        policies[each.metadata.name] = each.preemptionPolicy
        if each.globalDefault and (not default or each.value < values[default]):
            default = each.metadata.name
    for pod in pods:
        spec = pod.spec
        name = spec.priorityClassName or default
        if not spec.HasField("priority") and name in values:
            spec.priority = values[name]
            if policies.get(name) and not spec.HasField("preemptionPolicy"):
                spec.preemptionPolicy = policies[name]


def options_of(gates: Gates) -> ResourceOptions:
    """Which gates change what a pod is taken to request."""
    return ResourceOptions(
        in_place_resize=gates.enabled("InPlacePodVerticalScaling"),
        pod_level=gates.enabled("PodLevelResources"),
        pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    )


def build_world(
    documents: Sequence[Mapping[str, Any]],
    *,
    gates: Gates,
    clock: Clock,
    rng: random.Random,
    profiles: Sequence[Profile] = (),
    classes: Mapping[str, type[Plugin]] = IN_TREE,
    admit: bool = False,
) -> World:
    """The cluster of these manifests. `admit`: pods get priorities from classes and claims from templates.

    `profiles`: the default one unless given, of plugins among `classes`.

    Raises DecodeError, or StatusError for a quantity that is none."""
    objects: dict[Kind[Any], list[Any]] = {}
    unknown = []
    for document in documents:
        obj = read_object(document)
        if obj is None:
            unknown.append(f"{document.get('kind', '')} {document.get('metadata', {}).get('name', '')}")
            continue
        kind = kinds.of(obj)
        _name(kind, obj)
        defaults.apply(kind, obj, gates)
        if isinstance(obj, core.Pod):
            merge_label_keys(obj, gates)
        objects.setdefault(kind, []).append(obj)
    if admit:
        _set_priorities(objects.get(kinds.POD, ()), objects.get(kinds.PRIORITY_CLASS, ()))
        claims = made_for(objects.get(kinds.POD, ()), objects.get(kinds.RESOURCE_CLAIM_TEMPLATE, ()))
        objects.setdefault(kinds.RESOURCE_CLAIM, []).extend(claims)
    snapshot, nominator, cache = Snapshot(), Nominator(), Cache()
    environment = Environment(
        snapshot=snapshot,
        nominator=nominator,
        gates=gates,
        version=gates.version,
        clock=clock,
        rng=rng,
        listers={kind: ObjectLister(found) for kind, found in objects.items()},
    )
    chosen = profiles or (default_profile(),)
    frameworks = {profile.name: Framework(profile, classes, environment) for profile in chosen}
    pods: dict[str, PodInfo] = {}
    options = options_of(gates)
    for node in objects.get(kinds.NODE, ()):
        cache.add_node(node)
    for pod in objects.get(kinds.POD, ()):
        info = PodInfo(pod, options)
        pods[str(info.key)] = info
        if pod.status.phase in FINISHED:
            continue
        if pod.spec.nodeName:
            cache.add_pod(info)
            continue
        framework = frameworks.get(pod.spec.schedulerName)
        if framework is not None and framework.run_pre_enqueue_plugins(info) is None:
            nominator.add(info)
    cache.update_snapshot(snapshot)
    return World(frameworks, cache, snapshot, pods, CycleState(), unknown)
