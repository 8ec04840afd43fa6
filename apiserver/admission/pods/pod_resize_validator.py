"""PodResizeValidator: a resize must not request more than the node's allocatable (kube-apiserver 1.36).

It compares the whole pod with the node's allocatable, not with the free resources, and ignores the old size:
deferring is the kubelet's part.
"""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Plugin
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import NODE, POD
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.resources.pod_resources import node_allocatable, pod_requests

_OS_LABEL = "kubernetes.io/os"


class PodResizeValidator(Plugin):
    """Refuses a resize that the pod's node could never satisfy."""

    name = "PodResizeValidator"
    requests = ((POD, "UPDATE", "resize"),)

    def __init__(self, gates: Gates) -> None:
        self._pod_level = gates.enabled("PodLevelResources")

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod: core.Pod = request.obj
        name = pod.spec.nodeName
        if not name or pod.metadata.generation == request.old.metadata.generation:
            return
        found = await lookup.find(NODE, "", name)
        if found is None:
            raise request.forbidden(f'node "{name}" not found')
        node: core.Node = found.message
        labels = node.metadata.labels
        if _OS_LABEL in labels and labels[_OS_LABEL] != "linux":
            problem = f'pod resize is only supported on linux nodes, node "{name}" is "{labels[_OS_LABEL]}"'
            raise request.forbidden(problem, [Cause("UnsupportedPlatform", "")])
        self._check(request, pod, node)

    def _check(self, request: AdmissionRequest, pod: core.Pod, node: core.Node) -> None:
        wanted = pod_requests(pod, pod_level=self._pod_level)
        allocatable = node_allocatable(node)
        short = [
            f"{name}, requested: {wanted[name]}, allocatable: {allocatable.get(name, 0)}"
            for name in ("cpu", "memory")
            if wanted.get(name, 0) > allocatable.get(name, 0)
        ]
        if short:
            raise request.forbidden(
                f"node didn't have enough allocatable resources: {'; '.join(short)}",
                [Cause("NodeCapacity", "")],
            )
