"""Containers and allocations of pods that run, without a checkpoint: as their statuses show them. Pure.

For a node whose checkpoint is lost, where a real kubelet would ask its container runtime; and for one of
another cluster (`nominee import`).
"""

from __future__ import annotations

from collections.abc import Iterator

from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements, ResourceList
from nominee.kubelet.runtime.sandbox import Container, PodSandbox, container_id, inherit
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_sidecar
from nominee.machinery.runtime import clock


def adopt(pod: core.Pod) -> PodSandbox | None:
    """Return the pod's sandbox as its status shows it, or None when none of its containers ran.

    Init containers do not count: without another one the pod begins from the start.
    """
    containers = tuple(_containers(pod))
    if not any(container.id for container in containers if not container.init):
        return None
    status = pod.status
    # Without pod-level resources the status has the sum of the containers.
    own = pod.spec.HasField("resources") and status.HasField("resources")
    pod_resources = Requirements.from_message(status.resources) if own else None
    sandbox = PodSandbox(
        uid=pod.metadata.uid,
        started=clock.from_time(status.startTime),
        ip=status.podIP,
        containers=containers,
        pod_resources=pod_resources,
        ephemeral=tuple(_ephemeral(pod)),
    )
    return inherit(sandbox)


def allocations(pod: core.Pod, desired: PodResources) -> PodResources:
    """Return the pod's allocation by its status, in the form of the resources that it desires.

    A status has allocated requests, and limits in force. Where the requests are those of the spec, so are
    the limits; where the resize has not been allocated yet, the limits in force are the allocated ones.
    """
    rows = _rows(pod)
    status = pod.status
    of_containers = tuple(
        (name, _allocated(rows.get(name, core.ContainerStatus()), own)) for name, own in desired.containers
    )
    return PodResources(of_containers, None if desired.pod is None else _allocated(status, desired.pod))


def _allocated(status: core.ContainerStatus | core.PodStatus, desired: Requirements) -> Requirements:
    if not status.allocatedResources:
        return desired
    requests = ResourceList.from_message(status.allocatedResources)
    if requests.same(desired.requests) or not status.HasField("resources"):
        return Requirements(requests, desired.limits)
    return Requirements(requests, ResourceList.from_message(status.resources.limits))


def _rows(pod: core.Pod) -> dict[str, core.ContainerStatus]:
    return {row.name: row for row in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)}


def _containers(pod: core.Pod) -> Iterator[Container]:
    rows = _rows(pod)
    for spec, init in (
        *((one, True) for one in pod.spec.initContainers),
        *((one, False) for one in pod.spec.containers),
    ):
        yield _container(pod.metadata.uid, spec, rows.get(spec.name, core.ContainerStatus()), init)


def _ephemeral(pod: core.Pod) -> Iterator[Container]:
    rows = {row.name: row for row in pod.status.ephemeralContainerStatuses}
    for spec in pod.spec.ephemeralContainers:
        name = spec.ephemeralContainerCommon.name
        if name in rows:
            yield _container(pod.metadata.uid, core.Container(name=name), rows[name], False)


def _container(uid: str, spec: core.Container, row: core.ContainerStatus, init: bool) -> Container:
    ended = row.state.terminated
    running = row.state.HasField("running")
    exited = row.state.HasField("terminated")
    begun = row.state.running.startedAt if running else ended.startedAt
    source = row.resources if row.HasField("resources") else spec.resources
    return Container(
        name=spec.name,
        init=init,
        sidecar=init and is_sidecar(spec),
        state="running" if running else "exited" if exited else "waiting",
        id=row.containerID or (container_id(uid, spec.name, row.restartCount) if running or exited else ""),
        image=spec.image,
        restarts=row.restartCount,
        started=clock.from_time(begun),
        finished=clock.from_time(ended.finishedAt) if exited else 0.0,
        exit_code=ended.exitCode,
        ready=row.ready,
        last_id=row.lastState.terminated.containerID,
        last_started=clock.from_time(row.lastState.terminated.startedAt),
        last_finished=clock.from_time(row.lastState.terminated.finishedAt),
        last_exit_code=row.lastState.terminated.exitCode,
        back_off_since=clock.from_time(row.lastState.terminated.finishedAt),
        resources=Requirements.from_message(source),
    )
