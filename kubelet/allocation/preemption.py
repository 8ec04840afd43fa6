"""The victims of the kubelet's own preemption, for a critical pod. Pure.

Best effort before burstable before guaranteed, and within a class the fewest and smallest. Source: kubelet
1.36, CriticalPodAdmissionHandler. Judge: tests/golden/kubelet_preemption.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nominee.machinery.resources.qos import BEST_EFFORT, BURSTABLE, GUARANTEED


class NoVictimsError(Exception):
    """All pods that may be preempted together would not free enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pod as preemption sees it; `requests` in millicores, bytes, ..."""

    key: str
    qos: str
    priority: int | None = None
    critical: bool = False
    requests: Mapping[str, int] = field(default_factory=dict)

    def request(self, resource: str) -> int:
        return 1 if resource == "pods" else self.requests.get(resource, 0)


@dataclass(frozen=True, slots=True)
class Shortage:
    """The amount of a resource that is missing."""

    resource: str
    amount: int


def choose_victims(
    preemptor: Candidate, pods: Iterable[Candidate], shortages: Sequence[Shortage]
) -> list[Candidate]:
    """Return the victims in the order in which they are killed.

    What the higher classes must give is found first, as if all lower classes were gone; the lower classes
    then give only what is still missing.

    Raises:
        NoVictimsError: there is no such set.
    """
    allowed = [pod for pod in pods if may_preempt(preemptor, pod)]
    best_effort = [pod for pod in allowed if pod.qos == BEST_EFFORT]
    burstable = [pod for pod in allowed if pod.qos == BURSTABLE]
    guaranteed = [pod for pod in allowed if pod.qos == GUARANTEED]
    missing = _without(shortages, [*best_effort, *burstable, *guaranteed])
    if missing:
        raise NoVictimsError(_no_set(missing))
    guaranteed_victims = _closest(guaranteed, _without(shortages, [*best_effort, *burstable]))
    burstable_victims = _closest(burstable, _without(shortages, [*best_effort, *guaranteed_victims]))
    best_effort_victims = _closest(
        best_effort, _without(shortages, [*burstable_victims, *guaranteed_victims])
    )
    return [*best_effort_victims, *burstable_victims, *guaranteed_victims]


def may_preempt(preemptor: Candidate, victim: Candidate) -> bool:
    """Return whether the pod may preempt another.

    A critical pod may preempt one that is not critical, and any pod one of lower priority (both set).
    """
    if preemptor.critical and not victim.critical:
        return True
    if preemptor.priority is None or victim.priority is None:
        return False
    return preemptor.priority > victim.priority


def _closest(pods: Iterable[Candidate], shortages: Sequence[Shortage]) -> list[Candidate]:
    """Choose the pod nearest to the shortages until none is left; of equally near ones the smaller, later."""
    left = list(pods)
    victims: list[Candidate] = []
    while shortages:
        if not left:
            raise NoVictimsError(_no_set(shortages))
        best, best_distance = 0, float(len(shortages) + 1)
        for index, pod in enumerate(left):
            distance = _distance(pod, shortages)
            if distance < best_distance or (distance == best_distance and _is_smaller(pod, left[best])):
                best, best_distance = index, distance
        victims.append(left[best])
        shortages = _without(shortages, [left[best]])
        # The last one takes the place of the one taken, as upstream does: it decides later ties.
        left[best] = left[-1]
        left.pop()
    return victims


def _distance(pod: Candidate, shortages: Sequence[Shortage]) -> float:
    """Return the sum of the squared parts of each shortage that the pod would leave."""
    total = 0.0
    for shortage in shortages:
        rest = shortage.amount - pod.request(shortage.resource)
        if rest > 0:
            total += (rest / shortage.amount) ** 2
    return total


def _is_smaller(pod: Candidate, other: Candidate) -> bool:
    """Return whether the pod asks for less memory, then cpu; true when equal."""
    return (pod.request("memory"), pod.request("cpu")) <= (other.request("memory"), other.request("cpu"))


def _without(shortages: Sequence[Shortage], pods: Sequence[Candidate]) -> list[Shortage]:
    """Return the shortages that are left once these pods are gone."""
    rest = []
    for shortage in shortages:
        amount = shortage.amount - sum(pod.request(shortage.resource) for pod in pods)
        if amount > 0:
            rest.append(Shortage(shortage.resource, amount))
    return rest


def _no_set(shortages: Sequence[Shortage]) -> str:
    listed = "".join(f"(res: {shortage.resource}, q: {shortage.amount}), " for shortage in shortages)
    return (
        "preemption: error finding a set of pods to preempt: "
        f"no set of running pods found to reclaim resources: [{listed}]"
    )
