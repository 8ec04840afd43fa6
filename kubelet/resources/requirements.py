"""Requests and limits of a container, or of a pod, as small shared values. Pure.

Quantities stay the canonical text of the API object, since status and events show it again; comparisons are
by worth (`1` equals `1000m`), as upstream's semantic equality does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources import quantity
from nominee.machinery.resources.pod_resources import amount

RequirementsDocument = Mapping[str, Mapping[str, str]]
"""`{"limits": {"cpu": "1"}, "requests": {...}}`."""

SHARED_VALUES_MAX = 4096  # pods of one workload ask for the same: share the value, bounded


@dataclass(frozen=True, slots=True)
class ResourceList:
    """Quantities by resource name, sorted by name."""

    items: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, quantities: Mapping[str, str]) -> ResourceList:
        return _resource_list(tuple(sorted(quantities.items())))

    @classmethod
    def from_message(cls, quantities: Mapping[str, resource.Quantity]) -> ResourceList:
        return _resource_list(tuple(sorted((name, value.string) for name, value in quantities.items())))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def get(self, name: str) -> str | None:
        """Return the quantity's text, or None where the resource is not named."""
        for key, text in self.items:
            if key == name:
                return text
        return None

    def number(self, name: str) -> int:
        """Return millicores for cpu, whole units for others, rounded up; 0 if the resource is not named."""
        text = self.get(name)
        return 0 if text is None else amount(name, text)

    def only(self, names: Iterable[str]) -> ResourceList:
        """Return the part that names these resources."""
        kept = frozenset(names)
        return ResourceList(tuple(item for item in self.items if item[0] in kept))

    def with_quantity(self, name: str, text: str | None) -> ResourceList:
        """Return the list with one quantity set, or removed (None)."""
        quantities = dict(self.items)
        quantities.pop(name, None)
        if text is not None:
            quantities[name] = text
        return ResourceList.of(quantities)

    def same(self, other: ResourceList) -> bool:
        """Return whether names and worth are equal."""
        return self.items == other.items or _same(self.items, other.items)

    def write(self, target: Mapping[str, resource.Quantity]) -> None:
        """Fill the map field of a message."""
        for name, text in self.items:
            target[name].string = text

    def to_dict(self) -> dict[str, str]:
        return dict(self.items)


NO_RESOURCES = ResourceList()


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requests and limits of one container, or of a pod as a whole."""

    requests: ResourceList = ResourceList()
    limits: ResourceList = ResourceList()

    @classmethod
    def from_message(cls, message: core.ResourceRequirements) -> Requirements:
        return _requirements(
            ResourceList.from_message(message.requests), ResourceList.from_message(message.limits)
        )

    def same(self, other: Requirements) -> bool:
        """Return whether both are worth the same."""
        return self is other or (self.requests.same(other.requests) and self.limits.same(other.limits))

    def with_limits(self, more: ResourceList) -> Requirements:
        """Return these with more limits, of resources that have none."""
        if not more:
            return self
        return Requirements(self.requests, ResourceList.of({**more.to_dict(), **self.limits.to_dict()}))

    def write(self, message: core.ResourceRequirements) -> None:
        """Set requests and limits of a message that has none."""
        self.requests.write(message.requests)
        self.limits.write(message.limits)

    def to_json(self) -> dict[str, dict[str, str]]:
        """Return the JSON that Kubernetes prints: limits before requests, without empty maps."""
        document = {}
        if self.limits:
            document["limits"] = self.limits.to_dict()
        if self.requests:
            document["requests"] = self.requests.to_dict()
        return document

    @classmethod
    def from_json(cls, document: RequirementsDocument) -> Requirements:
        return _requirements(
            ResourceList.of(document.get("requests", {})), ResourceList.of(document.get("limits", {}))
        )


EMPTY = Requirements()


@lru_cache(SHARED_VALUES_MAX)
def _resource_list(items: tuple[tuple[str, str], ...]) -> ResourceList:
    return ResourceList(tuple((name, quantity.Quantity.parse(text).canonical()) for name, text in items))


@lru_cache(SHARED_VALUES_MAX)
def _requirements(requests: ResourceList, limits: ResourceList) -> Requirements:
    return Requirements(requests, limits)


@lru_cache(SHARED_VALUES_MAX)
def _same(one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]) -> bool:
    if len(one) != len(other):
        return False
    return all(
        name == other_name and quantity.Quantity.parse(text) == quantity.Quantity.parse(other_text)
        for (name, text), (other_name, other_text) in zip(one, other, strict=True)
    )
