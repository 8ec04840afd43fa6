"""What every cluster begins with: four namespaces, the two system priority classes, and what is trusted."""

from __future__ import annotations

from apiserver.registry.registry import Registry
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.pb import core, scheduling
from machinery.scheduling.priority import SYSTEM_CLASSES

# Real components read it at their start, to know whom to believe who asks them.
AUTHENTICATION = ("kube-system", "extension-apiserver-authentication")
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if"
        " necessary."
    ),
    "system-node-critical": ("Used for system critical pods that must not be moved from their current node."),
}


async def bootstrap(registry: Registry) -> None:
    """Create what is missing; what exists stays as it is. Raises StatusError."""
    for name in NAMESPACES:
        namespace = core.Namespace()
        namespace.metadata.name = name
        await _ensure(registry, namespace)
    for name, value in SYSTEM_CLASSES.items():
        found = scheduling.PriorityClass(value=value, description=_DESCRIPTIONS[name])
        found.metadata.name = name
        await _ensure(registry, found)
    await registry.prepare_services()
    trusted = core.ConfigMap()
    trusted.metadata.namespace, trusted.metadata.name = AUTHENTICATION
    await _ensure(registry, trusted)


async def _ensure(
    registry: Registry, obj: core.Namespace | scheduling.PriorityClass | core.ConfigMap
) -> None:
    try:
        await registry.create(kinds.of(obj), obj.metadata.namespace, obj)
    except StatusError as error:
        if not errors.is_already_exists(error):
            raise
