"""The rules about objects: each finds a planted violation, and none finds anything in a correct cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.pods import orphans
from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.state import Expectations
from nominee.lab.chaos.rest.workloads.owners import deployments, replica_sets
from nominee.lab.chaos.rest.workloads.statuses import budgets
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import (
    NOW,
    Change,
    Manifests,
    changed,
    correct,
    manifest,
    owner,
    pod,
    put,
    state,
)

DELETED = "1970-01-12T13:46:30Z"
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


def test_a_correct_cluster_has_no_finding() -> None:
    assert findings(state(correct())) == []


def has_failed(**status: object) -> Change:
    """Return a change: there is a pod of no owner, Failed with this status."""

    def change(manifests: Manifests) -> None:
        manifests["failed"] = pod("failed", namespace="other", labels={})
        manifests["failed"]["status"] = {"phase": "Failed", **status}

    return change


def adds(name: str, *, charged: bool = True, **metadata: Any) -> Change:
    """Return a change: there is one more pod, which no selector has."""

    def change(manifests: Manifests) -> None:
        if charged:
            manifests["quota"]["status"]["used"] = {"pods": "3", "requests.cpu": "3"}
        manifests[name] = pod(name, labels={}, **metadata)

    return change


def serves(name: str) -> Change:
    """Return a change: the service has one more endpoint."""

    def change(manifests: Manifests) -> None:
        endpoints = manifests["slice"]["endpoints"]
        endpoints.append(copy.deepcopy(endpoints[0]))
        endpoints[-1]["targetRef"]["name"] = name

    return change


def has_replication_controller(manifests: Manifests) -> None:
    """Add a replication controller of three replicas without pods."""
    manifests["rc"] = manifest("ReplicationController", "old", spec={"replicas": 3})
    manifests["rc"]["status"] = {"observedGeneration": 1}


def has_the_address_of_another_service(manifests: Manifests) -> None:
    """Add two services, which select no pods, with one address; and two headless ones."""
    for name, address in (("y", "10.96.0.9"), ("z", "10.96.0.9"), ("h", "None"), ("i", "None")):
        manifests[name] = manifest("Service", name, spec={"clusterIP": address, "clusterIPs": [address]})


def has_the_range_of_another_node(manifests: Manifests) -> None:
    """Let two nodes have one range of addresses for pods."""
    for name in ("n1", "n2"):
        key = "node" if name == "n1" else name
        manifests[key] = copy.deepcopy(manifests["node"])
        manifests[key]["metadata"] |= {"name": name, "uid": name}
        manifests[key]["spec"] = {"podCIDRs": ["10.0.0.0/24"]}


def lacks_its_claim(manifests: Manifests) -> None:
    """Let a volume stay bound to a claim that is bound to no volume."""
    manifests["volume"]["status"] = {"phase": "Bound"}
    manifests["claim"] |= {"spec": {}, "status": {"phase": "Pending"}}


def is_released(manifests: Manifests) -> None:
    """Let a claim stay bound to a volume that is that of an earlier claim."""
    manifests["volume"]["spec"]["claimRef"]["uid"] = "before"
    manifests["volume"]["status"]["phase"] = "Released"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (has_replication_controller, "replicationcontroller default/old has 0 live pods and 3 replicas"),
        (has_failed(reason="OutOfcpu"), "pod other/failed was failed on n1 with the reason OutOfcpu"),
        (has_failed(reason="NodeAffinity"), "pod other/failed was failed on n1 with the reason NodeAffinity"),
        (has_failed(), "pod other/failed was failed on n1 without a reason"),
        (
            put("replicas/status/readyReplicas", 1),
            "replicaset default/web-1 shows 1 readyReplicas in its status, and its pods are 2",
        ),
        (
            put("replicas/metadata/generation", 2),
            "replicaset default/web-1 has a status of generation 1 only",
        ),
        (
            put("deployment/status/replicas", 3),
            "deployment default/web shows 3 replicas in its status, and its pods are 2",
        ),
        (
            put("deployment/spec/replicas", 3),
            "deployment default/web has 3 replicas, and its replica sets have 2",
        ),
        (
            put("deployment/status/availableReplicas", 1),
            "deployment default/web shows 1 availableReplicas in its status, and its pods are 2",
        ),
        (
            put("deployment/status/unavailableReplicas", 1),
            "deployment default/web shows 1 unavailableReplicas in its status, and its pods are 0",
        ),
        (
            put("deployment/status/conditions", [{"type": "Available", "status": "False"}]),
            "deployment default/web shows Available=False, and 2 replicas are available",
        ),
        (
            adds("orphan", **owner(manifest("ReplicaSet", "gone", api="apps/v1"))),
            "pod default/orphan exists, and its owner, the replicaset gone, does not",
        ),
        (
            put("volume/metadata/namespace", "gone"),
            "persistentvolume gone/pv exists, and its namespace does not",
        ),
        (
            put("budget/status/currentHealthy", 1),
            "poddisruptionbudget default/web shows 1 currentHealthy, and its pods are 2",
        ),
        (
            put("budget/status/disruptionsAllowed", 2),
            "poddisruptionbudget default/web allows 2 disruptions, and its pods allow 1",
        ),
        (
            put("budget/status/expectedPods", 3),
            "poddisruptionbudget default/web shows 3 expectedPods, and its pods are 2",
        ),
        (
            put("budget/status/desiredHealthy", 0),
            "poddisruptionbudget default/web shows 0 desiredHealthy, and it demands 1",
        ),
        (
            put("budget/status/disruptedPods", {"gone": DELETED}),
            "poddisruptionbudget default/web still counts as disrupted: gone",
        ),
        (
            put("quota/status/used/requests.cpu", "3"),
            "resourcequota default/q shows 3 requests.cpu as used, and its objects use 2",
        ),
        (
            put("quota/spec/hard/pods", "6"),
            "resourcequota default/q has other limits in its status than in its spec",
        ),
        (
            put("slice/endpoints", []),
            "service default/web has no ready endpoint for pod default/a, pod default/b",
        ),
        (
            serves("gone"),
            "service default/web has as a ready endpoint, and not as a ready pod: pod default/gone",
        ),
        (
            put("node/spec/taints", [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
            "node n1 has taints without a reason: not-ready",
        ),
        (put("node/spec/unschedulable", value=True), "node n1 lacks the taints unschedulable"),
        (
            put("device/status/reservedFor/0/uid", "before"),
            "resourceclaim default/gpu is reserved for pod a, which does not exist",
        ),
        (
            put("device/status/reservedFor", []),
            "resourceclaim default/gpu is allocated, and reserved for no pod",
        ),
        (
            adds("lost", node="gone"),
            "pod default/lost is bound to gone, which does not exist",
        ),
        (
            adds("lost", charged=False, node="gone", deletionTimestamp=DELETED, deletionGracePeriodSeconds=1),
            "pod default/lost is bound to gone, which does not exist",
        ),
        (
            put("b/status/podIP", "10.0.0.1"),
            "pod default/b has the address 10.0.0.1, and so has pod default/a",
        ),
        (
            has_the_address_of_another_service,
            "service default/z has the address 10.96.0.9, and so has service default/y",
        ),
        (
            has_the_range_of_another_node,
            "node n2 has the address 10.0.0.0/24, and so has node n1",
        ),
        (
            lacks_its_claim,
            "persistentvolume pv is bound to the claim data, which is not bound to it",
        ),
        (
            is_released,
            "persistentvolumeclaim default/data is bound to the volume pv, which is not bound to it",
        ),
        (
            put("claim/metadata/deletionTimestamp", DELETED),
            "persistentvolumeclaim default/data terminates with its protection, and no pod uses it",
        ),
        (
            put("lease/spec/renewTime", "1970-01-12T13:46:20.000000Z"),
            "lease kube-system/kube-scheduler has ended, and h_scheduler-0_1 is still its holder",
        ),
    ],
)
def test_a_planted_violation_is_found(change: Change, expected: str) -> None:
    assert [str(each) for each in findings(state(changed(change)))] == [expected]


def test_a_replica_that_is_missing_is_found_by_all_who_count_it() -> None:
    found = [str(each) for each in findings(state(changed(lambda manifests: manifests.pop("b"))))]
    assert "replicaset default/web-1 has 1 live pods and 2 replicas" in found
    assert "poddisruptionbudget default/web shows 2 currentHealthy, and its pods are 1" in found
    assert "resourcequota default/q shows 2 pods as used, and its objects use 1" in found


def test_a_device_of_two_claims_is_found() -> None:
    def change(manifests: Manifests) -> None:
        other = manifests["other"] = copy.deepcopy(manifests["device"])
        other["metadata"] |= {"name": "other", "uid": "other"}

    expected = "device d/p/gpu-0 is allocated to resourceclaim default/gpu and to resourceclaim default/other"
    assert [str(each) for each in findings(state(changed(change)))] == [expected]


def test_an_owner_that_waits_for_no_dependent_is_found() -> None:
    def change(manifests: Manifests) -> None:
        metadata = {"deletionTimestamp": DELETED, "finalizers": ["foregroundDeletion"]}
        manifests["old"] = manifest("Deployment", "old", api="apps/v1", metadata=metadata)

    expected = "deployment default/old waits for the deletion of dependents, and has none"
    found = state(changed(change))
    assert [str(each) for each in findings(found)] == [expected]
    assert findings(replace(found, other_owners=frozenset({"Deployment-old"}))) == []


@pytest.mark.parametrize(
    ("node", "phase", "taints", "ready", "is_found"),
    [
        ("", "Pending", [], "True", True),
        ("", "Failed", [], "True", False),
        ("gone", "Running", [], "True", True),
        ("gone", "Failed", [], "True", False),
        ("n1", "Running", [OUT_OF_SERVICE], "False", True),
        ("n1", "Running", [OUT_OF_SERVICE], "True", False),
        ("n1", "Running", [], "False", False),
    ],
)
def test_a_pod_that_no_kubelet_ends_fails(
    node: str, phase: str, taints: list[object], ready: str, is_found: bool
) -> None:
    manifests = correct()
    manifests["node"]["spec"] = {"taints": taints}
    manifests["node"]["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    metadata = {"deletionTimestamp": DELETED, "finalizers": ["example.com/x"]}
    manifests["held"] = pod("held", node=node, **metadata)
    manifests["held"]["status"]["phase"] = phase
    expected = ["pod default/held terminates, no kubelet ends it, and it is not Failed"] if is_found else []
    assert [str(each) for each in orphans(state(manifests))] == expected
    assert not list(orphans(state(manifests, running=frozenset())))


@pytest.mark.parametrize(
    ("metadata", "finalizers", "remaining", "is_found"),
    [
        ({"deletionTimestamp": DELETED}, ["kubernetes"], "False", True),
        ({"deletionTimestamp": DELETED}, ["kubernetes"], "", True),
        ({"deletionTimestamp": DELETED}, ["kubernetes"], "True", False),
        ({"deletionTimestamp": DELETED}, ["kubernetes", "example.com/x"], "False", False),
        ({"deletionTimestamp": DELETED, "finalizers": ["example.com/x"]}, ["kubernetes"], "False", False),
        ({}, ["kubernetes"], "False", False),
    ],
)
def test_a_namespace_that_terminates_and_waits_for_nothing_is_found(
    metadata: Mapping[str, object], finalizers: list[str], remaining: str, is_found: bool
) -> None:
    def change(manifests: Manifests) -> None:
        condition = {"type": "NamespaceContentRemaining", "status": remaining}
        phase = "Terminating" if "deletionTimestamp" in metadata else "Active"
        status = {"conditions": [condition] if remaining else [], "phase": phase}
        spec = {"finalizers": finalizers}
        manifests["team"] = manifest(
            "Namespace", "team", namespace="", metadata=metadata, spec=spec, status=status
        )

    expected = ["namespace team terminates, and no content of it remains"] if is_found else []
    assert [str(each) for each in findings(state(changed(change)))] == expected


def _recreates(strategy: str, *, is_terminating: bool) -> list[str]:
    """Return the findings on a Deployment whose former pod has not ended, and whose set has no replicas."""

    def change(manifests: Manifests) -> None:
        manifests["deployment"]["spec"]["strategy"] = {"type": strategy}
        manifests["deployment"]["status"] = {"observedGeneration": 1}
        manifests["replicas"]["spec"]["replicas"] = 0
        manifests["replicas"]["status"] = {"observedGeneration": 1}
        del manifests["b"]
        if is_terminating:
            manifests["a"]["metadata"] |= {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 1}
        else:
            manifests["a"]["status"]["phase"] = "Failed"

    return [str(each) for each in deployments(state(changed(change)))]


def test_a_deployment_that_recreates_its_pods_waits_for_their_end() -> None:
    found = ["deployment default/web has 2 replicas, and its replica sets have 0"]
    assert _recreates("Recreate", is_terminating=True) == []
    assert _recreates("Recreate", is_terminating=False) == found
    assert _recreates("RollingUpdate", is_terminating=True) == found


def test_owners_in_a_namespace_that_ends_have_fewer_pods() -> None:
    def found(*replicas: int, ends: bool = True) -> list[str]:
        def change(manifests: Manifests) -> None:
            manifests["deployment"]["spec"]["replicas"], manifests["replicas"]["spec"]["replicas"] = replicas
            manifests["deployment"]["status"]["unavailableReplicas"] = max(replicas[1] - 2, 0)
            if ends:
                metadata = {"deletionTimestamp": DELETED}
                manifests["default"] = manifest("Namespace", "default", namespace="", metadata=metadata)

        cluster = state(changed(change))
        return [each.sentence for rule in (deployments, replica_sets) for each in rule(cluster)]

    assert found(2, 3) == found(3, 3) == []
    assert "has 2 live pods and 3 replicas" in found(3, 3, ends=False)
    assert "has 2 replicas, and its replica sets have 3" in found(2, 3, ends=False)
    assert "has 2 live pods and 1 replicas" in found(1, 1)


def test_a_rollout_waits_for_its_pods_to_become_available() -> None:
    """The new pod of a surge has been ready for a minute: it keeps the others."""

    def found(seconds: int) -> list[tuple[str, float]]:
        def change(manifests: Manifests) -> None:
            manifests["deployment"]["spec"] |= {"replicas": 1, "minReadySeconds": seconds}
            manifests["b"]["status"]["conditions"][1]["lastTransitionTime"] = rfc3339(NOW - 60)

        return [(each.sentence, each.due) for each in deployments(state(changed(change)))]

    assert found(seconds=181) == []
    sentence = "has 1 replicas, and its replica sets have 2"
    assert found(seconds=180) == [(sentence, NOW + 300)]  # the controller may look after each minReadySeconds
    assert found(seconds=60) == [(sentence, NOW + 60)]


@pytest.mark.parametrize("kind", ["deployment", "replicas"])
def test_pods_that_have_been_ready_for_long_enough_are_available(kind: str) -> None:
    def found(seconds: int) -> list[tuple[str, float]]:
        def change(manifests: Manifests) -> None:
            manifests[kind]["spec"]["minReadySeconds"] = seconds
            manifests[kind]["status"]["availableReplicas"] = 1
            for name in ("a", "b"):
                manifests[name]["status"]["conditions"][1]["lastTransitionTime"] = rfc3339(NOW - 60)

        cluster = state(changed(change))
        found = [each for rule in (deployments, replica_sets) for each in rule(cluster)]
        return [(each.sentence, each.due) for each in found if "availableReplicas" in each.sentence]

    assert found(seconds=181) == []
    assert found(seconds=180) == [("shows 1 availableReplicas in its status, and its pods are 2", NOW + 300)]


@pytest.mark.parametrize(
    "change",
    [
        has_failed(containerStatuses=[{"name": "c", "state": {"terminated": {"exitCode": 1}}}]),
        has_failed(reason="Evicted"),
        has_failed(conditions=[{"type": "DisruptionTarget", "status": "True"}]),
        put("budget/spec", {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        put("budget/spec", {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        put("service/spec/publishNotReadyAddresses", value=True),
        put("lease/spec/holderIdentity", ""),
    ],
)
def test_no_rule_has_a_finding_in_other_correct_clusters(change: Change) -> None:
    assert findings(state(changed(change))) == []


def _is_uncountable(allowed: int, *, owner_kind: str = "Job") -> Change:
    """Let a budget need the scale of a Job, which has none; the rest of its status was never written."""

    def change(manifests: Manifests) -> None:
        selector = {"matchLabels": {"app": "web"}}
        manifests["budget"]["spec"] = {"maxUnavailable": 1, "selector": selector}
        condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}
        manifests["budget"]["status"] = {"disruptionsAllowed": allowed, "conditions": [condition]}
        if owner_kind == "Job":
            reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
            manifests["a"]["metadata"]["ownerReferences"] = [reference]

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_is_uncountable(0), ""),
        (_is_uncountable(1), "allows 1 disruptions, and its pods cannot be counted"),
        (_is_uncountable(0, owner_kind="ReplicaSet"), "has a status of generation 0 only"),
    ],
)
def test_a_budget_whose_pods_cannot_be_counted_allows_nothing(change: Change, sentence: str) -> None:
    found = [str(each) for each in budgets(state(changed(change)))]
    assert found == ([f"poddisruptionbudget default/web {sentence}"] if sentence else [])


def test_what_controllers_do_is_not_asked_of_a_cluster_without_them() -> None:
    without = frozenset({"apiserver", "scheduler", "kubelet"})
    changes = (put("budget/status/currentHealthy", 1), put("slice/endpoints", []), put("quota/status", {}))
    for change in changes:
        assert findings(state(changed(change)))
        assert findings(state(changed(change), running=without)) == []


def test_a_kubelet_that_preempts_may_refuse_pods_after_a_restart() -> None:
    def preempts(manifests: Manifests) -> None:
        has_failed(reason="OutOfcpu")(manifests)
        manifests["victim"] = copy.deepcopy(manifests["failed"])
        manifests["victim"]["metadata"] |= {"name": "victim", "uid": "victim"}
        manifests["victim"]["status"] |= {
            "reason": "Preempting",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}],
        }

    assert findings(state(changed(preempts))) == []


def test_a_rejection_that_the_caller_expects_is_no_finding() -> None:
    manifests = changed(has_failed(reason="OutOfcpu"))
    assert findings(state(manifests))
    assert findings(state(manifests, expectations=Expectations(races=frozenset({("*", "OutOf")})))) == []
    assert (
        findings(
            state(manifests, expectations=Expectations(rejects=lambda pod: pod.metadata.name == "failed"))
        )
        == []
    )
    assert findings(
        state(
            changed(has_failed(reason="NodeAffinity")),
            expectations=Expectations(races=frozenset({("*", "OutOf")})),
        )
    )
    labels = Expectations(races=frozenset({("n1", "NodeAffinity")}))
    elsewhere = Expectations(races=frozenset({("n2", "NodeAffinity")}))
    assert findings(state(changed(has_failed(reason="NodeAffinity")), expectations=elsewhere))
    assert findings(state(manifests, expectations=labels))
    assert findings(state(changed(has_failed(reason="NodeAffinity")), expectations=labels)) == []
