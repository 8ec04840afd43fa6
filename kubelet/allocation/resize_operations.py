"""The changes of a resize request, for kubelet_container_requested_resizes_total.

Source: kubelet 1.36, recordContainerResizeOperations; KEP-1287, "Instrumentation". Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from nominee.kubelet.instructions import ResizeRequested
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.machinery.resources.pod_resources import CPU, MEMORY
from nominee.machinery.resources.quantity import Quantity

_ZERO = Quantity.parse("0")


def operations(before: PodResources, after: PodResources) -> Iterator[ResizeRequested]:
    """Return one operation for each request and limit of cpu and memory that differs."""
    for name, new in after.containers:
        old = before.of(name)
        for resource in (MEMORY, CPU):
            requests = _operation(old.requests.get(resource), new.requests.get(resource))
            if requests is not None:
                yield ResizeRequested(resource, "requests", requests)
            limits = _operation(old.limits.get(resource), new.limits.get(resource))
            if limits is not None:
                yield ResizeRequested(resource, "limits", limits)


def _operation(
    old_text: str | None, new_text: str | None
) -> Literal["add", "remove", "increase", "decrease"] | None:
    """Return how a quantity changes; None where it does not. A quantity of 0 is no quantity."""
    old = _ZERO if old_text is None else Quantity.parse(old_text)
    new = _ZERO if new_text is None else Quantity.parse(new_text)
    if old == new:
        return None
    if old == _ZERO:
        return "add"
    if new == _ZERO:
        return "remove"
    return "increase" if new > old else "decrease"
