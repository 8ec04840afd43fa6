"""A kubelet reports the allocations that are in its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import CheckpointedPod, ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.pod_resources import amount


class Checkpoints(Checker):
    """Compares the containers' allocatedResources with the checkpoints at the end (KEP-1287)."""

    about = Invariant(
        name="checkpoints-match-status",
        description="The allocated resources in a kubelet's checkpoint equal those in the pods' statuses.",
        checks="pods with allocatedResources",
        exceptions={"no-file": "there is no checkpoint of a running kubelet for the pod's node"},
    )
    kinds = frozenset({POD})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._newest: dict[str, Revision] = {}

    def unchecked(self, evidence: Evidence) -> str:
        """Return the reason where there are no checkpoints."""
        return "" if evidence.checkpoints is not None else "the kubelets' checkpoints are not available"

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod's newest state."""
        ended, pod = ended_pod(revision), revision.after(POD)
        if ended is not None:
            self._newest.pop(ended.metadata.uid, None)
        if pod is not None:
            self._newest[pod.metadata.uid] = revision
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Compare each pod that reports allocations."""
        checkpoints = evidence.checkpoints or {}
        for uid, revision in self._newest.items():
            pod = revision.after(POD)
            if pod is None or is_terminal(pod) or is_terminating(pod) or not _reports(pod):
                continue
            node = pod.spec.nodeName
            if node not in checkpoints:
                self.allow("no-file")
                continue
            self.checked += 1
            problem = _difference(pod, checkpoints[node].get(uid))
            if problem:
                yield self.violation(problem, revision, objects=(f"Node {node}",))


def _statuses(pod: core.Pod) -> Iterator[core.ContainerStatus]:
    yield from pod.status.initContainerStatuses
    yield from pod.status.containerStatuses


def _reports(pod: core.Pod) -> bool:
    return any(status.allocatedResources for status in _statuses(pod))


def _difference(pod: core.Pod, stored: CheckpointedPod | None) -> str:
    """Return how status and checkpoint differ, or ""."""
    if stored is None:
        return "the status has allocatedResources, and the checkpoint does not have the pod"
    for status in _statuses(pod):
        if not status.allocatedResources:
            continue
        reported, kept = _amounts(status.allocatedResources), _amounts(stored.requests.get(status.name, {}))
        if reported != kept:
            return (
                f"container {status.name}: the status has {_text(reported)} as allocatedResources, the "
                f"checkpoint {_text(kept)}"
            )
    return ""


def _amounts(quantities: Mapping[str, resource.Quantity | str]) -> dict[str, int]:
    return {name: amount(name, quantities[name]) for name in sorted(quantities)}


def _text(amounts: Mapping[str, int]) -> str:
    parts = [f"{name} {number}m" if name == "cpu" else f"{name} {number}" for name, number in amounts.items()]
    return ", ".join(parts) or "nothing"
