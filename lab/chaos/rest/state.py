"""A cluster at rest, as data, and the findings of rules about it. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from google.protobuf.message import Message

from nominee.lab.chaos.rest.past.changes_of_room import Group
from nominee.lab.chaos.rest.past.left_nodes import LeftNode
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.api.objects import is_terminating, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

M = TypeVar("M", bound=Message)
LISTED: tuple[AnyKind, ...] = (
    kinds.NAMESPACE,
    kinds.NODE,
    kinds.POD,
    kinds.REPLICA_SET,
    kinds.REPLICATION_CONTROLLER,
    kinds.DEPLOYMENT,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.CONTROLLER_REVISION,
    kinds.JOB,
    kinds.CRON_JOB,
    kinds.HORIZONTAL_POD_AUTOSCALER,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.RESOURCE_QUOTA,
    kinds.SERVICE,
    kinds.ENDPOINT_SLICE,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.PERSISTENT_VOLUME,
    kinds.STORAGE_CLASS,
    kinds.RESOURCE_CLAIM,
    kinds.LEASE,
)
"""The kinds of which the rules read objects."""


FINDING_SECONDS_MAX = 90.0
"""For retries, back-offs and periodic work; a process gives up a list whose request was lost after 60 s."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An object, and a sentence about it that is not true of a correct cluster at rest.

    The sentence must not change while the finding lasts: what is seen twice in a row counts. A finding may
    last for `seconds_max`, and not before `due`, in seconds since the epoch: until then a process waits.
    """

    object: str
    sentence: str
    seconds_max: float = FINDING_SECONDS_MAX
    due: float = 0.0

    def __str__(self) -> str:
        return f"{self.object} {self.sentence}"


ANY_NODE: Final = "*"


@dataclass(frozen=True, kw_only=True)
class Expectations:
    """States that a correct cluster may have for a reason outside of it: the load.

    `rejects`: whether a pod may be Failed by its kubelet. `races`: nodes, or ANY_NODE, and how the reasons
    begin for which their kubelet may refuse a pod: it has not seen a change that the scheduler has seen, or
    the other way round. `emptied_groups`: node groups whose instances a step deletes, whatever their minimum
    is.
    `shapes` are those after the undisturbed run, by their numbers of objects, and `work` is that of its
    processes; None where nothing was disturbed.
    """

    rejects: Callable[[core.Pod], bool] = lambda pod: False
    races: frozenset[tuple[str, str]] = frozenset()
    emptied_groups: frozenset[str] = frozenset()
    shapes: Mapping[str, int] | None = None
    work: Mapping[str, float] | None = None

    def is_race(self, pod: core.Pod) -> bool:
        """Return whether a pod was refused for one of the races."""
        return any(
            node in (ANY_NODE, pod.spec.nodeName) and pod.status.reason.startswith(reason)
            for node, reason in self.races
        )


@dataclass(frozen=True, kw_only=True)
class State:
    """The objects of a cluster and the state of its processes.

    `objects` by kind; a kind that the API server does not serve has none. `running` are the components that
    have a ready process. `debug` are the documents of processes, by the name of a process, or of the
    component that it leads, and the path. `revisions` are the resourceVersions of the objects that processes
    copy, by `namespace/name`, from before the documents. `now` is in seconds since the epoch. `left_nodes`
    are read only where a pod waits that fits, or may fit, `unreserved_claims`, by uid, where a claim is
    allocated and not reserved, and `listed_jobs`, by uid, where a CronJob does not list a Job that runs.
    `inherited_nominations`, by uid, are read where the scheduler respects nominations. `room_changed` is when
    the last writes may have made room, where a pod of a group waits. `refusals` are the owners that lack
    pods, by uid, and whose pods the API server refuses for a reason that the objects show, as a LimitRange or
    a PriorityClass that is gone. `other_owners` are those of objects of other kinds, by uid, where an owner
    waits for dependents and has none.
    """

    objects: Mapping[AnyKind, Sequence[Message]]
    now: float
    running: frozenset[str] = frozenset()
    debug: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    revisions: Mapping[Scope, Mapping[str, str]] = field(default_factory=dict)
    expectations: Expectations = field(default_factory=Expectations)
    left_nodes: Sequence[LeftNode] = ()
    inherited_nominations: frozenset[str] = frozenset()
    unreserved_claims: frozenset[str] = frozenset()
    listed_jobs: frozenset[str] = frozenset()
    room_changed: Mapping[Group | None, float] = field(default_factory=lambda: {None: float("inf")})
    refusals: frozenset[str] = frozenset()
    other_owners: frozenset[str] = frozenset()

    def of(self, kind: Kind[M]) -> Sequence[M]:
        """Return the objects of a kind."""
        return self.objects.get(kind, ())  # type: ignore[return-value]  # the mapping is by kind

    @cached_property
    def by_uid(self) -> Mapping[str, Message]:
        """Return all objects by uid."""
        return {metadata_of(each).uid: each for row in self.objects.values() for each in row}

    @cached_property
    def pods_by_namespace(self) -> Mapping[str, Sequence[core.Pod]]:
        """Return the pods of each namespace that has some."""
        grouped: dict[str, list[core.Pod]] = {}
        for pod in self.of(kinds.POD):
            grouped.setdefault(pod.metadata.namespace, []).append(pod)
        return grouped

    @cached_property
    def namespaces_with_quotas(self) -> frozenset[str]:
        """Return the namespaces in which a quota may refuse objects."""
        return frozenset(quota.metadata.namespace for quota in self.of(kinds.RESOURCE_QUOTA))

    @cached_property
    def ending_namespaces(self) -> frozenset[str]:
        """Return the namespaces that terminate.

        Their owners stay until the last of their pods is gone, and no pod can be created in them.
        Source: kube-controller-manager 1.36, namespaced_resources_deleter.go, OrderedNamespaceDeletion.
        """
        return frozenset(each.metadata.name for each in self.of(kinds.NAMESPACE) if is_terminating(each))

    @cached_property
    def node_names(self) -> frozenset[str]:
        """Return the names of all nodes."""
        return frozenset(node.metadata.name for node in self.of(kinds.NODE))


@dataclass(frozen=True, slots=True)
class Scope:
    """The objects that an informer copies: a kind, a namespace ("" for all), and selectors."""

    kind: AnyKind
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


Rule = Callable[[State], Iterator[Finding]]


def name_of(obj: Message) -> str:
    """Return `pod default/web`, `node n1`: how findings name an object."""
    metadata = metadata_of(obj)
    kind = kinds.of(obj).kind.lower()
    return f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name}"


def in_order(names: Iterable[str]) -> str:
    """Return sorted names in one text, or `none`."""
    return ", ".join(sorted(names)) or "none"
