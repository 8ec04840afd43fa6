"""Which pods are garbage. Pure.

Source: kube-controller-manager 1.36, pkg/controller/podgc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from machinery.api.objects import condition_is, is_terminating, set_condition
from machinery.api.pb import core, meta

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ENDED: Final = ("Succeeded", "Failed")


def has_ended(pod: core.Pod) -> bool:
    return pod.status.phase in _ENDED


def _age_order(pod: core.Pod) -> tuple[bool, int, str]:
    """Evicted ones first, then the oldest: those made by controllers are wanted for a while."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return (not evicted, pod.metadata.creationTimestamp.seconds, pod.metadata.name)


def too_many_ended(pods: Iterable[core.Pod], threshold: int) -> list[core.Pod]:
    """Ended pods beyond the threshold; none where the threshold is 0 or less."""
    ended = [pod for pod in pods if has_ended(pod)]
    excess = len(ended) - threshold
    return sorted(ended, key=_age_order)[:excess] if threshold > 0 and excess > 0 else []


def out_of_service(pods: Iterable[core.Pod], nodes: Mapping[str, core.Node]) -> list[core.Pod]:
    """Terminating pods of nodes that a person declared out of service, and that are not ready."""

    def dead(node: core.Node | None) -> bool:
        return (
            node is not None
            and not condition_is(node.status.conditions, "Ready")
            and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        )

    return [pod for pod in pods if is_terminating(pod) and dead(nodes.get(pod.spec.nodeName))]


def unscheduled_terminating(pods: Iterable[core.Pod]) -> list[core.Pod]:
    """Terminating pods that never got a node: no kubelet will end them."""
    return [pod for pod in pods if is_terminating(pod) and not pod.spec.nodeName]


class Quarantine:
    """Nodes that pods name and that are not there: gone for good only after a while, since a node may come
    later than its pods do in what this process sees."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def look(self, named: Iterable[str], exists: Callable[[str], bool], now: float) -> list[str]:
        """The nodes that have been missing long enough; `now` is in monotonic seconds."""
        missing = {name for name in named if name and not exists(name)}
        self._since = {name: self._since.get(name, now) for name in missing}
        return sorted(name for name, since in self._since.items() if now - since >= self._seconds)


def on_nodes(pods: Sequence[core.Pod], gone: Iterable[str]) -> list[core.Pod]:
    names = set(gone)
    return [pod for pod in pods if pod.spec.nodeName in names]


def failed(pod: core.Pod, now: meta.Time, *, node_gone: bool) -> core.Pod | None:
    """The pod as it is marked before it is deleted; None where it has ended already."""
    if has_ended(pod):
        return None
    new = core.Pod()
    new.CopyFrom(pod)
    new.status.phase = "Failed"
    new.status.observedGeneration = pod.metadata.generation
    if node_gone:
        condition = core.PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByPodGC",
            message="PodGC: node no longer exists",
            observedGeneration=pod.metadata.generation,
        )
        set_condition(new.status.conditions, condition, now)
    return new
