"""NodeDeclaredFeatureValidator: a bound pod changes only in ways that its node supports (KEP-5328; 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.machinery.api.kinds import NODE, POD, AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.resources.pod_resources import is_sidecar
from nominee.machinery.resources.qos import GUARANTEED, recorded_qos_class
from nominee.machinery.resources.quantity import Quantity

GUARANTEED_CPU_RESIZE_UNTIL = Version(1, 35)
"""The last version in which the cpu of a Guaranteed pod needs a feature (kubernetes/kubernetes#136759)."""
_ZERO = Quantity.parse("0")


class NodeDeclaredFeatureValidator(Plugin):
    """Refuses an update of a bound pod that needs a feature which the node does not declare."""

    name = "NodeDeclaredFeatureValidator"

    def __init__(self, gates: Gates) -> None:
        self._enabled = gates.enabled("NodeDeclaredFeatures")
        self._version = gates.version

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return self._enabled and kind is POD and operation == "UPDATE" and subresource in ("", "resize")

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        pod, old = request.obj, request.old
        name = pod.spec.nodeName
        if not name or pod.metadata.generation == old.metadata.generation:
            return
        needed = sorted(needed_for_update(old, pod, self._version))
        if not needed:
            return
        node = await lookup.find(NODE, "", name)
        if node is None:
            raise request.forbidden(f'node "{name}" not found')
        missing = [feature for feature in needed if feature not in node.message.status.declaredFeatures]
        if missing:
            raise request.forbidden(
                f'pod update requires features {", ".join(missing)} which are not available on node "{name}"'
            )


def needed_for_update(old: core.Pod, new: core.Pod, version: Version) -> Iterator[str]:
    """Yield the features that a node must declare for this update of one of its pods."""
    if (
        version <= GUARANTEED_CPU_RESIZE_UNTIL
        and recorded_qos_class(old) == GUARANTEED
        and _cpu(old.spec.containers) != _cpu(new.spec.containers)
    ):
        yield "GuaranteedQoSPodCPUResize"
    if old.spec.HasField("resources") != new.spec.HasField("resources") or (
        old.spec.resources != new.spec.resources
    ):
        yield "InPlacePodLevelResourcesVerticalScaling"
    pairs = zip(old.spec.initContainers, new.spec.initContainers, strict=False)
    if any(not is_sidecar(before) and before.resources != after.resources for before, after in pairs):
        yield "InPlacePodVerticalScalingInitContainers"


def _cpu(containers: Iterable[core.Container]) -> list[Quantity]:
    """Return the cpu requests of containers; init containers and pod-level requests pin no cpus."""
    lists = (container.resources.requests for container in containers)
    return [Quantity.parse(found["cpu"].string) if "cpu" in found else _ZERO for found in lists]
