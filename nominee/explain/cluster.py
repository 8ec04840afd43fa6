"""Load manifests into the scheduler's framework, without processes.

What the API server and its admission plugins fill in at creation is filled in here: namespaces, uids,
defaults, label keys, priorities, and claims from their templates. Nothing is validated.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from nominee.explain.claims import create_claims
from nominee.machinery import defaults
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, scheduling
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.scheduling.label_keys import merge_label_keys
from nominee.machinery.scheduling.priority import SYSTEM_CLASSES
from nominee.machinery.wire import codec
from nominee.scheduler.features import SchedulerFeatures
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import Profile
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.registry import IN_TREE, default_profile

FINISHED = ("Succeeded", "Failed")

KINDS: Sequence[AnyKind] = (
    kinds.NODE,
    kinds.POD,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATE,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
    kinds.POD_GROUP,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.NAMESPACE,
    kinds.REPLICA_SET,
    kinds.SERVICE,
    kinds.PRIORITY_CLASS,
)
"""The kinds that the scheduler's plugins look at, and those that admission looks at for a pod."""

Objects = Mapping[AnyKind, Sequence[Any]]
"""The objects of a cluster, by kind."""


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
class Cluster:
    """A cluster, and the state of one scheduling cycle in it.

    `frameworks` by scheduler name; `framework` is the first one. `pods` by `namespace/name`, finished ones
    too. `unserved` names the manifests of kinds that are not served.
    """

    frameworks: Mapping[str, Framework]
    cache: Cache
    snapshot: Snapshot
    pods: dict[str, PodInfo]
    state: CycleState
    features: SchedulerFeatures
    unserved: list[str] = field(default_factory=list)

    @property
    def framework(self) -> Framework:
        return next(iter(self.frameworks.values()))

    def framework_of(self, pod: PodInfo) -> Framework | None:
        """Return the framework of the pod's schedulerName; None if no profile has that name."""
        return self.frameworks.get(pod.pod.spec.schedulerName)

    def pending(self) -> list[PodInfo]:
        """Return the pods that wait for a node, and those whose resize is deferred."""
        return [
            pod
            for pod in self.pods.values()
            if (not pod.pod.spec.nodeName or is_deferred_resize(pod.pod))
            and pod.pod.status.phase not in FINISHED
        ]


def read_object(document: Mapping[str, Any]) -> Message | None:
    """Return the message of a manifest; None for a kind that is not served."""
    kind = kinds.by_kind(document.get("apiVersion", ""), document.get("kind", ""))
    return None if kind is None else codec.from_json(kind.message, document)


def _name(kind: AnyKind, obj: Any) -> None:
    """Set the namespace and the uid, as the API server does where they are missing."""
    metadata = obj.metadata
    if kind.namespaced and not metadata.namespace:
        metadata.namespace = "default"
    if not metadata.uid:
        metadata.uid = f"{kind.plural}/{metadata.namespace}/{metadata.name}"


def _set_priorities(pods: Iterable[core.Pod], classes: Iterable[scheduling.PriorityClass]) -> None:
    """Set the pods' priorities from their classes, as the Priority admission plugin does."""
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


def build_cluster(
    manifests: Iterable[Mapping[str, Any]],
    *,
    gates: Gates,
    clock: Clock,
    rng: random.Random,
    profiles: Sequence[Profile] = (),
    classes: Mapping[str, type[Plugin]] = IN_TREE,
) -> Cluster:
    """Return the cluster of these manifests.

    `profiles`: the scheduler's profiles, of plugins among `classes`; without any the default profile.

    Raises:
        DecodeError: a manifest is not an object of its kind.
        StatusError: a quantity cannot be parsed.
        ArgumentError, PluginConfigError: a profile is wrong.
    """
    objects, unserved = _read_objects(manifests, gates)
    features = SchedulerFeatures.of(gates, gates.version)
    environment = Environment(
        snapshot=Snapshot(),
        nominator=Nominator(),
        gates=gates,
        version=gates.version,
        resize_preemption=features.resize_preemption,
        clock=clock,
        rng=rng,
        listers={kind: ObjectLister(found) for kind, found in objects.items()},
    )
    frameworks = {
        profile.name: Framework(profile, classes, environment) for profile in profiles or (default_profile(),)
    }
    cache = Cache()
    cluster = Cluster(frameworks, cache, environment.snapshot, {}, CycleState(), features, unserved)
    for node in objects.get(kinds.NODE, ()):
        cache.put_node(node)
    for pod in objects.get(kinds.POD, ()):
        _add_pod(cluster, PodInfo(pod, features.resources), environment.nominator)
    cache.update_snapshot(environment.snapshot)
    return cluster


def _read_objects(manifests: Iterable[Mapping[str, Any]], gates: Gates) -> tuple[Objects, list[str]]:
    """Return the objects as the API server would store them, and the names of manifests it does not serve."""
    objects: dict[AnyKind, list[Any]] = {}
    unserved = []
    for manifest in manifests:
        obj = read_object(manifest)
        if obj is None:
            unserved.append(f"{manifest.get('kind', '')} {manifest.get('metadata', {}).get('name', '')}")
            continue
        kind = kinds.of(obj)
        _name(kind, obj)
        defaults.apply(kind, obj, gates)
        if isinstance(obj, core.Pod):
            merge_label_keys(obj, gates)
        objects.setdefault(kind, []).append(obj)
    pods = objects.get(kinds.POD, ())
    _set_priorities(pods, objects.get(kinds.PRIORITY_CLASS, ()))
    claims = create_claims(pods, objects.get(kinds.RESOURCE_CLAIM_TEMPLATE, ()))
    objects.setdefault(kinds.RESOURCE_CLAIM, []).extend(claims)
    return objects, unserved


def _add_pod(cluster: Cluster, pod: PodInfo, nominator: Nominator) -> None:
    """Put a pod on its node, or its nomination into the nominator."""
    cluster.pods[str(pod.key)] = pod
    if pod.pod.status.phase in FINISHED:
        return
    if pod.pod.spec.nodeName:
        cluster.cache.add_pod(pod)
        return
    framework = cluster.framework_of(pod)
    if framework is not None and framework.run_pre_enqueue_plugins(pod) is None:
        nominator.add(pod)
