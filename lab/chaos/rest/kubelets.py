"""Nodes and pods as their kubelets report them: heartbeats, resizes. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.copies import STATE
from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, get_condition, is_terminating, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.runtime.clock import from_time

_NODE_LEASES: Final = "kube-node-lease"
_RESOURCES: Final = ("cpu", "memory")
_LIVE: Final = ("Pending", "Running")
_PENDING, _IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


def heartbeats(state: State) -> Iterator[Finding]:
    """Find nodes that are not ready, or whose lease is not renewed, although their kubelet runs."""
    served = _served(state)
    leases = {
        lease.metadata.name: lease
        for lease in state.of(kinds.LEASE)
        if lease.metadata.namespace == _NODE_LEASES
    }
    for node in state.of(kinds.NODE):
        name = node.metadata.name
        if name not in served:
            continue
        if not condition_is(node.status.conditions, "Ready"):
            yield Finding(name_of(node), "is not ready, and its kubelet runs")
        lease = leases.get(name)
        if lease is None:
            yield Finding(name_of(node), "has no lease, and its kubelet runs")
        elif from_time(lease.spec.renewTime) + lease.spec.leaseDurationSeconds < state.now:
            yield Finding(name_of(node), "has a lease that has run out, and its kubelet runs")


def _served(state: State) -> set[str]:
    """Return the nodes whose kubelet runs."""
    return {
        node
        for (_, path), document in state.debug.items()
        if path == STATE and "nodes" in document and "assumed" not in document
        for node in document["nodes"]
    }


def reports(state: State) -> Iterator[Finding]:
    """Find pods whose status contradicts itself, or is of an earlier generation than the pod."""
    served = _served(state)
    hosts = {
        node.metadata.name: {address.address for address in node.status.addresses}
        for node in state.of(kinds.NODE)
        if node.metadata.name in served and condition_is(node.status.conditions, "Ready")
    }
    for pod in state.of(kinds.POD):
        if pod.spec.nodeName in hosts and not is_terminating(pod) and pod.status.phase in _LIVE:
            for sentence in _contradictions(pod, hosts[pod.spec.nodeName]):
                yield Finding(name_of(pod), sentence)


def _contradictions(pod: core.Pod, host: set[str]) -> Iterator[str]:
    status = pod.status
    if 0 < status.observedGeneration < pod.metadata.generation:
        yield f"has a status of generation {status.observedGeneration} only"
    if status.hostIP and host and status.hostIP not in host:
        yield f"shows the hostIP {status.hostIP}, which its node does not have"
    if not status.containerStatuses:
        return
    running = sum(each.state.HasField("running") for each in status.containerStatuses)
    if running == len(pod.spec.containers) and status.phase != "Running":
        yield f"is {status.phase}, and all its containers run"
    are_ready = all(each.ready for each in status.containerStatuses) and running == len(pod.spec.containers)
    for name in ("ContainersReady", "Ready"):
        found = get_condition(status.conditions, name)
        if name == "Ready" and pod.spec.readinessGates:
            continue
        if found is not None and (found.status == "True") is not are_ready:
            which = "all" if are_ready else "not all"
            yield f"shows {name}={found.status}, and {which} its containers are ready"


def resizes(state: State) -> Iterator[Finding]:
    """Find running pods with other resources than they ask for, and no resize that waits or is refused."""
    served = _served(state)
    for pod in state.of(kinds.POD):
        conditions = pod.status.conditions
        if is_terminating(pod) or pod.status.phase != "Running" or pod.spec.nodeName not in served:
            continue
        if condition_is(conditions, _IN_PROGRESS):
            yield Finding(name_of(pod), "is still being resized")
        elif get_condition(conditions, _PENDING) is None:
            for container, name in _differences(pod):
                text = f"asks for another {name} in container {container} than it has, without {_PENDING}"
                yield Finding(name_of(pod), text)


def has_deferred_resizes(state: State) -> bool:
    """Return whether a pod waits for room for its resize."""
    conditions = (get_condition(pod.status.conditions, _PENDING) for pod in state.of(kinds.POD))
    return any(each is not None and each.reason == "Deferred" for each in conditions)


def _differences(pod: core.Pod) -> Iterator[tuple[str, str]]:
    """Yield the containers and resources whose request is not the one in the status."""
    requests = {each.name: amounts.read(each.resources.requests) for each in pod.spec.containers}
    for status in pod.status.containerStatuses:
        if not (status.state.HasField("running") and status.HasField("resources")):
            continue
        shown = amounts.read(status.resources.requests)
        desired = requests.get(status.name, {})
        yield from ((status.name, name) for name in _RESOURCES if shown.get(name) != desired.get(name))


def removals(state: State) -> Iterator[Finding]:
    """Find objects that terminate although no finalizer keeps them; pods have their grace period."""
    for kind, row in state.objects.items():
        for each in row if kind not in (kinds.POD, kinds.NAMESPACE) else ():
            metadata = metadata_of(each)
            if metadata.HasField("deletionTimestamp") and not metadata.finalizers:
                yield Finding(name_of(each), "terminates, and no finalizer keeps it")
