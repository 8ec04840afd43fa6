"""Owners whose pods the API server may refuse, on states as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.workloads.back_offs import lacking
from nominee.lab.chaos.rest.workloads.refusals import Sample, may_refuse, samples
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.lab.chaos.rest.clusters import Manifest, Manifests, manifest, state

CONTAINERS = [{"name": "c", "image": "app"}]
ACCOUNT = {"account": manifest("ServiceAccount", "default")}
LIMITS = {"limits": manifest("LimitRange", "limits", spec={"limits": []})}
QUOTA = manifest("ResourceQuota", "q", spec={"hard": {"pods": "1"}})
ENDING: Manifest = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
LOW = {"low": manifest("PriorityClass", "low", api="scheduling.k8s.io/v1", namespace="", value=1)}


def _daemon(metadata: dict[str, Any] | None = None, **spec: Any) -> Manifests:
    """Return a DaemonSet that lacks a pod, and the account of its namespace."""
    template = {"metadata": metadata or {}, "spec": {"containers": CONTAINERS, **spec}}
    fields: Manifest = {"spec": {"template": template}, "status": {"desiredNumberScheduled": 1}}
    return {"owner": manifest("DaemonSet", "web", api="apps/v1", **fields), **ACCOUNT}


def _set(*claims: str, **template: Any) -> Manifests:
    spec = {
        "replicas": 2,
        "template": {"spec": {"containers": CONTAINERS}, **template},
        "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": {}} for name in claims],
    }
    status = {"updateRevision": "web-1"}
    return {"owner": manifest("StatefulSet", "web", api="apps/v1", spec=spec, status=status), **ACCOUNT}


def _pod_of_set(revision: str) -> Manifests:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "StatefulSet-web"}
    metadata = {
        "labels": {"controller-revision-hash": revision},
        "ownerReferences": [{**owner, "controller": True}],
    }
    return {"pod": manifest("Pod", "web-0", metadata=metadata)}


def _runtime(**scheduling: str) -> Manifests:
    fields = {"handler": "fast", "scheduling": {"nodeSelector": scheduling}}
    return {"fast": manifest("RuntimeClass", "fast", api="node.k8s.io/v1", namespace="", **fields)}


def _account(name: str, **fields: Any) -> Manifests:
    return {name: manifest("ServiceAccount", name, **fields)}


def _samples(manifests: Manifests) -> list[tuple[str, Sample]]:
    found = state(manifests)
    return list(samples(found, lacking(found)))


def _elsewhere(found: Manifest) -> Manifest:
    return {**found, "metadata": {**found["metadata"], "namespace": "other"}}


ENFORCED: Manifest = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
OVERHEAD: Manifest = {"overhead": {"cpu": "1"}}
NUMERIC: Manifest = {"tolerations": [{"key": "a", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("manifests", "may_be_refused"),
    [
        (_daemon(), False),
        (_daemon() | LIMITS, True),
        (_daemon() | {"limits": _elsewhere(LIMITS["limits"])}, False),
        (_daemon() | {"space": manifest("Namespace", "default", namespace="", **ENDING)}, True),
        (_daemon() | {"account": _elsewhere(ACCOUNT["account"])}, True),
        (_daemon(serviceAccountName="own"), True),
        (_daemon(serviceAccountName="own") | _account("own"), False),
        (_daemon(serviceAccountName="own") | _account("own", **ENFORCED), True),
        (_daemon(priorityClassName="low"), True),
        (_daemon(priorityClassName="low") | LOW, False),
        (_daemon(priorityClassName="low", priority=5) | LOW, True),
        (_daemon(preemptionPolicy="Never"), True),
        (_daemon(runtimeClassName="fast"), True),
        (_daemon(runtimeClassName="fast") | _runtime(disk="ssd"), False),
        (_daemon(runtimeClassName="fast", nodeSelector={"disk": "ssd"}) | _runtime(disk="ssd"), False),
        (_daemon(runtimeClassName="fast", nodeSelector={"disk": "hdd"}) | _runtime(disk="ssd"), True),
        (_daemon(runtimeClassName="fast", **OVERHEAD) | _runtime(), True),
        (_daemon(**OVERHEAD), True),
        (_daemon(containers=[{"name": "c", "image": "app "}]), True),
        (_daemon(**NUMERIC), True),
        (_daemon(nodeName="n1", schedulingGates=[{"name": "g"}]), True),
        (_daemon() | {"quota": QUOTA}, True),
        (_daemon() | {"quota": _elsewhere(QUOTA)}, False),
    ],
)
def test_a_pod_may_be_refused_for_a_reason_that_the_objects_show(
    manifests: Manifests, *, may_be_refused: bool
) -> None:
    expected = ["DaemonSet-web"] if may_be_refused else []
    assert [uid for uid, _ in _samples(manifests)] == expected


def test_the_template_of_a_stateful_set_is_validated_in_its_pods_only() -> None:
    assert [uid for uid, _ in _samples(_set())] == ["StatefulSet-web"]
    assert [uid for uid, _ in _samples(_set() | _pod_of_set("web-0"))] == ["StatefulSet-web"]
    assert _samples(_set() | _pod_of_set("web-1")) == []


def test_the_claims_of_a_pod_that_a_set_lacks_may_be_refused() -> None:
    claim = manifest("PersistentVolumeClaim", "data-web-0", spec={})
    sets = _set("data", "logs")
    for more, expected in (({}, ["data-web-0", "logs-web-0"]), ({"claim": claim}, ["logs-web-0"])):
        found = _samples(sets | LIMITS | more)
        assert [obj.metadata.name for _, obj in found if not isinstance(obj, core.Pod)] == expected
        assert {uid for uid, _ in found} == {"StatefulSet-web"}
    assert may_refuse(
        replace(state(sets), refusals=frozenset({"StatefulSet-web"})), state(sets).of(kinds.STATEFUL_SET)[0]
    )
    assert not may_refuse(state(sets), state(sets).of(kinds.STATEFUL_SET)[0])


def test_a_set_may_lack_a_pod_and_have_as_many_as_it_should() -> None:
    """Another one is not to be there any more, and goes when the missing one has come."""
    manifests = _set() | _pod_of_set("web-1")
    manifests["owner"]["spec"] |= {"replicas": 1, "ordinals": {"start": 1}}
    assert [each.metadata.name for each in lacking(state(manifests))] == ["web"]
    del manifests["owner"]["spec"]["ordinals"]
    assert list(lacking(state(manifests))) == []


def test_a_sample_is_a_pod_of_the_template_with_its_claims() -> None:
    metadata = {"labels": {"app": "web"}, "annotations": {"a": "b"}}
    pod = _samples(
        _set("data", metadata=metadata, spec={"priorityClassName": "low", "containers": CONTAINERS})
    )[0][1]
    assert isinstance(pod, core.Pod)
    assert (pod.metadata.namespace, pod.metadata.generateName) == ("default", "web-")
    assert (dict(pod.metadata.labels), dict(pod.metadata.annotations)) == ({"app": "web"}, {"a": "b"})
    assert pod.spec.priorityClassName == "low"
    assert [volume.name for volume in pod.spec.volumes] == ["data"]
