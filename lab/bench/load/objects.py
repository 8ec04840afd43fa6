"""Nodes and pods of scheduler_perf's workloads (Kubernetes 1.36), made from small templates.

Nodes have 4 cpu, 32Gi and 110 pods and are ready; pods of the basic workload ask for 100m and 500Mi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nominee.machinery.api.pb import core, devices

NAMESPACE = "default"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODE_CPU_MILLI = 4000
DRIVER = "test-driver.cdi.k8s.io"
DEVICE_CLASS, CLAIM_TEMPLATE = "test-class", "test-claim-template"
_CAPACITY = {"cpu": "4", "memory": "32Gi", "pods": "110"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """A template of the pods of one series; `also` adds affinities and other fields to each pod."""

    cpu_milli: int = 100
    namespace: str = NAMESPACE
    priority: int | None = None
    has_limits: bool = True
    grace_seconds: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    also: Callable[[core.PodSpec], None] | None = None


def zone_of(index: int, zones: Sequence[str]) -> str:
    """Return the zone of the index-th node (round robin); "" without zones."""
    return zones[index % len(zones)] if zones else ""


def node(index: int, zones: Sequence[str] = ()) -> core.Node:
    """Return the index-th node."""
    name = f"node-{index}"
    made = core.Node()
    made.metadata.name = name
    made.metadata.labels[HOSTNAME] = name
    if zones:
        made.metadata.labels[ZONE] = zone_of(index, zones)
    for resource, amount in _CAPACITY.items():
        made.status.capacity[resource].string = amount
        made.status.allocatable[resource].string = amount
    made.status.conditions.add(type="Ready", status="True", reason="KubeletReady")
    return made


def pod(index: int, prefix: str, template: PodTemplate) -> core.Pod:
    """Return the index-th pod of a series."""
    made = core.Pod()
    made.metadata.name = f"{prefix}-{index}"
    made.metadata.namespace = template.namespace
    made.metadata.labels.update(template.labels)
    if template.priority is not None:
        made.spec.priority = template.priority
    if template.grace_seconds is not None:
        made.spec.terminationGracePeriodSeconds = template.grace_seconds
    container = made.spec.containers.add(name="pause", image="registry.k8s.io/pause:3.10.1")
    container.ports.add(containerPort=80)
    for resource, amount in (("cpu", f"{template.cpu_milli}m"), ("memory", "500Mi")):
        container.resources.requests[resource].string = amount
        if template.has_limits:
            container.resources.limits[resource].string = amount
    if template.also is not None:
        template.also(made.spec)
    return made


def device_class() -> devices.DeviceClass:
    """Return the class of all devices of the driver."""
    made = devices.DeviceClass()
    made.metadata.name = DEVICE_CLASS
    made.spec.selectors.add().cel.expression = f'device.driver == "{DRIVER}"'
    return made


def claim_template() -> devices.ResourceClaimTemplate:
    """Return a ResourceClaimTemplate for one device."""
    made = devices.ResourceClaimTemplate()
    made.metadata.name, made.metadata.namespace = CLAIM_TEMPLATE, NAMESPACE
    request = made.spec.spec.devices.requests.add(name="req-0")
    request.exactly.deviceClassName = DEVICE_CLASS
    return made


def resource_slice(index: int, count: int) -> devices.ResourceSlice:
    """Return the devices of the index-th node."""
    made = devices.ResourceSlice()
    made.metadata.name = f"slice-{index}"
    spec = made.spec
    spec.driver, spec.nodeName = DRIVER, f"node-{index}"
    spec.pool.name, spec.pool.generation, spec.pool.resourceSliceCount = spec.nodeName, 1, 1
    for number in range(count):
        spec.devices.add(name=f"instance-{number}")
    return made


def with_claim(spec: core.PodSpec) -> None:
    """Add a claim from the template to a pod."""
    spec.resourceClaims.add(name="resource", resourceClaimTemplateName=CLAIM_TEMPLATE)
    for container in spec.containers:
        container.resources.claims.add(name="resource")


def namespace(name: str) -> core.Namespace:
    made = core.Namespace()
    made.metadata.name = name
    return made
