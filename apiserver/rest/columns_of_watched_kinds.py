"""Columns of kinds that are only stored and watched (kube-apiserver 1.36, printers.go)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.rest.layout import AGE, NAME, Column, Layout, wide
from apiserver.rest.row import NONE, Row, age, balancer_addresses, or_none, since
from machinery.api.objects import controller_of
from machinery.api.selectors import shown_label_selector
from machinery.printing.durations import human_duration

_SHOWN_MAX = 3
_UNKNOWN = "<unknown>"
_UNSET = "<unset>"


def _few(shown: Sequence[str], count: int) -> str:
    """The first three, and how many more there are."""
    text = ",".join(shown[:_SHOWN_MAX])
    return f"{text} + {count - _SHOWN_MAX} more..." if len(shown) > _SHOWN_MAX else text


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _template(template: Any) -> list[str]:
    containers = template.spec.containers
    return [",".join(each.name for each in containers), ",".join(each.image for each in containers)]


def _endpoints(obj: Any, now: float) -> Row:
    shown = []
    for subset in obj.subsets:
        for port in [f":{each.port}" for each in subset.ports] or [""]:
            shown += [
                f"[{each.ip}]{port}" if port and ":" in each.ip else f"{each.ip}{port}"
                for each in subset.addresses
            ]
    text = _few(shown, len(shown)) if obj.subsets else NONE
    return Row([obj.metadata.name, text, age(obj.metadata, now)])


def _pod_template(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, *_template(obj.template), _labels(obj.template.metadata.labels)])


def _controller_revision(obj: Any, now: float) -> Row:
    owner = controller_of(obj)
    shown = NONE
    if owner is not None:
        group = owner.apiVersion.rpartition("/")[0]
        kind = owner.kind.lower()
        shown = f"{kind}.{group}/{owner.name}" if group else f"{kind}/{owner.name}"
    return Row([obj.metadata.name, shown, obj.revision, age(obj.metadata, now)])


def _cron_job(obj: Any, now: float) -> Row:
    spec, status = obj.spec, obj.status
    suspended = str(spec.suspend) if spec.HasField("suspend") else _UNSET
    zone = spec.timeZone if spec.HasField("timeZone") else NONE
    last = since(status.lastScheduleTime, now) if status.HasField("lastScheduleTime") else NONE
    job = spec.jobTemplate.spec
    selector = shown_label_selector(job.selector) if job.HasField("selector") else NONE
    own = [obj.metadata.name, spec.schedule, zone, suspended, len(status.active), last]
    return Row([*own, age(obj.metadata, now), *_template(job.template), selector])


def _autoscaler(obj: Any, now: float) -> Row:
    spec, status = obj.spec, obj.status
    target = spec.scaleTargetRef
    least = str(spec.minReplicas) if spec.HasField("minReplicas") else _UNSET
    shown = [_metric(metric, status.currentMetrics, index) for index, metric in enumerate(spec.metrics)]
    own = [obj.metadata.name, f"{target.kind}/{target.name}", _metrics(shown), least]
    return Row([*own, spec.maxReplicas, status.currentReplicas, age(obj.metadata, now)])


def _certificate_request(obj: Any, now: float) -> Row:
    spec = obj.spec
    wanted = human_duration(spec.expirationSeconds) if spec.HasField("expirationSeconds") else NONE
    types = {row.type for row in obj.status.conditions}
    verdict = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    verdict += ",Failed" * ("Failed" in types) + ",Issued" * bool(obj.status.certificate)
    own = [obj.metadata.name, age(obj.metadata, now), or_none(spec.signerName), spec.username]
    return Row([*own, wanted, verdict])


def _scale(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, obj.spec.replicas, obj.status.replicas, age(obj.metadata, now)])


def _metrics(shown: Sequence[str]) -> str:
    if not shown:
        return "<none>"
    first = ", ".join(shown[:2])
    return f"{first} + {len(shown) - 2} more..." if len(shown) > 2 else first


# The field of a metric that its type names.
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(metric: Any, statuses: Sequence[Any], index: int) -> str:
    """`cpu: 10%/80%`: what it is and what it shall be."""
    field = _SOURCES.get(metric.type)
    if field is None:
        return "<unknown type>"
    source = getattr(metric, field)
    target, current = source.target, None
    if len(statuses) > index and statuses[index].HasField(field):
        current = getattr(statuses[index], field).current
    if field in ("resource", "containerResource"):
        return f"{source.name}: {_utilization(target, current)}"
    if field == "pods":
        return _average(target, current)
    if target.HasField("averageValue"):
        return f"{_average(target, current)} (avg)"
    found = _UNKNOWN if current is None else _shown(current, "value")
    return f"{found}/{_shown(target, 'value')}"


def _shown(values: Any, name: str) -> str:
    """A quantity; none is nothing, as of a nil pointer."""
    return str(getattr(values, name).string) if values.HasField(name) else "<nil>"


def _average(target: Any, current: Any) -> str:
    known = current is not None and current.HasField("averageValue")
    return f"{current.averageValue.string if known else _UNKNOWN}/{_shown(target, 'averageValue')}"


def _utilization(target: Any, current: Any) -> str:
    if target.HasField("averageValue"):
        return _average(target, current)
    known = current is not None and current.HasField("averageUtilization")
    found = f"{current.averageUtilization}%" if known else _UNKNOWN
    wanted = f"{target.averageUtilization}%" if target.HasField("averageUtilization") else "<auto>"
    return f"{found}/{wanted}"


def _hosts(rules: Sequence[Any]) -> str:
    """The first three; of what comes behind them all rules count, also those of every host."""
    shown: list[str] = []
    for rule in rules:
        if len(shown) == _SHOWN_MAX:
            return f"{','.join(shown)} + {len(rules) - _SHOWN_MAX} more..."
        if rule.host:
            shown.append(rule.host)
    return ",".join(shown) or "*"


def _ingress(obj: Any, now: float) -> Row:
    spec = obj.spec
    return Row(
        [
            obj.metadata.name,
            spec.ingressClassName if spec.HasField("ingressClassName") else NONE,
            _hosts(spec.rules),
            ",".join(balancer_addresses(obj.status.loadBalancer.ingress)),
            "80, 443" if spec.tls else "80",
            age(obj.metadata, now),
        ]
    )


def _ingress_class(obj: Any, now: float) -> Row:
    shown, parameters = NONE, obj.spec.parameters
    if obj.spec.HasField("parameters"):
        group = f".{parameters.aPIGroup}" if parameters.aPIGroup else ""
        shown = f"{parameters.kind}{group}/{parameters.name}"
    return Row([obj.metadata.name, obj.spec.controller, shown, age(obj.metadata, now)])


def _network_policy(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, shown_label_selector(obj.spec.podSelector), age(obj.metadata, now)])


def _ip_address(obj: Any, now: float) -> Row:
    parent = obj.spec.parentRef
    resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
    shown = "/".join(part for part in (resource, parent.namespace, parent.name) if part) or NONE
    return Row([obj.metadata.name, shown, age(obj.metadata, now)])


def _service_cidr(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, ",".join(obj.spec.cidrs), age(obj.metadata, now)])


def _runtime_class(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, obj.handler, age(obj.metadata, now)])


def _attributes_class(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, obj.driverName, age(obj.metadata, now)])


_IMAGES = "Images referenced by each container in the template."
_CONTAINERS = "Names of each container in the template."
_REQUEST = "certificatesigningrequestspec-certificates-v1"
_SPEC = "horizontalpodautoscalerspec-autoscaling-v2"

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "Endpoints"): Layout((NAME, Column("Endpoints", "endpoints-v1#subsets"), AGE), _endpoints),
    ("", "PodTemplate"): Layout(
        (
            NAME,
            Column("Containers", _CONTAINERS),
            Column("Images", _IMAGES),
            Column("Pod Labels", "The labels for the pod template."),
        ),
        _pod_template,
    ),
    ("apps", "ControllerRevision"): Layout(
        (
            NAME,
            Column("Controller", "Controller of the object"),
            Column("Revision", "controllerrevision-apps-v1#revision"),
            AGE,
        ),
        _controller_revision,
    ),
    ("batch", "CronJob"): Layout(
        (
            NAME,
            Column("Schedule", "cronjobspec-batch-v1#schedule"),
            Column("Timezone", "cronjobspec-batch-v1#timeZone"),
            Column("Suspend", "cronjobspec-batch-v1#suspend", "boolean"),
            Column("Active", "cronjobstatus-batch-v1#active", "integer"),
            Column("Last Schedule", "cronjobstatus-batch-v1#lastScheduleTime"),
            AGE,
            wide("Containers", _CONTAINERS),
            wide("Images", _IMAGES),
            wide("Selector", "jobspec-batch-v1#selector"),
        ),
        _cron_job,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Layout(
        (
            NAME,
            Column("Reference", f"{_SPEC}#scaleTargetRef"),
            Column("Targets", f"{_SPEC}#metrics"),
            Column("MinPods", f"{_SPEC}#minReplicas"),
            Column("MaxPods", f"{_SPEC}#maxReplicas"),
            Column("Replicas", "horizontalpodautoscalerstatus-autoscaling-v2#currentReplicas"),
            AGE,
        ),
        _autoscaler,
    ),
    ("autoscaling", "Scale"): Layout(
        (
            Column("Name", NAME.described),
            Column("Desired", "scalespec-autoscaling-v1#replicas", "integer"),
            Column("Available", "scalestatus-autoscaling-v1#replicas", "integer"),
            AGE,
        ),
        _scale,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Layout(
        (
            NAME,
            AGE,
            Column("SignerName", f"{_REQUEST}#signerName"),
            Column("Requestor", f"{_REQUEST}#request"),
            Column("RequestedDuration", f"{_REQUEST}#expirationSeconds"),
            Column("Condition", "certificatesigningrequeststatus-certificates-v1#conditions"),
        ),
        _certificate_request,
    ),
    ("networking.k8s.io", "Ingress"): Layout(
        (
            NAME,
            Column(
                "Class",
                "The name of the IngressClass resource that should be used for additional configuration",
            ),
            Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
            Column("Address", "Address is a list containing ingress points for the load-balancer"),
            Column("Ports", "Ports of TLS configurations that open"),
            AGE,
        ),
        _ingress,
    ),
    ("networking.k8s.io", "IngressClass"): Layout(
        (
            NAME,
            Column("Controller", "Controller that is responsible for handling this class"),
            Column("Parameters", "A reference to a resource with additional parameters"),
            AGE,
        ),
        _ingress_class,
    ),
    ("networking.k8s.io", "NetworkPolicy"): Layout(
        (NAME, Column("Pod-Selector", "networkpolicyspec-networking-v1#podSelector"), AGE), _network_policy
    ),
    ("networking.k8s.io", "IPAddress"): Layout(
        (NAME, Column("ParentRef", "ipaddressspec-networking-v1#parentRef"), AGE), _ip_address
    ),
    ("networking.k8s.io", "ServiceCIDR"): Layout(
        (NAME, Column("CIDRs", "servicecidrspec-networking-v1#cidrs"), AGE), _service_cidr
    ),
    ("node.k8s.io", "RuntimeClass"): Layout(
        (NAME, Column("Handler", "runtimeclass-node-v1#handler"), AGE), _runtime_class
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Layout(
        (NAME, Column("DriverName", "volumeattributesclass-storage-v1#driverName"), AGE), _attributes_class
    ),
}
