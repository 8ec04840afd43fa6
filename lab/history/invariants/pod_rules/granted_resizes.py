"""A resize that was granted is not taken back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.generations import drop_read
from nominee.lab.history.invariants.checking.pods import ended_pod, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.pod_resources import CPU, MEMORY, amount

Amounts = tuple[int, int]
"""cpu in milli-units, and memory in bytes."""


@dataclass(slots=True)
class _Pod:
    """The requests of a pod's containers by generation, as long as its kubelet may read that generation."""

    requests: dict[int, dict[str, Amounts]] = field(default_factory=dict)

    def follow(self, pod: core.Pod) -> None:
        """Note a version; the kubelet has read the observedGeneration, and reads no older one."""
        self.requests[pod.metadata.generation] = {
            each.name: _amounts(each.resources.requests)
            for each in (*pod.spec.initContainers, *pod.spec.containers)
        }
        drop_read(self.requests, pod.status.observedGeneration)


class GrantedResizes(Checker):
    """Follows allocatedResources of each container's status.

    A kubelet allocates the requests of the spec, when it admits the pod or a resize; a resize that it
    defers, or that is infeasible, changes nothing. So an allocation changes to the requests of a generation
    that the kubelet may have read, and never back to former ones.
    Source: KEP-1287, "Allocated resources"; kubelet 1.36, allocation manager.
    """

    about = Invariant(
        name="granted-resizes-last",
        description="allocatedResources change only to the requests of a generation that the kubelet may "
        "have read last.",
        checks="changes of allocatedResources",
        exceptions={
            "stale-start": "WatchListClient is off: a kubelet that was restarted may begin with an older "
            "state"
        },
    )
    kinds = frozenset({POD})
    reads_settings = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._pods: dict[str, _Pod] = {}

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check the allocations of a pod against the generations up to here."""
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._pods.pop(ended.metadata.uid, None)
        if pod is None or revision.is_state:
            return
        before = same_pod_before(revision)
        known = self._pods.setdefault(pod.metadata.uid, _Pod())
        if before is not None and before.status != pod.status and known.requests:
            yield from self._check(before, pod, known, revision)
        known.follow(pod)

    def _check(self, before: core.Pod, pod: core.Pod, known: _Pod, revision: Revision) -> Iterator[Violation]:
        old = {status.name: _amounts(status.allocatedResources) for status in _statuses(before)}
        for status in _statuses(pod):
            new = _amounts(status.allocatedResources)
            former = old.get(status.name)
            if former is None or not status.allocatedResources or former in (new, (0, 0)):
                continue
            self.checked += 1
            if any(requests.get(status.name) == new for requests in known.requests.values()):
                continue
            if "kubelet" not in self.settings.lists_newest:
                self.allow("stale-start")
                continue
            yield self.violation(
                f"the allocation of container {status.name!r} went from {_text(former)} to {_text(new)}, "
                "which the spec does not request",
                revision,
            )


def _statuses(pod: core.Pod) -> Iterator[core.ContainerStatus]:
    yield from pod.status.initContainerStatuses
    yield from pod.status.containerStatuses


def _amounts(quantities: Mapping[str, resource.Quantity]) -> Amounts:
    cpu, memory = (amount(name, quantities[name]) if name in quantities else 0 for name in (CPU, MEMORY))
    return cpu, memory


def _text(amounts: Amounts) -> str:
    return f"cpu {amounts[0]}m, memory {amounts[1]}"
