"""All containers of a pod, of every sort, in the order in which upstream visits them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.machinery.api.pb import core

Container = core.Container | core.EphemeralContainerCommon


def containers_with_paths(path: str, spec: core.PodSpec) -> Iterator[tuple[str, Container]]:
    """Yield (path, container); `path` is the spec's."""
    named: tuple[tuple[str, Iterable[Container]], ...] = (
        ("initContainers", spec.initContainers),
        ("containers", spec.containers),
        ("ephemeralContainers", (each.ephemeralContainerCommon for each in spec.ephemeralContainers)),
    )
    for name, found in named:
        for index, container in enumerate(found):
            yield f"{path}.{name}[{index}]", container


def every_container(spec: core.PodSpec) -> Iterator[Container]:
    """Yield the containers."""
    return (container for _, container in containers_with_paths("", spec))


def security_contexts(path: str, spec: core.PodSpec) -> Iterator[tuple[str, core.SecurityContext]]:
    """Yield (path, security context) of the containers that have one; `path` is the spec's."""
    for at, container in containers_with_paths(path, spec):
        if container.HasField("securityContext"):
            yield f"{at}.securityContext", container.securityContext


def named_security_contexts(path: str, spec: core.PodSpec) -> Iterator[tuple[str, str, core.SecurityContext]]:
    """Yield (path, name of the container, security context, which may be empty); `path` is the spec's."""
    for at, container in containers_with_paths(path, spec):
        yield f"{at}.securityContext", container.name, container.securityContext
