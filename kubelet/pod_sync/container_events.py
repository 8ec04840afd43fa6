"""Events of containers: pulled, created, started, stopping, backing off. Pure.

Reasons and texts are kubelet 1.36's; those up to 1.34 named the container in the text, later ones leave that
to the event's field path. Images are always there, unless an annotation says otherwise: the emulated runtime
pulls nothing.
Source: kubelet 1.36, kuberuntime and images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nominee.kubelet.instructions import ContainerEvent
from nominee.kubelet.pods import crash_loop
from nominee.machinery.api.pb import core
from nominee.machinery.events.reference import reference
from nominee.machinery.features.gates import Version

_SHORT_SINCE = Version(1, 35)


def start_events(pod: core.Pod, names: Iterable[str], version: Version) -> Iterator[ContainerEvent]:
    """Return the events of containers that were started, in order."""
    images = _images(pod)
    short = version >= _SHORT_SINCE
    for name in names:
        regarding = _refer(pod, name)
        access = " and can be accessed by the pod" if short else ""
        pulled = f'Container image "{images.get(name, "")}" already present on machine{access}'
        created = "Container created" if short else f"Created container: {name}"
        running = "Container started" if short else f"Started container {name}"
        yield ContainerEvent(regarding, "Pulled", pulled)
        yield ContainerEvent(regarding, "Created", created)
        yield ContainerEvent(regarding, "Started", running)


def stopping(pod: core.Pod, names: Iterable[str]) -> Iterator[ContainerEvent]:
    """Return the events of containers that are about to be stopped for good."""
    for name in names:
        yield ContainerEvent(_refer(pod, name), "Killing", f"Stopping container {name}")


def backing_off(pod: core.Pod, names: Iterable[str]) -> Iterator[ContainerEvent]:
    """Return the events of containers that have crashed and wait before they run again."""
    for name in names:
        yield ContainerEvent(_refer(pod, name), "BackOff", crash_loop.note(pod, name), "Warning")


def failure_events(pod: core.Pod, errors: Mapping[str, str]) -> Iterator[ContainerEvent]:
    """Return the events of containers that cannot be created, each for its reason."""
    for name, error in errors.items():
        yield ContainerEvent(_refer(pod, name), "Failed", f"Error: {error}", "Warning")


def pull_failed(pod: core.Pod, names: Iterable[str], error: str) -> Iterator[ContainerEvent]:
    """Return the events of containers whose image was tried to be pulled."""
    for name in names:
        regarding, image = _refer(pod, name), image_of(pod, name)
        yield ContainerEvent(regarding, "Pulling", f'Pulling image "{image}"')
        yield ContainerEvent(regarding, "Failed", f'Failed to pull image "{image}": {error}', "Warning")
        yield ContainerEvent(regarding, "Failed", "Error: ErrImagePull", "Warning")


def pull_backs_off(pod: core.Pod, names: Iterable[str]) -> Iterator[ContainerEvent]:
    """Return the events of containers whose image is not tried again yet."""
    for name in names:
        regarding = _refer(pod, name)
        yield ContainerEvent(regarding, "BackOff", f'Back-off pulling image "{image_of(pod, name)}"')
        yield ContainerEvent(regarding, "Failed", "Error: ImagePullBackOff", "Warning")


def unhealthy(pod: core.Pod, container: core.Container, name: str) -> ContainerEvent:
    """Return the event of a probe (startup, liveness or readiness) that has failed."""
    probe = getattr(container, f"{name}Probe")
    note = f"{name.capitalize()} probe failed: {_output(probe)}"
    return ContainerEvent(_refer(pod, container.name), "Unhealthy", note, "Warning")


def _output(probe: core.Probe) -> str:
    if probe.handler.HasField("httpGet"):
        return "HTTP probe failed with statuscode: 500"
    if probe.handler.HasField("grpc"):
        return 'service unhealthy (responded with "NOT_SERVING")'
    return "connect: connection refused" if probe.handler.HasField("tcpSocket") else ""


def failed_probes(pod: core.Pod, killed: Mapping[str, str], *, again: bool) -> Iterator[ContainerEvent]:
    """Return the events of containers that are killed for a failed probe, by its name."""
    rest = ", will be restarted" if again else ""
    for name, probe in killed.items():
        yield ContainerEvent(_refer(pod, name), "Killing", f"Container {name} failed {probe} probe{rest}")


def restarting(pod: core.Pod, names: Iterable[str]) -> Iterator[ContainerEvent]:
    """Return the events of containers that are stopped because a resize of them needs a restart."""
    for name in names:
        yield ContainerEvent(_refer(pod, name), "Killing", f"Container {name} resize requires restart")


def changed(pod: core.Pod, names: Iterable[str]) -> Iterator[ContainerEvent]:
    """Return the events of containers that are stopped because their image has changed."""
    for name in names:
        note = f"Container {name} definition changed, will be restarted"
        yield ContainerEvent(_refer(pod, name), "Killing", note)


def image_of(pod: core.Pod, name: str) -> str:
    """Return the image of a container."""
    return _images(pod)[name]


def _images(pod: core.Pod) -> Mapping[str, str]:
    images = {c.name: c.image for c in (*pod.spec.initContainers, *pod.spec.containers)}
    for one in pod.spec.ephemeralContainers:
        images[one.ephemeralContainerCommon.name] = one.ephemeralContainerCommon.image
    return images


def _refer(pod: core.Pod, name: str) -> core.ObjectReference:
    regarding = reference(pod)
    field = "containers"
    if any(container.name == name for container in pod.spec.initContainers):
        field = "initContainers"
    elif any(one.ephemeralContainerCommon.name == name for one in pod.spec.ephemeralContainers):
        field = "ephemeralContainers"
    regarding.fieldPath = f"spec.{field}{{{name}}}"
    return regarding
