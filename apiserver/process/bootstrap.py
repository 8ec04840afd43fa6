"""The objects that every cluster begins with: namespaces, system priority classes, authentication config."""

from __future__ import annotations

from nominee.apiserver.objects.requests import create_if_missing
from nominee.apiserver.registry.registry import Registry
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
        await create_if_missing(registry, namespace)
    for name, value in SYSTEM_CLASSES.items():
        priority_class = scheduling.PriorityClass(value=value, description=_DESCRIPTIONS[name])
        priority_class.metadata.name = name
        await create_if_missing(registry, priority_class)
    await registry.prepare_services()
    trusted = core.ConfigMap()
    trusted.metadata.namespace, trusted.metadata.name = AUTHENTICATION
    await create_if_missing(registry, trusted)
