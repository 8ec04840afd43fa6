"""Decide which pods are resized in place, which wait, and which are evicted instead.

Source: vertical-pod-autoscaler 1.5, updater: PodsInPlaceRestriction, CanEvictInPlacingPod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nominee.lab.vpa.policy import Policy
from nominee.lab.vpa.trace import ALL_CONTAINERS, Usage
from nominee.machinery.api.objects import ObjectKey, controller_of, get_condition, is_terminating, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources import quantity

MEMORY, CPU = "memory", "cpu"


class Action(StrEnum):
    """The updater's action on a pod."""

    RESIZE = "Resize"
    WAIT = "Wait"
    EVICT = "Evict"
    KEEP = "Keep"


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """The requests and limits of one container after a resize, as quantities."""

    name: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The action for one pod, with the reason; `containers` is for Action.RESIZE."""

    pod: ObjectKey
    uid: str
    action: Action
    reason: str
    containers: tuple[ContainerResources, ...] = ()

    @property
    def patch(self) -> dict[str, object]:
        """Return the strategic merge patch for the subresource `resize`."""
        containers = [
            {"name": c.name, "resources": {"requests": dict(c.requests), "limits": dict(c.limits)}}
            for c in self.containers
        ]
        return {"spec": {"containers": containers}}


@dataclass(slots=True, kw_only=True)
class _Group:
    """The pods of one controller, and how many of them this round has disrupted."""

    configured: int
    running: int
    tolerance: int
    resized: int = 0
    evicted: int = 0

    def is_disruptable(self) -> bool:
        alive = self.running - (self.evicted + self.resized)
        return alive > self.configured - self.tolerance or (
            self.configured == self.running and self.tolerance == 0 and not self.evicted and not self.resized
        )


class Updater:
    """The updater of one set of pods. It keeps when it first saw each pod's resize under way."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seen_since: dict[str, float] = {}  # pod's uid: seconds
        self._groups: dict[str, _Group] = {}  # controller's uid

    def decide(
        self,
        pods: Sequence[core.Pod],
        replicas: Mapping[str, int],
        usage: Mapping[str, Usage],
        now: float,
    ) -> list[Decision]:
        """Return a decision for each pod that is not terminating, in the order of their names.

        `replicas` has the configured replicas by the controller's uid; for a controller that it lacks, its
        live pods count. `now` is in seconds of a monotonic clock.
        """
        live = sorted((pod for pod in pods if not is_terminating(pod)), key=key_of)
        self._groups = self._group(live, replicas)
        current = {pod.metadata.uid for pod in live if _is_resizing(pod)}
        self._seen_since = {uid: since for uid, since in self._seen_since.items() if uid in current}
        return [self._decide(pod, usage, now) for pod in live]

    def resize_failed(self, decision: Decision, pod: core.Pod, error: str) -> Decision:
        """Return the decision after a resize that the API server refused: eviction, if it is allowed."""
        group = self._group_of(pod)
        if group is not None:
            group.resized -= 1
        if group is None or not group.is_disruptable():
            return _of(pod, Action.WAIT, f"the resize was refused ({error}); no replica can be spared")
        group.evicted += 1
        return _of(pod, Action.EVICT, f"the resize was refused ({error})")

    def _group(self, pods: Sequence[core.Pod], replicas: Mapping[str, int]) -> dict[str, _Group]:
        members: dict[str, list[core.Pod]] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None:
                members.setdefault(owner.uid, []).append(pod)
        groups = {}
        for uid, owned in members.items():
            if len(owned) < self._policy.min_replicas:
                continue
            configured = replicas.get(uid, len(owned))
            groups[uid] = _Group(
                configured=configured,
                running=sum(pod.status.phase != "Pending" for pod in owned),
                tolerance=int(configured * self._policy.eviction_tolerance),
            )
        return groups

    def _group_of(self, pod: core.Pod) -> _Group | None:
        owner = controller_of(pod)
        return self._groups.get(owner.uid) if owner is not None else None

    def _decide(self, pod: core.Pod, usage: Mapping[str, Usage], now: float) -> Decision:
        group = self._group_of(pod)
        if group is None:
            return _of(pod, Action.WAIT, f"no controller with {self._policy.min_replicas} live pods or more")
        if pod.status.phase == "Pending":
            return _of(pod, Action.WAIT, "the pod is pending")
        if _is_resizing(pod):
            return self._await_resize(pod, group, now)
        containers, difference = recommend(pod, usage, self._policy.margin)
        if difference < self._policy.update_threshold:
            return _of(pod, Action.KEEP, f"requests differ from the target by {difference:.0%}")
        if not group.is_disruptable():
            return _of(pod, Action.WAIT, "no replica can be spared")
        group.resized += 1
        return _of(pod, Action.RESIZE, f"requests differ from the target by {difference:.0%}", containers)

    def _await_resize(self, pod: core.Pod, group: _Group, now: float) -> Decision:
        elapsed = now - self._seen_since.setdefault(pod.metadata.uid, now)
        failure = _failure(pod, elapsed, self._policy)
        if not failure:
            return _of(pod, Action.WAIT, f"a resize is under way for {elapsed:.0f} s")
        if not group.is_disruptable():
            return _of(pod, Action.WAIT, f"{failure}; no replica can be spared")
        group.evicted += 1
        return _of(pod, Action.EVICT, failure)


def _is_resizing(pod: core.Pod) -> bool:
    return any(
        get_condition(pod.status.conditions, kind) is not None
        for kind in ("PodResizePending", "PodResizeInProgress")
    )


def _failure(pod: core.Pod, elapsed: float, policy: Policy) -> str:
    """Return why the resize counts as failed, or an empty text."""
    pending = get_condition(pod.status.conditions, "PodResizePending")
    if pending is not None:
        if pending.reason != "Deferred":
            return f"the resize is pending: {pending.reason}"
        over = elapsed > policy.deferred_timeout_seconds
        return f"the resize is Deferred for more than {policy.deferred_timeout_seconds:g} s" if over else ""
    progress = get_condition(pod.status.conditions, "PodResizeInProgress")
    if progress is None:
        return ""
    if progress.reason or progress.message:
        return f"the resize is in progress with {progress.reason or progress.message}"
    over = elapsed > policy.in_progress_timeout_seconds
    return f"the resize is in progress for more than {policy.in_progress_timeout_seconds:g} s" if over else ""


def recommend(
    pod: core.Pod, usage: Mapping[str, Usage], margin: float
) -> tuple[tuple[ContainerResources, ...], float]:
    """Return the target resources of a pod's containers, and the relative difference from its requests.

    The target is the usage with a safety margin, for the resources that a container requests; a limit is
    scaled with its request. The difference is the sum over cpu and memory.
    """
    containers = []
    requested: dict[str, int] = {}
    targets: dict[str, int] = {}
    for container in pod.spec.containers:
        used = usage.get(container.name, usage.get(ALL_CONTAINERS))
        if used is None:
            continue
        requests, limits = {}, {}
        for name, amount in ((CPU, used.cpu), (MEMORY, used.memory)):
            if amount is None or name not in container.resources.requests:
                continue
            present = _read(name, container.resources.requests[name].string)
            target = round(amount * (1 + margin))
            requests[name] = _write(name, target)
            requested[name] = requested.get(name, 0) + present
            targets[name] = targets.get(name, 0) + target
            if name in container.resources.limits and present:
                limit = _read(name, container.resources.limits[name].string)
                limits[name] = _write(name, limit * target // present)
        if requests:
            containers.append(ContainerResources(container.name, requests, limits))
    difference = sum(abs(targets[name] - requested[name]) / max(requested[name], 1) for name in targets)
    return tuple(containers), difference


def _read(name: str, text: str) -> int:
    return quantity.milli(text) if name == CPU else quantity.value(text)


def _write(name: str, amount: int) -> str:
    parsed = quantity.Quantity.of_milli(amount) if name == CPU else quantity.Quantity.of(amount)
    return parsed.canonical()


def _of(
    pod: core.Pod, action: Action, reason: str, containers: tuple[ContainerResources, ...] = ()
) -> Decision:
    return Decision(
        pod=key_of(pod), uid=pod.metadata.uid, action=action, reason=reason, containers=containers
    )
