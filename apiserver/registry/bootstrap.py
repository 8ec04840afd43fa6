"""What every cluster begins with: four namespaces and the two system priority classes."""

from __future__ import annotations

from apiserver.registry.registry import Registry
from machinery import errors
from machinery.errors import StatusError
from machinery.kinds import NAMESPACE, PRIORITY_CLASS
from machinery.pb import core, scheduling
from machinery.priority import SYSTEM_CLASSES

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


async def _ensure(registry: Registry, obj: core.Namespace | scheduling.PriorityClass) -> None:
    kind = NAMESPACE if isinstance(obj, core.Namespace) else PRIORITY_CLASS
    try:
        await registry.create(kind, "", obj.metadata.name, "", obj)
    except StatusError as error:
        if not errors.is_already_exists(error):
            raise
