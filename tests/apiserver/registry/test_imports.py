"""Imported objects through the Registry: what another cluster has set stays, and the rules hold."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.objects.attributes import SERVER, Attributes, Origin
from nominee.apiserver.objects.requests import Create, WriteOptions
from nominee.apiserver.objects.user import User
from nominee.apiserver.registry.registry import Registry
from nominee.importing.preparation import prepare
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.wire import codec
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.test_registry import started
from tests.support.etcd import ThrowawayEtcd

UID = "6f2f5c4e-0000-4000-8000-000000000001"
METADATA = {
    "name": "web-1",
    "namespace": "default",
    "uid": UID,
    "creationTimestamp": "2025-01-02T03:04:05Z",
    "generation": 7,
    "managedFields": [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2025-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:nodeName": {}}},
        }
    ],
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": METADATA,
    "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "img"}]},
    "status": {
        "phase": "Running",
        "startTime": "2025-01-02T03:04:06Z",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2025-01-02T03:04:07Z",
            }
        ],
        "containerStatuses": [
            {
                "name": "c",
                "image": "img",
                "imageID": "sha256:1",
                "containerID": "containerd://1",
                "restartCount": 3,
                "ready": True,
                "lastState": {},
                "state": {"running": {"startedAt": "2025-01-02T03:04:07Z"}},
            }
        ],
    },
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"capacity": {"cpu": "2"}, "nodeInfo": {"kubeletVersion": "v1.34.1"}},
}


async def put(
    registry: Registry,
    kind: Kind[Any],
    document: dict[str, Any],
    *,
    imported: bool = True,
    origin: Origin = SERVER,
) -> dict[str, Any]:
    options = WriteOptions(imported=imported, origin=origin)
    request = Create(
        kind, "default" if kind.namespaced else "", codec.from_json(kind.message, document), options
    )
    made = codec.to_json((await registry.perform(request)).object.message)
    assert isinstance(made, dict)
    return made


async def test_an_imported_pod_keeps_what_its_cluster_has_set(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        made = await put(registry, kinds.POD, POD)
        assert {key: made["metadata"][key] for key in METADATA} == METADATA
        status = dict(made["status"])
        assert status.pop("qosClass") == "BestEffort"  # the server's own, which the status left out
        assert status == POD["status"]
        # The defaults of a new object.
        assert made["spec"]["restartPolicy"] == "Always"
        assert made["spec"]["priority"] == 0


@pytest.mark.parametrize("given", [{}, {"uid": ""}])
async def test_an_imported_object_without_a_uid_gets_one(etcd: ThrowawayEtcd, given: dict[str, str]) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        made = await put(registry, kinds.NODE, {**NODE, "metadata": {"name": "a", **given}})
        assert made["metadata"]["uid"]


async def test_an_imported_node_is_not_tainted_and_a_new_one_is(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        imported = await put(registry, kinds.NODE, NODE)
        assert "taints" not in imported["spec"]
        assert imported["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.1"
        new = await put(registry, kinds.NODE, {**NODE, "metadata": {"name": "b"}}, imported=False)
        assert [taint["key"] for taint in new["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"nodeName": "a", "containers": []}}, "spec.containers: Required value"),
        (
            {"spec": {**POD["spec"], "priorityClassName": "gold"}},
            "no PriorityClass with name gold was found",
        ),
        ({"status": {"phase": "Running", "podIPs": [{"ip": "1.2.3"}]}}, "status.podIPs[0]"),
    ],
)
async def test_defaults_admission_and_validation_hold_for_imported_objects(
    etcd: ThrowawayEtcd, change: dict[str, Any], message: str
) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        with pytest.raises(StatusError) as refused:
            await put(registry, kinds.POD, {**POD, **change})
        assert message in refused.value.message


async def test_only_masters_may_import(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        user = User("jane", ("system:authenticated",))
        with pytest.raises(StatusError) as refused:
            await put(registry, kinds.POD, POD, origin=Origin(user, Attributes("create")))
        assert refused.value.code == 403
        assert "only system:masters may import objects" in refused.value.message


async def test_label_keys_that_were_merged_once_are_not_merged_again(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        selector = {"matchLabels": {"app": "a"}}
        spec = {
            "containers": [{"name": "c", "image": "img"}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                    "matchLabelKeys": ["pod-template-hash"],
                }
            ],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "zone",
                            "labelSelector": selector,
                            "matchLabelKeys": ["pod-template-hash"],
                        }
                    ]
                }
            },
        }
        metadata = {"name": "p", "namespace": "default", "labels": {"app": "a", "pod-template-hash": "1"}}
        stored = await put(registry, kinds.POD, {"metadata": metadata, "spec": spec}, imported=False)
        again = {**stored, "apiVersion": "v1", "kind": "Pod", "metadata": {**stored["metadata"], "name": "q"}}
        pod = codec.to_json(prepare(again, {stored["metadata"]["uid"]: UID}, (), secrets=False))
        assert isinstance(pod, dict)
        imported = await put(registry, kinds.POD, pod)
        assert imported["spec"] == stored["spec"]
