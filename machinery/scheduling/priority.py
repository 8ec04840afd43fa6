"""Pod priority. Source: Kubernetes 1.36, component-helpers and the scheduling API group."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core

HIGHEST_USER_DEFINABLE: Final = 1_000_000_000
SYSTEM_CRITICAL: Final = 2 * HIGHEST_USER_DEFINABLE
SYSTEM_CLUSTER_CRITICAL: Final = "system-cluster-critical"
SYSTEM_NODE_CRITICAL: Final = "system-node-critical"
SYSTEM_CLASSES: Final = {
    SYSTEM_CLUSTER_CRITICAL: SYSTEM_CRITICAL,
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL + 1000,
}

_CONFIG_SOURCE = "kubernetes.io/config.source"
_CONFIG_MIRROR = "kubernetes.io/config.mirror"


def pod_priority(pod: core.Pod) -> int:
    """`spec.priority`, 0 where unset (as when the pod was created without the admission plugin)."""
    return pod.spec.priority


def preempts(pod: core.Pod) -> bool:
    """Return whether the pod may evict others for room (preemptionPolicy is not Never)."""
    return pod.spec.preemptionPolicy != "Never"


def is_static(pod: core.Pod) -> bool:
    """Return whether the kubelet read it from a file: a config source other than the API server."""
    annotations = pod.metadata.annotations
    return _CONFIG_SOURCE in annotations and annotations[_CONFIG_SOURCE] != "api"


def is_critical(pod: core.Pod) -> bool:
    """Return whether a kubelet makes room for it: static, mirrored, or of a system priority."""
    return (
        is_static(pod) or _CONFIG_MIRROR in pod.metadata.annotations or pod.spec.priority >= SYSTEM_CRITICAL
    )
