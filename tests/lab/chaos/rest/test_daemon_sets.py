"""The rule about daemon sets at rest."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.workloads.back_offs import lacking
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Change, Manifests, changed, manifest, owner, pod, put, state

STATUS = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 1,
    "currentNumberScheduled": 1,
    "updatedNumberScheduled": 1,
    "numberReady": 1,
    "numberAvailable": 1,
}
HASH = "controller-revision-hash"
AGENT = "daemonset kube-system/agent"


def _with_daemons(change: Change = lambda _: None) -> Manifests:
    manifests = changed(lambda _: None)
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    of: dict[str, Any] = {"api": "apps/v1", "namespace": "kube-system"}
    daemons = manifests["daemons"] = manifest("DaemonSet", "agent", spec=spec, status=dict(STATUS), **of)
    labels = {"app": "agent", HASH: "1"}
    manifests["daemon"] = pod("daemon", namespace="kube-system", labels=labels, **owner(daemons))
    data = {"spec": {"template": {**copy.deepcopy(template), "$patch": "replace"}}}
    metadata = {"labels": {HASH: "1"}, **owner(daemons)}
    revision: dict[str, Any] = {"data": data, "revision": 1, "metadata": metadata, **of}
    manifests["revision"] = manifest("ControllerRevision", "agent-1", **revision)
    change(manifests)
    return manifests


def _second(manifests: Manifests) -> None:
    manifests["second"] = copy.deepcopy(manifests["daemon"])
    manifests["second"]["metadata"] |= {"name": "second", "uid": "second"}
    manifests["second"]["status"]["podIP"] = "10.0.9.9"


def _second_waits(manifests: Manifests) -> None:
    _second(manifests)
    manifests["second"]["status"]["conditions"] = []


def _surges(seconds: int) -> Change:
    """Return a change by which a node has a second pod, of a set with minReadySeconds, ready for a minute."""

    def change(manifests: Manifests) -> None:
        _second(manifests)
        manifests["daemons"]["spec"]["minReadySeconds"] = seconds
        manifests["second"]["status"]["conditions"][1]["lastTransitionTime"] = rfc3339(NOW - 60)

    return change


def _another_node(manifests: Manifests) -> None:
    manifests["other node"] = manifest("Node", "n2", namespace="")
    manifests["other node"]["status"] = manifests["node"]["status"]
    manifests["daemons"]["status"] |= {"desiredNumberScheduled": 2, "numberUnavailable": 1}


def _terminates(manifests: Manifests) -> None:
    manifests["daemons"]["metadata"] |= {
        "deletionTimestamp": "1970-01-12T13:46:30Z",
        "finalizers": ["example.com/f"],
    }
    manifests["daemons"]["status"]["numberReady"] = 0


def _an_older_one_failed(manifests: Manifests) -> None:
    _second(manifests)
    ended = {"name": "c", "state": {"terminated": {"exitCode": 1}}}
    manifests["second"]["status"] |= {"phase": "Failed", "conditions": [], "containerStatuses": [ended]}
    manifests["daemon"]["metadata"]["creationTimestamp"] = rfc3339(NOW)
    manifests["daemons"]["status"] |= {"numberReady": 0, "numberAvailable": 0, "numberUnavailable": 1}


NO_EXECUTE = [{"key": "x", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda _: None, []),
        (_second_waits, []),  # it may surge
        (_surges(181), []),
        (_surges(60), ["has 2 live pods on the node n1"]),
        (_terminates, []),
        (_an_older_one_failed, []),
        (put("daemons/status/numberReady", 0), ["shows 0 numberReady in its status, and its pods are 1"]),
        (
            put("daemons/status/desiredNumberScheduled", 2),
            ["shows 2 desiredNumberScheduled in its status, and its pods are 1"],
        ),
        *(
            (put(f"daemons/status/{name}", 3), [f"shows 3 {name} in its status, and its pods are {number}"])
            for name, number in (
                ("currentNumberScheduled", 1),
                ("updatedNumberScheduled", 1),
                ("numberMisscheduled", 0),
                ("numberAvailable", 1),
                ("numberUnavailable", 0),
            )
        ),
        (
            put("daemon/metadata/labels/controller-revision-hash", "0"),
            ["shows 1 updatedNumberScheduled in its status, and its pods are 0"],
        ),
        (
            put("daemons/spec/template/spec/hostname", "other"),
            ["has another template than its latest revision, agent-1"],
        ),
        (put("daemons/metadata/generation", 2), ["has a status of generation 1 only"]),
        (_another_node, ["has no live pod on the node n2"]),
        (_second, ["has 2 live pods on the node n1"]),
        (
            put("node/spec/taints", NO_EXECUTE),
            [
                "has a pod on the node n1, which does not fit",
                "shows 1 desiredNumberScheduled in its status, and its pods are 0",
                "shows 1 currentNumberScheduled in its status, and its pods are 0",
                "shows 1 numberReady in its status, and its pods are 0",
                "shows 0 numberMisscheduled in its status, and its pods are 1",
                "shows 1 updatedNumberScheduled in its status, and its pods are 0",
                "shows 1 numberAvailable in its status, and its pods are 0",
            ],
        ),
    ],
)
def test_daemon_sets(change: Change, expected: list[str]) -> None:
    found = list(dict.fromkeys(str(each) for each in findings(state(_with_daemons(change)))))
    assert found == [f"{AGENT} {each}" for each in expected]


def test_a_second_pod_that_is_to_become_available_is_due_later() -> None:
    [found] = findings(state(_with_daemons(_surges(180))))
    assert (found.sentence, found.due) == ("has 2 live pods on the node n1", NOW + 300)


def test_without_controllers_nothing_is_asked() -> None:
    manifests = _with_daemons(_another_node)
    assert findings(state(manifests, running=frozenset({"apiserver", "scheduler", "kubelet"}))) == []


def test_a_quota_alone_is_no_reason() -> None:
    """The API server is asked, and the quota may have room for the pod."""

    def change(manifests: Manifests) -> None:
        _another_node(manifests)
        manifests["limits"] = manifest("ResourceQuota", "limits", namespace="kube-system", spec={})

    found = [each.sentence for each in findings(state(_with_daemons(change)))]
    assert "has no live pod on the node n2" in found


def test_a_pod_that_is_refused_is_not_lacked() -> None:
    lacks = state(_with_daemons(_another_node))
    assert findings(replace(lacks, refusals=frozenset({"DaemonSet-agent"}))) == []
    assert findings(replace(lacks, refusals=frozenset({"DaemonSet-other"})))


def test_a_pod_that_stays_is_not_counted_in_place_of_one_that_is_refused() -> None:
    """A NoSchedule taint keeps the pod of its node, and the status counts those of other nodes."""

    def change(manifests: Manifests) -> None:
        _another_node(manifests)
        put("node/spec/taints", [{"key": "x", "effect": "NoSchedule"}])(manifests)
        wanted = {"desiredNumberScheduled": 1, "numberMisscheduled": 1, "numberUnavailable": 1}
        manifests["daemons"]["status"] = {"observedGeneration": 1, **wanted}

    cluster = state(_with_daemons(change))
    assert [each.metadata.name for each in lacking(cluster)] == ["agent"]
    assert findings(replace(cluster, refusals=frozenset({"DaemonSet-agent"}))) == []


def test_pods_that_have_been_ready_for_long_enough_are_available() -> None:
    def change(manifests: Manifests) -> None:
        manifests["daemons"]["spec"]["minReadySeconds"] = 180
        manifests["daemon"]["status"]["conditions"][1]["lastTransitionTime"] = rfc3339(NOW - 60)
        manifests["daemons"]["status"] |= {"numberAvailable": 0, "numberUnavailable": 1}

    assert [(each.sentence, each.due) for each in findings(state(_with_daemons(change)))] == [
        ("shows 0 numberAvailable in its status, and its pods are 1", NOW + 300),
        ("shows 1 numberUnavailable in its status, and its pods are 0", NOW + 300),
    ]
