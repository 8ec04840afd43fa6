"""A scheduler without I/O that tries deferred resizes, for tests of KEP-5836."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.pod import Failed, Scheduled, after_failure
from nominee.scheduler.attempts.resize import DeferredResizes, is_resize
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.failure import requeue_failed
from nominee.scheduler.framework.api.deferred_resize import ALPHA, Flavour, ResizePreemption
from nominee.scheduler.framework.api.io_steps import Concurrently, Delete, IoSteps
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.pod_requests import ResourceOptions
from nominee.scheduler.framework.runtime.environment import Environment
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.profile import Enabled, Profile, expand_multi_point
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins import registry
from nominee.scheduler.queue.hints import build_hint_map
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile

GATE = "InPlacePodVerticalScalingSchedulerPreemption"
V1_37 = Version(1, 37)
HIGH, LOW = 1000, 100
OPTIONS = ResourceOptions(resize_preemption=True)


def pod(
    name: str,
    cpu: str,
    *,
    on: str = "node1",
    allocated: str = "",
    memory: str = "",
    priority: int = LOW,
    deferred: bool = False,
    disabled: bool = False,
    terminating: bool = False,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> core.Pod:
    """A running pod that requests `cpu`; `allocated`: what its kubelet has allocated and the runtime has.

    `deferred`: PodResizePending; `disabled`: PodResizePreemptionDisabled.
    """
    requests = {"cpu": cpu, **({"memory": memory} if memory else {})}
    conditions = [{"type": "PodScheduled", "status": "True"}]
    if deferred:
        conditions.append({"type": "PodResizePending", "status": "True", "reason": "Deferred"})
    if disabled:
        reason = "PreemptionDisabledByNodePolicy"
        conditions.append({"type": "PodResizePreemptionDisabled", "status": "True", "reason": reason})
    held = {**requests, "cpu": allocated or cpu}
    status = {"name": "c", "allocatedResources": held, "resources": {"requests": held}}
    metadata: dict[str, Any] = {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1",
        "labels": dict(labels or {}),
    }  # fmt: skip
    if terminating:
        metadata["deletionTimestamp"] = "2027-01-01T00:00:00Z"
        row = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        conditions.append(row)
    return codec.from_json(
        core.Pod,
        {
            "metadata": metadata,
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": requests}}],
                "schedulerName": "default-scheduler",
                "priority": priority,
                **({"nodeName": on} if on else {}),
                **spec,
            },
            "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [status]}
            if on
            else {},
        },
    )


def node(name: str, cpu: str, *, pods: int = 32, owners: tuple[str, ...] = (), **spec: Any) -> core.Node:
    """A node with a policy of these owners."""
    if owners:
        spec["podPreemptionPolicy"] = {"disableResizePreemption": list(owners)}
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": str(pods)}
    return codec.from_json(
        core.Node,
        {"metadata": {"name": name}, "spec": spec, "status": {"capacity": amounts, "allocatable": amounts}},
    )


class Objects:
    """A lister."""

    def __init__(self, *objects: Any) -> None:
        self.objects = {key_of(obj): obj for obj in objects}

    def get(self, name: str, namespace: str = "") -> Any | None:
        return self.objects.get(ObjectKey(namespace, name))

    def list(self, namespace: str = "") -> list[Any]:
        return list(self.objects.values())


@dataclass(frozen=True)
class Attempt:
    """One cycle: the message, and the pods that are evicted."""

    pod: str
    message: str
    victims: tuple[str, ...]
    node: str = ""
    rejectors: frozenset[str] = frozenset()


class Bench:
    """Cache, queue, event handlers and plugins; `now` is the queue's time in seconds."""

    def __init__(
        self,
        options: ResizePreemption | None = ALPHA,
        *,
        gates: Mapping[str, bool] | None = None,
        listers: Mapping[Kind[Any], Objects] | None = None,
        plugins: Mapping[str, Any] | None = None,
    ) -> None:
        self.now = 0.0
        self.options = options
        self.pods: dict[str, core.Pod] = {}
        self.nodes: dict[str, core.Node] = {}
        self.cleared: list[str] = []  # pods whose nomination is to be cleared
        self.cache = Cache()
        self.groups = SchedulingGroups()
        nominator = Nominator(lambda info: not info.pod.spec.nodeName)
        switched = Gates("scheduler", V1_37, {**(gates or {}), **({GATE: True} if options else {})})
        more = dict(plugins or {})
        classes = {**registry.IN_TREE, **more}
        enabled = (
            *(Enabled(name) for name in more),
            *registry.default_plugins(switched, options),
        )
        self.framework = Framework(
            Profile(points=expand_multi_point(classes, enabled)),
            classes,
            Environment(
                snapshot=Snapshot(), nominator=nominator, scheduling_groups=self.groups, gates=switched,
                version=V1_37, resize_preemption=options, clock=FakeClock(), rng=random.Random(1),
                listers={kinds.POD: self, **(listers or {})},
            ),
        )  # fmt: skip
        hints = build_hint_map(self.framework.events_to_register())
        profile = QueueProfile(tuple(self.framework.pre_enqueue_plugins), hints)
        self.queue = PrioritySchedulingQueue(
            profiles={"default-scheduler": profile},
            sort=self.framework.queue_sort_plugin,
            nominator=nominator,
        )
        self.resource_options = OPTIONS if options else ResourceOptions()
        self.resizes = options and DeferredResizes(
            self.queue, self.cache, options, is_ours=self._is_ours, pod_info=self._info,
            resolved=lambda found: self.cleared.append(found.metadata.name),
        )  # fmt: skip
        self.handlers = EventHandlers(
            self.queue, self.cache, is_ours=self._is_ours, pod_info=self._info, groups=self.groups,
            resizes=self.resizes or None,
        )  # fmt: skip

    def _is_ours(self, scheduler_name: str) -> bool:
        return scheduler_name == "default-scheduler"

    def _info(self, found: core.Pod) -> PodInfo:
        return PodInfo(found, self.resource_options)

    def get(self, name: str, namespace: str = "") -> core.Pod | None:
        return self.pods.get(name)

    def list(self, namespace: str = "") -> list[core.Pod]:
        return list(self.pods.values())

    # What the watch shows

    def put(self, *objects: core.Pod | core.Node) -> None:
        """Add or change pods and nodes."""
        for obj in objects:
            if isinstance(obj, core.Node):
                old = self.nodes.get(obj.metadata.name)
                self.nodes[obj.metadata.name] = obj
                if old is None:
                    self.handlers.node_added(obj, self.now)
                else:
                    self.handlers.node_updated(old, obj, self.now)
                continue
            was = self.pods.get(obj.metadata.name)
            if was is not None:
                obj.metadata.resourceVersion = str(int(was.metadata.resourceVersion) + 1)
            self.pods[obj.metadata.name] = obj
            if was is None:
                self.handlers.pod_added(obj, self.now)
            else:
                self.handlers.pod_updated(was, obj, self.now)
        self.queue.validate()

    def remove(self, name: str) -> None:
        """Delete a pod."""
        self.handlers.pod_deleted(self.pods.pop(name), False, self.now)

    # What the scheduler does

    def place(self, name: str) -> str:
        """Return the queue that has the pod: active, backoff, unschedulable or gated; "" for none."""
        places = {
            "active": self.queue.active(), "backoff": self.queue.backing_off(),
            "error": self.queue.error_backing_off(), "unschedulable": self.queue.unschedulable(),
            "gated": self.queue.gated(),
        }  # fmt: skip
        found = [place for place, infos in places.items() for i in infos if i.pod_info.name == name]
        assert len(found) <= 1
        return found[0] if found else ""

    def attempt(self, meanwhile: Callable[[], None] = lambda: None, *, evicts: bool = False) -> Attempt:
        """Try the next pod; its evictions are only reported. `meanwhile`: what the watch shows in flight.

        `evicts`: the victims are evicted after the attempt, and end at once.
        """
        info = self.queue.pop()
        assert info is not None, "the queue is empty"
        found, state = info.pod_info, CycleState()
        outcome: Failed | Scheduled
        if is_resize(found.pod):
            assert self.resizes
            outcome = self.resizes.run(self.framework, self.cache, state, found)
        else:
            outcome = cycle.run(
                self.framework, self.cache, state, found, start=0, percentage=100, rng=random.Random(1)
            )
        if isinstance(outcome, Scheduled):
            self.queue.done(found.uid)
            return Attempt(found.name, "", (), outcome.node_name)
        meanwhile()
        info.unschedulable_plugins = set(outcome.unschedulable_plugins)
        after = after_failure(found, outcome, keeps_nominations=False)
        if is_resize(found.pod):
            assert self.resizes
            after = self.resizes.after_failure(found, outcome)
        nominating = after.nominating
        cached = self.pods.get(found.name)
        result = outcome.post_filter
        if evicts:
            assert result is not None
            assert result.begin is not None
            result.begin()
        requeue_failed(
            self.queue, info, cached, nominating, self.now, is_queued_if_bound=after.is_queued_if_bound
        )
        if evicts:
            assert result is not None
            assert result.follow_up is not None
            steps = result.follow_up()
            assert isinstance(steps, Generator)
            self._perform(steps)
        victims = result.candidate.victims if result is not None and result.candidate is not None else ()
        return Attempt(
            found.name,
            outcome.message,
            tuple(sorted(victim.name for victim in victims)),
            nominating.node_name if nominating is not None else "",
            outcome.unschedulable_plugins,
        )

    def _perform(self, steps: IoSteps[Any]) -> None:
        for step in steps:
            if isinstance(step, Concurrently):
                for each in step.works:
                    self._perform(each)
            elif isinstance(step, Delete):
                self.remove(step.name)

    def wakes(self, name: str) -> bool:
        """Return whether the pod is tried again, after its backoff at the latest; the time passes."""
        self.now += 15.0
        self.queue.flush_backoff(self.now)
        return self.place(name) == "active"


KEP, SHIPPED = ResizePreemption(), ResizePreemption(Flavour.V1_37)
FLAVOURS = pytest.mark.parametrize("options", [KEP, SHIPPED], ids=["kep", "1.37"])
FITS = "pod resize fits, waiting for Kubelet actuation"
DISABLED = "node had resize preemption disabled"
OTHER_NODE = "node(s) didn't satisfy plugin(s) [NodeName]"


def full(options: ResizePreemption | None = KEP, *more: core.Pod) -> Bench:
    """node1 of 300m with a victim of 200m, and a pod that grows from 100m to 300m; node2 is empty."""
    bench = Bench(options)
    bench.put(node("node1", "300m"), node("node2", "500m"), pod("victim", "200m"), *more)
    bench.put(growing())
    return bench


def growing(cpu: str = "300m", *, allocated: str = "100m", **changes: Any) -> core.Pod:
    return pod("growing", cpu, allocated=allocated, **{"deferred": True, "priority": HIGH, **changes})


def settled(cpu: str = "300m") -> core.Pod:
    """The same pod when its kubelet has done the resize."""
    return pod("growing", cpu, priority=HIGH)
