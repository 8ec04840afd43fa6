"""Which fields a field selector may ask for, per kind, and their values.

Source: kube-apiserver 1.36, the field label conversions and selectable fields of each kind; tests/golden
(api_list.jsonl, family field).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.names import go_quote
from machinery.api.pb import batch, certificates, core, devices


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _pod(pod: core.Pod) -> dict[str, str]:
    spec, status = pod.spec, pod.status
    host_network = spec.hostNetwork or (
        spec.HasField("securityContext") and getattr(spec.securityContext, "hostNetwork", False)
    )
    return {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "spec.nodeName": spec.nodeName,
        "spec.restartPolicy": spec.restartPolicy,
        "spec.schedulerName": spec.schedulerName,
        "spec.serviceAccountName": spec.serviceAccountName,
        "spec.hostNetwork": _bool(host_network),
        "status.phase": status.phase,
        "status.podIP": status.podIP,
        # Upstream selects on the first address only, and the plural is a label that never has a value.
        "status.podIPs": "",
        "status.nominatedNodeName": status.nominatedNodeName,
    }


def _node(node: core.Node) -> dict[str, str]:
    return {"metadata.name": node.metadata.name, "spec.unschedulable": _bool(node.spec.unschedulable)}


def _namespace(namespace: core.Namespace) -> dict[str, str]:
    return {"metadata.name": namespace.metadata.name, "status.phase": namespace.status.phase}


def _event(event: core.Event) -> dict[str, str]:
    about = event.involvedObject
    source = event.source.component or event.reportingComponent
    return {
        "metadata.name": event.metadata.name,
        "metadata.namespace": event.metadata.namespace,
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.apiVersion,
        "involvedObject.resourceVersion": about.resourceVersion,
        "involvedObject.fieldPath": about.fieldPath,
        "reason": event.reason,
        "reportingComponent": event.reportingComponent,
        "source": source,
        "type": event.type,
    }


def _metadata(obj: Any) -> dict[str, str]:
    return {"metadata.name": obj.metadata.name, "metadata.namespace": obj.metadata.namespace}


def _secret(secret: core.Secret) -> dict[str, str]:
    return _metadata(secret) | {"type": secret.type}


def _service(service: core.Service) -> dict[str, str]:
    spec = service.spec
    return _metadata(service) | {"spec.clusterIP": spec.clusterIP, "spec.type": spec.type}


def _replication_controller(controller: core.ReplicationController) -> dict[str, str]:
    return _metadata(controller) | {"status.replicas": str(controller.status.replicas)}


def _job(job: batch.Job) -> dict[str, str]:
    return _metadata(job) | {"status.successful": str(job.status.succeeded)}


def _resource_slice(found: devices.ResourceSlice) -> dict[str, str]:
    spec = found.spec
    return {
        "metadata.name": found.metadata.name,
        "spec.nodeName": spec.nodeName,
        "spec.driver": spec.driver,
    }


def _signing_request(found: certificates.CertificateSigningRequest) -> dict[str, str]:
    return {"metadata.name": found.metadata.name, "spec.signerName": found.spec.signerName}


_VALUES: dict[Kind[Any], Callable[[Any], dict[str, str]]] = {
    kinds.POD: _pod,
    kinds.NODE: _node,
    kinds.NAMESPACE: _namespace,
    kinds.EVENT: _event,
    kinds.SECRET: _secret,
    kinds.SERVICE: _service,
    kinds.REPLICATION_CONTROLLER: _replication_controller,
    kinds.JOB: _job,
    kinds.RESOURCE_SLICE: _resource_slice,
    kinds.CERTIFICATE_SIGNING_REQUEST: _signing_request,
}

# events.k8s.io asks by its own names for the fields of the core Event that lies in etcd.
_EVENTS_LABELS = {
    "metadata.name": "metadata.name",
    "metadata.namespace": "metadata.namespace",
    "reason": "reason",
    "type": "type",
    "reportingController": "reportingComponent",
    **{
        f"regarding.{field}": f"involvedObject.{field}"
        for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}

_LABELS: dict[Kind[Any], frozenset[str]] = {
    # `spec.host` was v1beta1's name of spec.nodeName and is still taken.
    kinds.POD: frozenset({*_pod(core.Pod()), "spec.host"}),
    kinds.NODE: frozenset(_node(core.Node())),
    kinds.NAMESPACE: frozenset(_namespace(core.Namespace())),
    kinds.EVENT: frozenset(_event(core.Event())),
    kinds.SECRET: frozenset(_secret(core.Secret())),
    kinds.SERVICE: frozenset(_service(core.Service())),
    kinds.REPLICATION_CONTROLLER: frozenset(_replication_controller(core.ReplicationController())),
    kinds.JOB: frozenset(_job(batch.Job())),
    kinds.CERTIFICATE_SIGNING_REQUEST: frozenset(_signing_request(certificates.CertificateSigningRequest())),
    kinds.RESOURCE_SLICE: frozenset(_resource_slice(devices.ResourceSlice())),
}
_ONLY_METADATA = ("metadata.name", "metadata.namespace")


class UnknownFieldLabel(ValueError):
    """A field selector asks for a field that this kind does not select by; the text is upstream's."""


def _unknown(kind: Kind[Any], label: str) -> str:
    """Upstream has as many texts as hands that wrote them."""
    if kind is kinds.JOB:
        return f"field label {go_quote(label)} not supported for Job"
    if kind is kinds.RESOURCE_SLICE:
        return f"field label not supported for {kind.api_version}, Kind={kind.kind}: {label}"
    return f"field label not supported: {label}"


def fields_of(kind: Kind[Any], message: Any) -> Mapping[str, str]:
    """The selectable fields of an object of `kind` (the stored kind: core Events for both groups)."""
    return _VALUES.get(kind, _metadata)(message)


def field_label(kind: Kind[Any], label: str) -> str:
    """The name in `fields_of` for what a selector calls `label`; raises UnknownFieldLabel."""
    if kind is kinds.EVENTS_EVENT:
        if label not in _EVENTS_LABELS:
            raise UnknownFieldLabel(f"field label not supported: {label}")
        return _EVENTS_LABELS[label]
    known = _LABELS.get(kind)
    if known is None:
        if label not in _ONLY_METADATA:
            quoted = ", ".join(f'"{name}"' for name in _ONLY_METADATA)
            raise UnknownFieldLabel(f"{go_quote(label)} is not a known field selector: only {quoted}")
        return label
    if label not in known:
        raise UnknownFieldLabel(_unknown(kind, label))
    return "spec.nodeName" if label == "spec.host" and kind is kinds.POD else label
