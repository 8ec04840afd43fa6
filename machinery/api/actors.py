"""The components that act on the objects of each kind, and the kinds on which nothing acts.

`python -m nominee.machinery.api.actors` prints docs/kinds.md. Names in backquotes are controllers (the table
of `controllers/shell/manager.py`). Each kind that the API server serves has a row, each controller a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind

_NOTHING: Final = "nothing"
_RBAC: Final = "API server: RBAC"
_FAIRNESS: Final = "API server: priority and fairness"
_EVENTS: Final = "data only; deleted by the API server after an hour"
_SCALER: Final = "`horizontal-pod-autoscaler-controller`"

ACTORS: Final[Mapping[AnyKind, str]] = {
    kinds.NAMESPACE: "`namespace-controller`, `serviceaccount-controller`, "
    "`root-ca-certificate-publisher-controller`",
    kinds.NODE: "kubelet, scheduler, autoscaler, `node-lifecycle-controller`, `taint-eviction-controller`",
    kinds.POD: "scheduler, kubelet, autoscaler, `taint-eviction-controller`, "
    "`disruption-controller-stale-pods`, `pod-garbage-collector-controller`; with owners: "
    "`garbage-collector-controller`, as all objects",
    kinds.SERVICE: "API server: addresses and ports; `endpoints-controller`, `endpointslice-controller`",
    kinds.CONFIG_MAP: "data only",
    kinds.PERSISTENT_VOLUME_CLAIM: "scheduler, `persistentvolume-binder-controller`, `delayed-provisioner`, "
    "`persistentvolumeclaim-protection-controller`",
    kinds.PERSISTENT_VOLUME: "`persistentvolume-phases-controller`, `persistentvolume-protection-controller`",
    kinds.EVENT: _EVENTS,
    kinds.EVENTS_EVENT: _EVENTS,
    kinds.PRIORITY_CLASS: "API server: priority of pods",
    kinds.POD_DISRUPTION_BUDGET: "`disruption-controller`; API server: evictions",
    kinds.STORAGE_CLASS: "scheduler, `delayed-provisioner`; API server: the default class",
    kinds.CSI_NODE: "scheduler",
    kinds.CSI_DRIVER: "scheduler",
    kinds.CSI_STORAGE_CAPACITY: "scheduler",
    kinds.VOLUME_ATTACHMENT: "scheduler, which counts them",
    kinds.REPLICA_SET: "`replicaset-controller`",
    kinds.LEASE: "`node-lifecycle-controller`; leader election",
    kinds.DEPLOYMENT: "`deployment-controller`",
    kinds.DAEMON_SET: "`daemonset-controller`",
    kinds.STATEFUL_SET: "`statefulset-controller`",
    kinds.SECRET: "data only",
    kinds.SERVICE_ACCOUNT: "`serviceaccount-controller`; API server: tokens",
    kinds.LIMIT_RANGE: "API server: admission",
    kinds.RESOURCE_QUOTA: "`resourcequota-controller`; API server: admission",
    kinds.REPLICATION_CONTROLLER: "`replicationcontroller-controller`",
    kinds.ROLE: _RBAC,
    kinds.ROLE_BINDING: _RBAC,
    kinds.CLUSTER_ROLE: _RBAC,
    kinds.CLUSTER_ROLE_BINDING: _RBAC,
    kinds.JOB: "`job-controller`, `job-controller-orphaned-pods`, `ttl-after-finished-controller`",
    kinds.ENDPOINT_SLICE: "data only",
    kinds.DEVICE_CLASS: "scheduler",
    kinds.RESOURCE_CLAIM: "scheduler, `resourceclaim-controller`, `device-taint-eviction-controller`",
    kinds.RESOURCE_CLAIM_TEMPLATE: "`resourceclaim-controller`",
    kinds.RESOURCE_SLICE: "scheduler, `device-taint-eviction-controller`",
    kinds.FLOW_SCHEMA: _FAIRNESS,
    kinds.PRIORITY_LEVEL_CONFIGURATION: _FAIRNESS,
    kinds.ENDPOINTS: "`endpointslice-mirroring-controller`",
    kinds.POD_TEMPLATE: "data only",
    kinds.CONTROLLER_REVISION: "data only",
    kinds.CRON_JOB: "`cronjob-controller`",
    kinds.HORIZONTAL_POD_AUTOSCALER: _SCALER,
    kinds.HORIZONTAL_POD_AUTOSCALER_V1: _SCALER,
    kinds.INGRESS: _NOTHING,
    kinds.INGRESS_CLASS: "API server: the default class",
    kinds.NETWORK_POLICY: _NOTHING,
    kinds.IP_ADDRESS: "API server: addresses of Services",
    kinds.SERVICE_CIDR: "API server: addresses of Services; `service-cidr-controller`",
    kinds.RUNTIME_CLASS: "API server: admission",
    kinds.VOLUME_ATTRIBUTES_CLASS: "data only",
    kinds.CERTIFICATE_SIGNING_REQUEST: "`certificatesigningrequest-approving-controller`, "
    "`certificatesigningrequest-signing-controller`, `certificatesigningrequest-cleaner-controller`",
    kinds.CUSTOM_RESOURCE_DEFINITION: "cannot be created",
    kinds.POD_GROUP: "scheduler",
    kinds.WORKLOAD: "scheduler",
}

_UNATTENDED: Final = frozenset(kind for kind, actors in ACTORS.items() if actors == _NOTHING)


def warning(kind: AnyKind) -> str:
    """Return the warning for the client that creates an object on which nothing acts, else ""."""
    return f"nominee: nothing acts on {kind.kind}" if kind in _UNATTENDED else ""


def page() -> Iterator[str]:
    """Return the lines of the table in docs/kinds.md."""
    yield "| kind | API | acted on by |"
    yield "|---|---|---|"
    for kind in sorted(ACTORS, key=lambda each: (each.kind, each.api_version)):
        yield f"| {kind.kind} | {kind.api_version} | {ACTORS[kind]} |"


if __name__ == "__main__":
    print("\n".join(page()))
