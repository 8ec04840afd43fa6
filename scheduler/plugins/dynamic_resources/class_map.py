"""Find the DeviceClass that provides an extended resource (KEP-5004)."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import devices
from nominee.machinery.resources.pod_resources import DEVICE_CLASS_PREFIX
from nominee.machinery.runtime.clock import from_time


class ClassMap:
    """Extended resources to class names. Of several classes for one resource the newest counts."""

    def __init__(self, classes: Iterable[devices.DeviceClass]) -> None:
        self._names: dict[str, str] = {}
        ordered = sorted(
            classes,
            key=lambda c: (-from_time(c.metadata.creationTimestamp), c.metadata.name),
        )
        for each in ordered:
            name = each.metadata.name
            self._names[DEVICE_CLASS_PREFIX + name] = name
            if each.spec.extendedResourceName:
                self._names.setdefault(each.spec.extendedResourceName, name)

    def get(self, resource: str) -> str | None:
        return self._names.get(resource)

    def __bool__(self) -> bool:
        return bool(self._names)
