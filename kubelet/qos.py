"""A pod's QoS class: what the API server wrote, which never changes; computed only where it is missing."""

from __future__ import annotations

from machinery import qos
from machinery.pb import core


def pod_qos(pod: core.Pod) -> str:
    return pod.status.qosClass or qos.qos_class(pod)
