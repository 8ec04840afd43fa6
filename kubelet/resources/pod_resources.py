"""The resources of all containers of a pod: desired by the spec, allocated, or actuated. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from nominee.kubelet.resources.requirements import (
    EMPTY,
    NO_RESOURCES,
    Requirements,
    RequirementsDocument,
    ResourceList,
)
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, MEMORY, is_sidecar


class PodResourcesDocument(TypedDict):
    """The checkpoint's form of `PodResources`: containers by name in order, and the pod's own."""

    containers: Sequence[tuple[str, RequirementsDocument]]
    pod: NotRequired[RequirementsDocument]


@dataclass(frozen=True, slots=True)
class PodResources:
    """Requirements by container name (init containers included), and the pod's own where it has them."""

    containers: tuple[tuple[str, Requirements], ...]
    pod: Requirements | None = None

    def get(self, container: str) -> Requirements | None:
        """Return the container's requirements, None where there is no such container."""
        for name, requirements in self.containers:
            if name == container:
                return requirements
        return None

    def of(self, container: str) -> Requirements:
        """Return the container's requirements; empty where there is no such container."""
        return self.get(container) or EMPTY

    def same(self, other: PodResources) -> bool:
        """Return whether all requirements are worth the same."""
        if len(self.containers) != len(other.containers) or not _same_pod(self.pod, other.pod):
            return False
        return all(
            name == other_name and requirements.same(other_requirements)
            for (name, requirements), (other_name, other_requirements) in zip(
                self.containers, other.containers, strict=True
            )
        )

    def to_json(self) -> dict[str, object]:
        """Return the checkpoint's form; containers as a list, since their order matters to `same`."""
        document: dict[str, object] = {
            "containers": [[name, requirements.to_json()] for name, requirements in self.containers]
        }
        if self.pod is not None:
            document["pod"] = self.pod.to_json()
        return document

    @classmethod
    def from_json(cls, document: PodResourcesDocument) -> PodResources:
        """Return the resources that `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        pod = document.get("pod")
        return cls(
            tuple((str(name), Requirements.from_json(row)) for name, row in document["containers"]),
            None if pod is None else Requirements.from_json(pod),
        )


def _same_pod(one: Requirements | None, other: Requirements | None) -> bool:
    return (one is None) == (other is None) and (one is None or other is None or one.same(other))


def resizable_containers(
    spec: core.PodSpec, *, init_containers: bool = True
) -> Iterator[tuple[core.Container, bool]]:
    """Return the containers whose resources may change, init containers first, with a flag for those.

    Ordinary init containers count only with InPlacePodVerticalScalingInitContainers (1.36).
    """
    for container in spec.initContainers:
        if init_containers or is_sidecar(container):
            yield container, True
    for container in spec.containers:
        yield container, False


def desired_resources(pod: core.Pod, *, init_containers: bool = True, pod_level: bool = True) -> PodResources:
    """Return the resources of the pod's spec."""
    rows = tuple(
        (container.name, Requirements.from_message(container.resources))
        for container, _ in resizable_containers(pod.spec, init_containers=init_containers)
    )
    has_own = pod_level and pod.spec.HasField("resources")
    return PodResources(rows, Requirements.from_message(pod.spec.resources) if has_own else None)


def inherited_limits(own: Requirements, pod: Requirements | None) -> ResourceList:
    """Return the pod's limits of cpu and memory that a container has for want of its own.

    Source: KEP-5419, "Resize Restart Policy"; kubelet 1.36, GetLimits.
    """
    if pod is None or not pod.limits:
        return NO_RESOURCES
    return pod.limits.only(name for name in (CPU, MEMORY) if own.limits.get(name) is None)


def with_resources(pod: core.Pod, resources: PodResources, *, pod_level: bool) -> core.Pod:
    """Return a copy of the pod whose spec asks for `resources` where these name a container.

    With `pod_level` its pod-level resources are replaced too, or removed where `resources` have none.
    """
    new = copy_of(pod)
    _replace(new.spec.initContainers, resources)
    _replace(new.spec.containers, resources)
    if pod_level:
        new.spec.ClearField("resources")
        if resources.pod is not None:
            resources.pod.write(new.spec.resources)
            new.spec.resources.SetInParent()
    return new


def _replace(containers: Iterable[core.Container], resources: PodResources) -> None:
    for container in containers:
        requirements = resources.get(container.name)
        if requirements is not None:
            container.resources.ClearField("requests")
            container.resources.ClearField("limits")
            requirements.write(container.resources)
