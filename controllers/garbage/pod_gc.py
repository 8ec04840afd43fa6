"""The pods that the pod garbage collector deletes. Pure.

Source: kube-controller-manager 1.36, pkg/controller/podgc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nominee.machinery.api.objects import condition_is, copy_of, has_ended, is_terminating, set_condition
from nominee.machinery.api.pb import core, meta
from nominee.machinery.scheduling.taints import OUT_OF_SERVICE, find_taint


def _age_order(pod: core.Pod) -> tuple[bool, int, str]:
    """Order ended pods: evicted ones first, then the oldest."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return (not evicted, pod.metadata.creationTimestamp.seconds, pod.metadata.name)


def too_many_ended(pods: Iterable[core.Pod], threshold: int) -> list[core.Pod]:
    """Return the ended pods beyond the threshold; there is no limit where it is 0 or less."""
    ended = [pod for pod in pods if has_ended(pod)]
    excess = len(ended) - threshold
    return sorted(ended, key=_age_order)[:excess] if threshold > 0 and excess > 0 else []


def out_of_service(pods: Iterable[core.Pod], nodes: Mapping[str, core.Node]) -> list[core.Pod]:
    """Return the terminating pods of nodes that are not ready and have the out-of-service taint."""

    def is_out(node: core.Node | None) -> bool:
        return (
            node is not None
            and not condition_is(node.status.conditions, "Ready")
            and find_taint(node.spec.taints, OUT_OF_SERVICE) is not None
        )

    return [pod for pod in pods if is_terminating(pod) and is_out(nodes.get(pod.spec.nodeName))]


def unscheduled_terminating(pods: Iterable[core.Pod]) -> list[core.Pod]:
    """Return the terminating pods without a node, which no kubelet will end."""
    return [pod for pod in pods if is_terminating(pod) and not pod.spec.nodeName]


class Quarantine:
    """Nodes that pods name and that do not exist, by how long they have been missing.

    The informer may show a node later than its pods, so a node counts as gone after some time only.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def missing_nodes(self, named: Iterable[str], exists: Callable[[str], bool], now: float) -> list[str]:
        """Return the nodes that have been missing long enough; `now` is in monotonic seconds."""
        missing = {name for name in named if name and not exists(name)}
        self._since = {name: self._since.get(name, now) for name in missing}
        return sorted(name for name, since in self._since.items() if now - since >= self._seconds)


def on_nodes(pods: Sequence[core.Pod], gone: Iterable[str]) -> list[core.Pod]:
    names = set(gone)
    return [pod for pod in pods if pod.spec.nodeName in names]


def fail(pod: core.Pod, now: meta.Time, *, node_gone: bool) -> core.Pod | None:
    """Return the pod as Failed, to be written before its deletion; None where it has ended already."""
    if has_ended(pod):
        return None
    new = copy_of(pod)
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
