"""Count a node's devices of a class, for scores of extended resources (KEP-5004).

Source: kube-scheduler 1.36, NodeResourcesFit, calculateDRAResourceTotals.
"""

from __future__ import annotations

from nominee.machinery.api.pb import devices
from nominee.machinery.cel.errors import CompileError, EvaluationError
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocatedState,
    DeviceView,
    Features,
    Node,
)
from nominee.scheduler.plugins.dynamic_resources.tracker import DeviceManager


class DeviceCounts:
    """Counts devices: all that a node can use, and those that are in use."""

    def __init__(self, manager: DeviceManager, features: Features) -> None:
        self._manager = manager
        self._features = features

    def of(self, class_name: str, node: Node) -> tuple[int, int]:
        """Return how many devices of the class the node can use, and how many of them are allocated.

        Both are 0 if there is no such class, or if one of its selectors fails.
        """
        device_class = self._manager.device_class(class_name)
        if device_class is None:
            return 0, 0
        state = self._manager.claims.allocated()
        found: list[DeviceView] = []
        try:
            for slice_ in self._manager.slices.index().reachable(node, self._features):
                if slice_.reachable(node.name, node.labels):
                    found += (each for each in slice_.devices if self._is_of(device_class, each, node))
        except (CompileError, EvaluationError):
            return 0, 0
        return len(found), sum(_is_allocated(device, state) for device in found)

    def _is_of(self, device_class: devices.DeviceClass, device: DeviceView, node: Node) -> bool:
        return device.reachable(node.name, node.labels) and all(
            device.matches(selector.cel.expression, self._features.selectors)
            for selector in device_class.spec.selectors
            if selector.HasField("cel")
        )


def _is_allocated(device: DeviceView, state: AllocatedState) -> bool:
    """Return whether a claim has the device, or a share of it."""
    return device.id in state.devices or device.id in state.capacity
