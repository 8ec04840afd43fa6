"""A pod's defaults (kube-apiserver 1.36, pkg/apis/core/v1/defaults.go). In place."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping, MutableSequence
from functools import lru_cache
from typing import Any, Literal

from nominee.machinery.api.pb import core
from nominee.machinery.defaults import fields, quantities
from nominee.machinery.features.gates import Gates
from nominee.machinery.resources.quantity import Quantity

TERMINATION_GRACE_SECONDS = 30
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_PROBE_TIMEOUT_SECONDS, _PROBE_PERIOD_SECONDS = 1, 10
_PROBE_SUCCESSES, _PROBE_FAILURES = 1, 3
_POD_LEVEL_RESOURCES = ("cpu", "memory")


_ALNUM = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_IMAGE = re.compile(
    rf"(?:(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_ALNUM}(?:/{_ALNUM})*"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def pull_policy(image: str) -> str:
    """Return Always for a `latest` image (also one without tag and digest), else IfNotPresent.

    A text that is no image name has no tag either (distribution/reference, ParseNormalizedNamed).
    """
    match = _IMAGE.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image):
        return "IfNotPresent"
    latest = match["tag"] == "latest" if match["tag"] else not match["digest"]
    return "Always" if latest else "IfNotPresent"


def pod(obj: core.Pod, gates: Gates) -> None:
    """Fill in a pod."""
    spec = obj.spec
    if not spec.HasField("enableServiceLinks"):
        spec.enableServiceLinks = True
    if spec.hostNetwork:
        # Templates may leave it to the pods (since 1.28).
        _host_ports(spec.containers)
        _host_ports(spec.initContainers)
    pod_spec(spec)
    for container in spec.containers:
        _requests_from_limits(container)
    for container in spec.initContainers:
        _requests_from_limits(container)
    if spec.HasField("resources") and gates.enabled("PodLevelResources"):
        _pod_level_requests(spec)
    if spec.terminationGracePeriodSeconds < 0:
        # Upstream's conversion does this to pods, and leaves pod templates alone.
        spec.terminationGracePeriodSeconds = 1
    if obj.metadata.annotations:
        _drop_old_annotations(obj.metadata.annotations)
    if obj.HasField("status"):
        status = obj.status
        if status.podIP or status.podIPs:
            _addresses(status)
        for statuses in (
            status.containerStatuses,
            status.initContainerStatuses,
            status.ephemeralContainerStatuses,
        ):
            for row in statuses:
                quantities.resource_list(row.allocatedResources)
                if row.HasField("resources"):
                    quantities.requirements(row.resources)


def _addresses(status: core.PodStatus) -> None:
    """The first address has a field of its own, which counts where they differ."""
    if status.podIP and (not status.podIPs or status.podIPs[0].ip != status.podIP):
        del status.podIPs[:]
        status.podIPs.add(ip=status.podIP)
    elif status.podIPs[0].ip != status.podIP:
        status.podIP = status.podIPs[0].ip


def _drop_old_annotations(annotations: MutableMapping[str, str]) -> None:
    """Init containers were annotations once; old kubelets would read them still."""
    for stage in ("alpha", "beta"):
        for what in ("init-containers", "init-container-statuses"):
            annotations.pop(f"pod.{stage}.kubernetes.io/{what}", None)


def pod_template(template: core.PodTemplateSpec) -> None:
    if template.metadata.annotations:
        _drop_old_annotations(template.metadata.annotations)
    pod_spec(template.spec)


def pod_spec(spec: core.PodSpec) -> None:
    """Set the defaults that pods and pod templates have in common."""
    if spec.serviceAccount != spec.serviceAccountName:
        # The field's first name, which still counts where the other is missing.
        spec.serviceAccountName = spec.serviceAccountName or spec.serviceAccount
        spec.serviceAccount = spec.serviceAccountName
    if not spec.dnsPolicy:
        spec.dnsPolicy = "ClusterFirst"
    if not spec.restartPolicy:
        spec.restartPolicy = "Always"
    if not spec.HasField("securityContext"):
        spec.securityContext.SetInParent()
    if not spec.HasField("terminationGracePeriodSeconds"):
        spec.terminationGracePeriodSeconds = TERMINATION_GRACE_SECONDS
    if not spec.schedulerName:
        spec.schedulerName = "default-scheduler"
    for volume in spec.volumes:
        _volume(volume)
    for container in spec.containers:
        _container(container)
    for container in spec.initContainers:
        _container(container)
    for ephemeral in spec.ephemeralContainers:
        _container(ephemeral.ephemeralContainerCommon)
    if spec.overhead:
        quantities.resource_list(spec.overhead)
    if spec.HasField("resources"):
        quantities.requirements(spec.resources)


def _host_ports(containers: Iterable[core.Container]) -> None:
    """Set the host ports to the container ports, as host networking requires."""
    for container in containers:
        for port in container.ports:
            if not port.hostPort:
                port.hostPort = port.containerPort


def _container(container: Any) -> None:
    if not container.terminationMessagePath:
        container.terminationMessagePath = "/dev/termination-log"
    if not container.terminationMessagePolicy:
        container.terminationMessagePolicy = "File"
    if not container.imagePullPolicy:
        container.imagePullPolicy = pull_policy(container.image)
    for port in container.ports:
        if not port.protocol:
            port.protocol = "TCP"
    for variable in container.env:
        if variable.HasField("valueFrom") and variable.valueFrom.HasField("fieldRef"):
            _field_ref(variable.valueFrom.fieldRef)
    quantities.requirements(container.resources)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.HasField(name):
            _probe(getattr(container, name))
    if container.HasField("lifecycle"):
        for name in ("postStart", "preStop"):
            if container.lifecycle.HasField(name):
                handler = getattr(container.lifecycle, name)
                if handler.HasField("httpGet"):
                    _http_get(handler.httpGet)


def _http_get(action: core.HTTPGetAction) -> None:
    fields.set_empty(action, path="/", scheme="HTTP")


def _probe(probe: core.Probe) -> None:
    if not probe.timeoutSeconds:
        probe.timeoutSeconds = _PROBE_TIMEOUT_SECONDS
    if not probe.periodSeconds:
        probe.periodSeconds = _PROBE_PERIOD_SECONDS
    if not probe.successThreshold:
        probe.successThreshold = _PROBE_SUCCESSES
    if not probe.failureThreshold:
        probe.failureThreshold = _PROBE_FAILURES
    if probe.handler.HasField("httpGet"):
        _http_get(probe.handler.httpGet)
    if probe.handler.HasField("grpc") and not probe.handler.grpc.HasField("service"):
        probe.handler.grpc.service = ""


def _field_ref(reference: core.ObjectFieldSelector) -> None:
    if not reference.apiVersion:
        reference.apiVersion = "v1"


def _volume(volume: core.Volume) -> None:
    source = volume.volumeSource
    if not source.ListFields():
        source.emptyDir.SetInParent()
        return
    for name in ("secret", "configMap"):
        if source.HasField(name) and not getattr(source, name).HasField("defaultMode"):
            getattr(source, name).defaultMode = _FILE_MODE
    source_defaults(source)
    if source.HasField("image") and not source.image.pullPolicy:
        source.image.pullPolicy = pull_policy(source.image.reference)
    if source.HasField("downwardAPI"):
        if not source.downwardAPI.HasField("defaultMode"):
            source.downwardAPI.defaultMode = _FILE_MODE
        _downward_items(source.downwardAPI.items)
    if source.HasField("projected"):
        if not source.projected.HasField("defaultMode"):
            source.projected.defaultMode = _FILE_MODE
        for projection in source.projected.sources:
            if projection.HasField("downwardAPI"):
                _downward_items(projection.downwardAPI.items)
            if projection.HasField("serviceAccountToken") and not projection.serviceAccountToken.HasField(
                "expirationSeconds"
            ):
                projection.serviceAccountToken.expirationSeconds = _TOKEN_SECONDS
    if source.HasField("ephemeral") and source.ephemeral.HasField("volumeClaimTemplate"):
        claim = source.ephemeral.volumeClaimTemplate.spec
        if not claim.HasField("volumeMode"):
            claim.volumeMode = "Filesystem"
        quantities.requirements(claim.resources)
    if source.HasField("emptyDir") and source.emptyDir.HasField("sizeLimit"):
        quantities.single(source.emptyDir.sizeLimit)


def source_defaults(source: core.VolumeSource | core.PersistentVolumeSource) -> None:
    """Fill in sources that pods and PersistentVolumes both have."""
    if source.HasField("hostPath") and not source.hostPath.HasField("type"):
        source.hostPath.type = ""
    if source.HasField("iscsi") and not source.iscsi.iscsiInterface:
        source.iscsi.iscsiInterface = "default"
    if source.HasField("rbd"):
        fields.set_empty(source.rbd, pool="rbd", user="admin", keyring="/etc/ceph/keyring")
    if source.HasField("azureDisk"):
        disk = source.azureDisk
        fields.set_absent(disk, cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False)
    if source.HasField("scaleIO"):
        fields.set_empty(source.scaleIO, storageMode="ThinProvisioned", fsType="xfs")


def _downward_items(items: Iterable[core.DownwardAPIVolumeFile]) -> None:
    for item in items:
        if item.HasField("fieldRef"):
            _field_ref(item.fieldRef)


def _requests_from_limits(container: core.Container) -> None:
    limits, requests = container.resources.limits, container.resources.requests
    for name in limits:
        if name not in requests:
            requests[name].string = limits[name].string


def _pod_level_requests(spec: core.PodSpec) -> None:
    """Default the pod-level requests to the sum of its containers' requests, else to the pod-level limits."""
    limits, requests = spec.resources.limits, spec.resources.requests
    if limits or requests:
        _huge_page_limits(spec)
    if not limits:
        return
    for name in _POD_LEVEL_RESOURCES:
        if name in requests:
            continue
        total = container_requests(spec, name)
        if total is not None:
            requests[name].string = str(total)
    for name in limits:
        if name not in requests and (name in _POD_LEVEL_RESOURCES or name.startswith("hugepages-")):
            requests[name].string = limits[name].string


def _huge_page_limits(spec: core.PodSpec) -> None:
    """Default the pod-level limits of huge pages to the containers' limits, where the pod sets none."""
    limits, requests = spec.resources.limits, spec.resources.requests
    found = {
        name
        for container in (*spec.containers, *spec.initContainers)
        for name in container.resources.limits
        if name.startswith("hugepages-")
    }
    for name in sorted(found):
        total = _effective(spec, name, "limits")
        if name not in requests and name not in limits and total is not None:
            limits[name].string = str(total)


def container_requests(spec: core.PodSpec, name: str) -> Quantity | None:
    """Return the effective request of all containers for one resource, None where there is no request."""
    return _effective(spec, name, "requests")


def _effective(spec: core.PodSpec, name: str, part: Literal["requests", "limits"]) -> Quantity | None:
    total = _sum(spec.containers, name, part)
    sidecars: Quantity | None = None
    peak: Quantity | None = None
    for container in spec.initContainers:
        amounts = getattr(container.resources, part)
        own = Quantity.parse(amounts[name].string) if name in amounts else None
        if container.restartPolicy == "Always":
            sidecars = _plus(sidecars, own)
            at_start = sidecars
        else:
            at_start = _plus(sidecars, own)
        if at_start is not None and (peak is None or peak < at_start):
            peak = at_start
    total = _plus(total, sidecars)
    if total is None or (peak is not None and total < peak):
        return peak
    return total


def _sum(containers: MutableSequence[Any], name: str, part: str) -> Quantity | None:
    total: Quantity | None = None
    for container in containers:
        amounts = getattr(container.resources, part)
        if name in amounts:
            total = _plus(total, Quantity.parse(amounts[name].string))
    return total


def _plus(left: Quantity | None, right: Quantity | None) -> Quantity | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right
