"""A pod in the emulated container runtime: containers that start, run and stop, as values. Pure.

No clock and no randomness: times and identifiers are arguments. What is here outlives a kubelet process, as
real containers do: it is part of the checkpoint. Times are seconds since the epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NotRequired, TypedDict, cast

from nominee.kubelet.resources.pod_resources import PodResources, inherited_limits
from nominee.kubelet.resources.requirements import (
    EMPTY,
    NO_RESOURCES,
    Requirements,
    RequirementsDocument,
    ResourceList,
)
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_sidecar

ContainerState = Literal["waiting", "running", "exited"]
RUNTIME = "nominee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The present run of a container. `resources` are those in force (actuated)."""

    name: str
    init: bool = False
    sidecar: bool = False
    state: ContainerState = "waiting"
    id: str = ""
    image: str = ""
    """What it runs; "" where that is not known."""
    restarts: int = 0
    started: float = 0.0
    finished: float = 0.0
    exit_code: int = 0
    ready: bool = False
    starting: bool = False
    """Its startup probe has not succeeded."""
    resources: Requirements = EMPTY
    inherited: ResourceList = NO_RESOURCES
    """Limits of the pod that are in force for it, for want of its own."""
    last_id: str = ""
    last_started: float = 0.0
    last_finished: float = 0.0
    last_exit_code: int = 0
    back_off_since: float = 0.0
    """While it waits to run again: the end from which its back-off counts at first; 0.0 if none does."""

    @property
    def in_force(self) -> Requirements:
        """Return its resources with the limits that it inherits."""
        return self.resources.with_limits(self.inherited)

    @property
    def crashed(self) -> bool:
        """Return whether it waits to run again."""
        return self.state == "waiting" and bool(self.last_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSandbox:
    """All of a pod in the runtime."""

    uid: str
    started: float
    """When the kubelet took the pod (status.startTime)."""
    ip: str = ""
    containers: tuple[Container, ...] = field(default=())
    pod_resources: Requirements | None = None
    """What is in force for the pod as a whole."""
    ephemeral: tuple[Container, ...] = field(default=())
    """Containers to debug it by: beside all that counts for the pod, and never started again."""

    def get(self, name: str) -> Container | None:
        """Return the container of this name, None where there is no such container."""
        for container in self.containers:
            if container.name == name:
                return container
        return None

    @property
    def running(self) -> bool:
        return any(container.state == "running" for container in self.containers)

    @property
    def begun(self) -> bool:
        """Return whether any container ever ran."""
        return any(container.state != "waiting" or container.crashed for container in self.containers)

    @property
    def crashed(self) -> tuple[Container, ...]:
        """Return the containers that wait to run again."""
        return tuple(container for container in self.containers if container.crashed)

    @property
    def restarts(self) -> int:
        """Return how often its containers were restarted, the one that was most often."""
        return max((container.restarts for container in self.containers if not container.init), default=0)

    @property
    def ready(self) -> bool:
        """Return whether all containers that must be ready are."""
        return bool(self.containers) and all(
            container.ready for container in self.containers if container.sidecar or not container.init
        )

    def in_force(self) -> PodResources:
        rows = tuple((container.name, container.resources) for container in self.containers)
        return PodResources(rows, self.pod_resources)


def prepare(pod: core.Pod, *, ip: str = "", now: float) -> PodSandbox:
    """Return a sandbox whose containers wait."""
    rows = [
        Container(name=container.name, init=True, sidecar=is_sidecar(container))
        for container in pod.spec.initContainers
    ]
    rows += [Container(name=container.name) for container in pod.spec.containers]
    return PodSandbox(uid=pod.metadata.uid, started=now, ip=ip, containers=tuple(rows))


def start(
    sandbox: PodSandbox,
    resources: PodResources,
    *,
    ip: str,
    now: float,
    images: Mapping[str, str] | None = None,
) -> PodSandbox:
    """Start all containers with these resources; ordinary init containers have run to completion."""
    begun = _each(sandbox, lambda container: _run(sandbox.uid, container, resources, now))
    return with_images(replace(begun, ip=ip, pod_resources=resources.pod), images or {})


def with_images(sandbox: PodSandbox, images: Mapping[str, str]) -> PodSandbox:
    """Return the sandbox whose containers run these images, by name."""
    return _each(sandbox, lambda one: replace(one, image=images.get(one.name, one.image)))


def debug(sandbox: PodSandbox, names: Iterable[str], *, now: float) -> PodSandbox:
    """Start new ephemeral containers."""
    rows = [_run(sandbox.uid, Container(name=name), PodResources(()), now) for name in names]
    return replace(sandbox, ephemeral=(*sandbox.ephemeral, *rows))


def become_ready(
    sandbox: PodSandbox, ready: tuple[str, ...] | None = None, starting: tuple[str, ...] = ()
) -> PodSandbox:
    """Make all running containers ready, or where `ready` is given just these and the sidecars."""

    def seen(one: Container) -> Container:
        is_ready = ready is None or one.init or one.name in ready
        return replace(one, ready=is_ready, starting=one.name in starting) if one.state == "running" else one

    return _each(sandbox, seen)


def restart(
    sandbox: PodSandbox, names: tuple[str, ...], resources: PodResources, *, now: float, ready: bool = True
) -> PodSandbox:
    """Kill some containers and start them again, with these resources; with `ready` as ready as they were."""

    def restarted(container: Container) -> Container:
        if container.name not in names or container.state != "running":
            return container
        ended = replace(_with_last_run(container, now, 0), restarts=container.restarts + 1)
        return replace(_run(sandbox.uid, ended, resources, now), ready=ready and container.ready)

    return _each(sandbox, restarted)


def crash(
    sandbox: PodSandbox,
    *,
    now: float,
    exit_code: int,
    names: tuple[str, ...] | None = None,
    killed: bool = False,
) -> PodSandbox:
    """End the containers, or just those of these names, which are to run again; sidecars go on.

    A container of these names that has ended, sidecar or not, waits to run again without a back-off. The
    kubelet that has `killed` one starts it again with what it knew before: the end of the run before counts.
    Source: kubelet 1.36, SyncPod (steps 3 and 8), doBackOff.
    """

    def ended(container: Container) -> Container:
        if not _is_of(container, names):
            return container
        if container.state == "exited" and names is not None:
            former = _with_last_run(container, container.finished, container.exit_code)
            return replace(former, state="waiting", back_off_since=0.0)
        if container.state != "running" or container.init:
            return container
        return replace(
            _with_last_run(container, now, exit_code),
            state="waiting",
            ready=False,
            finished=now,
            exit_code=exit_code,
            back_off_since=container.last_finished if killed else now,
        )

    return _each(sandbox, ended)


def rerun(sandbox: PodSandbox, names: tuple[str, ...], resources: PodResources, *, now: float) -> PodSandbox:
    """Start crashed containers again, with these resources."""

    def started(container: Container) -> Container:
        if not container.crashed or container.name not in names:
            return container
        return _run(sandbox.uid, replace(container, restarts=container.restarts + 1), resources, now)

    return _each(sandbox, started)


def change_images(
    sandbox: PodSandbox, images: Mapping[str, str], resources: PodResources, *, now: float
) -> PodSandbox:
    """Start containers again with other images: those that run are killed."""
    names = tuple(images)
    begun = restart(sandbox, names, resources, now=now, ready=False)
    return with_images(rerun(begun, names, resources, now=now), images)


def with_resources(sandbox: PodSandbox, resources: Mapping[str, Requirements]) -> PodSandbox:
    """Return the sandbox with other resources in force for some containers, without a restart."""
    return _each(sandbox, lambda one: replace(one, resources=resources.get(one.name, one.resources)))


def with_inherited(sandbox: PodSandbox, limits: Mapping[str, ResourceList]) -> PodSandbox:
    """Return the sandbox with other limits of the pod in force for some containers."""
    return _each(sandbox, lambda one: replace(one, inherited=limits.get(one.name, one.inherited)))


def with_pod_resources(sandbox: PodSandbox, resources: Requirements | None) -> PodSandbox:
    """Return the sandbox with other pod-level resources in force; containers keep their inherited limits."""
    return replace(sandbox, pod_resources=resources)


def inherit(sandbox: PodSandbox) -> PodSandbox:
    """Return the sandbox whose containers all inherit the limits of the pod as it is."""
    pod = sandbox.pod_resources
    return with_inherited(
        sandbox, {one.name: inherited_limits(one.resources, pod) for one in sandbox.containers}
    )


def stop(
    sandbox: PodSandbox, *, now: float, exit_code: int = 0, names: tuple[str, ...] | None = None
) -> PodSandbox:
    """Stop all containers for good, or just those of these names."""

    def end(container: Container) -> Container:
        if not _is_of(container, names):
            return container
        if container.state == "running":
            return replace(container, state="exited", finished=now, exit_code=exit_code, ready=False)
        # Its last run is how it ended.
        return replace(container, state="exited") if container.crashed else container

    return replace(_each(sandbox, end), ephemeral=tuple(map(end, sandbox.ephemeral)))


def _is_of(container: Container, names: tuple[str, ...] | None) -> bool:
    return names is None or container.name in names


def container_id(uid: str, name: str, restarts: int) -> str:
    """Return an id of 64 hex digits: the same for the same run, another one after a restart."""
    digest = hashlib.sha256(f"{uid}/{name}/{restarts}".encode()).hexdigest()
    return f"{RUNTIME}://{digest}"


def _each(sandbox: PodSandbox, change: Callable[[Container], Container]) -> PodSandbox:
    return replace(sandbox, containers=tuple(map(change, sandbox.containers)))


def _with_last_run(container: Container, finished: float, exit_code: int) -> Container:
    return replace(
        container,
        last_id=container.id,
        last_started=container.started,
        last_finished=finished,
        last_exit_code=exit_code,
    )


def _run(uid: str, container: Container, resources: PodResources, now: float) -> Container:
    running = not container.init or container.sidecar
    own = resources.of(container.name)
    return replace(
        container,
        state="running" if running else "exited",
        id=container_id(uid, container.name, container.restarts),
        started=now,
        finished=0.0 if running else now,
        exit_code=0,
        ready=container.init and not container.sidecar,
        starting=False,
        resources=own,
        inherited=inherited_limits(own, resources.pod),
    )


def to_json(sandbox: PodSandbox) -> dict[str, object]:
    """Return the checkpoint's form; fields with their default value are left out."""
    rows = [_row(container) for container in sandbox.containers]
    document: dict[str, object] = {"started": sandbox.started, "ip": sandbox.ip, "containers": rows}
    if sandbox.ephemeral:
        document["ephemeral"] = [_row(container) for container in sandbox.ephemeral]
    if sandbox.pod_resources is not None:
        document["pod"] = sandbox.pod_resources.to_json()
    return document


def _row(container: Container) -> dict[str, object]:
    row: dict[str, object] = {"name": container.name}
    for name, default in _DEFAULTS.items():
        value = getattr(container, name)
        if value != default:
            row[name] = value
    if container.resources != EMPTY:
        row["resources"] = container.resources.to_json()
    if container.inherited:
        row["inherited"] = container.inherited.to_dict()
    return row


ContainerDocument = Mapping[str, object]
"""The checkpoint's form of a container: its fields by name, without those that have their default value."""


class SandboxDocument(TypedDict):
    """The checkpoint's form of a pod in the runtime."""

    started: float
    ip: str
    containers: Sequence[ContainerDocument]
    pod: NotRequired[RequirementsDocument]
    ephemeral: NotRequired[Sequence[ContainerDocument]]


def _containers(rows: Iterable[ContainerDocument]) -> tuple[Container, ...]:
    return tuple(map(_container, rows))


def _container(row: ContainerDocument) -> Container:
    resources = cast("RequirementsDocument", row.get("resources", {}))
    inherited = cast("Mapping[str, str]", row.get("inherited", {}))
    # An earlier version may have written a field that is no more.
    run = {name: value for name, value in row.items() if name == "name" or name in _DEFAULTS}
    return Container(
        **run,  # type: ignore[arg-type]  # a wrong type is an error later
        resources=Requirements.from_json(resources),
        inherited=ResourceList.of(inherited),
    )


def from_json(uid: str, document: SandboxDocument) -> PodSandbox:
    """Return the sandbox that `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
    pod = document.get("pod")
    return PodSandbox(
        uid=uid,
        started=document["started"],
        ip=document["ip"],
        containers=_containers(document["containers"]),
        pod_resources=None if pod is None else Requirements.from_json(pod),
        ephemeral=_containers(document.get("ephemeral", ())),
    )


_OWN_FORM: Final = ("resources", "inherited")
_DEFAULTS = {
    name: getattr(Container(name=""), name)
    for name in Container.__dataclass_fields__
    if name != "name" and name not in _OWN_FORM
}
