"""The objects that every cluster begins with: namespaces, system priority classes, authentication config."""

from __future__ import annotations

from nominee.apiserver.objects.requests import Create
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, scheduling
from nominee.machinery.scheduling.priority import SYSTEM_CLASSES

# Kubernetes' own components read it at their start: the certificate authority of their clients.
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
    """Create the objects that are missing; existing ones stay as they are.

    Raises: StatusError when a write fails.
    """
    for name in NAMESPACES:
        namespace = core.Namespace()
        namespace.metadata.name = name
        await _ensure(registry, namespace)
    for name, value in SYSTEM_CLASSES.items():
        priority_class = scheduling.PriorityClass(value=value, description=_DESCRIPTIONS[name])
        priority_class.metadata.name = name
        await _ensure(registry, priority_class)
    await registry.prepare_services()
    trusted = core.ConfigMap()
    trusted.metadata.namespace, trusted.metadata.name = AUTHENTICATION
    await _ensure(registry, trusted)


async def _ensure(
    registry: Registry, obj: core.Namespace | scheduling.PriorityClass | core.ConfigMap
) -> None:
    try:
        await registry.perform(Create(kinds.of(obj), obj.metadata.namespace, obj))
    except StatusError as error:
        if not errors.is_already_exists(error):
            raise
