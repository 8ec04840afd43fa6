"""Validation and defaults as tables: names, quantities, and what is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.kinds.core.pods import validation as pods
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods import containers
from nominee.apiserver.validation.values import quantities
from nominee.machinery import defaults
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.defaults.pod import pull_policy
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec

GATES = Gates("apiserver")
DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (names.dns_label, ["a", "a-1", "0"], ["", "A", "-a", "a-", "a.b", "a" * 64, "a\n"]),
        (names.dns_subdomain, ["a", "a.b", "a-1.b"], ["", "A", "a..b", ".a", "a_b", "a" * 254]),
        (names.qualified_name, ["a", "A_b.c", "x.io/A"], ["", "/a", "a/", "a/b/c", "X.io/a", "-a", "a" * 64]),
        (names.label_value, ["", "A", "a.b_c-d"], ["-a", "a-", "a b", "a" * 64]),
        (names.config_key, ["a", ".a", "A_b"], ["", ".", "..", "..a", "a/b"]),
    ],
)
def test_names(rule: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if rule(text)] == []
    assert [text for text in bad if not rule(text)] == []


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("img", "Always"),
        ("img:latest", "Always"),
        ("img:1.2", "IfNotPresent"),
        ("reg:5000/img", "Always"),
        ("reg:5000/img:2", "IfNotPresent"),
        (f"img@sha256:{DIGEST}", "IfNotPresent"),
        ("img:latest@sha256:abc", "IfNotPresent"),
        (f"img:latest@sha256:{DIGEST}", "Always"),
    ],
)
def test_the_pull_policy_follows_from_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("given", "stored"), [("1000m", "1"), ("0.5m", "1m"), ("1Gi", "1Gi"), ("1024Mi", "1Gi"), ("1e3", "1e3")]
)
def test_quantities_are_stored_canonical_and_in_whole_thousandths(given: str, stored: str) -> None:
    pod = codec.from_json(
        core.Pod, {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": given}}}]}}
    )
    defaults.apply(kinds.POD, pod, GATES)
    assert pod.spec.containers[0].resources.requests["memory"].string == stored


def test_a_text_that_is_no_quantity_is_a_bad_request() -> None:
    node = core.Node()
    node.status.capacity["cpu"].string = "four"
    with pytest.raises(StatusError) as caught:
        defaults.apply(kinds.NODE, node, GATES)
    assert caught.value.code == 400


def test_pod_level_requests_come_from_containers_and_then_from_limits() -> None:
    pod = codec.from_json(core.Pod, {"spec": {
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "300m"}}},
                       {"name": "b", "resources": {"requests": {"cpu": "200m"}}}],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "i", "resources": {"requests": {"cpu": "550m"}}}]}})  # fmt: skip
    defaults.apply(kinds.POD, pod, GATES)
    requests = pod.spec.resources.requests
    # The init container runs beside the sidecar: 650m, more than the 600m of all that stay.
    assert (requests["cpu"].string, requests["memory"].string) == ("650m", "1Gi")


@pytest.mark.parametrize(
    ("requests", "limits", "problems"),
    [
        ({"cpu": "1"}, {"cpu": "2"}, []),
        ({"cpu": "2"}, {"cpu": "1"}, ["requests"]),
        ({"cpu": "-1"}, {}, ["requests[cpu]"]),
        ({"gpus": "1"}, {}, ["requests[gpus]", "requests[gpus]"]),
        ({"x.io/gpu": "1"}, {"x.io/gpu": "1"}, []),
        ({"x.io/gpu": "1"}, {"x.io/gpu": "2"}, ["requests"]),
        ({"x.io/gpu": "1"}, {}, ["limits"]),
        ({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}, [""]),
    ],
)
def test_requests_and_limits(requests: dict[str, str], limits: dict[str, str], problems: list[str]) -> None:
    found = codec.from_json(core.ResourceRequirements, {"requests": requests, "limits": limits})
    causes = quantities.requirements("r", found.requests, found.limits)
    assert [cause.field.removeprefix("r").removeprefix(".") for cause in causes] == problems


def test_containers_are_unique_across_init_and_regular_ones() -> None:
    spec = codec.from_json(core.PodSpec, {
        "containers": [{"name": "c", "image": "i"}],
        "initContainers": [{"name": "c", "image": "i"}]})  # fmt: skip
    for container in (*spec.containers, *spec.initContainers):
        container.imagePullPolicy, container.terminationMessagePolicy = "Always", "File"
    causes = containers.init_containers(
        "spec.initContainers", spec.initContainers, spec.containers, containers.around(spec, {})
    )
    assert list(causes) == [field.duplicate("spec.initContainers[0].name", "c")]


def gated(**spec: Any) -> core.Pod:
    document = {
        "metadata": {"name": "p", "namespace": "default", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "schedulingGates": [{"name": "g"}], **spec},
    }
    pod = codec.from_json(core.Pod, document)
    defaults.apply(kinds.POD, pod, GATES)
    return pod


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ({}, {"nodeSelector": {"a": "b"}}, True),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "c": "d"}}, True),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "c"}}, False),
        ({"nodeSelector": {"a": "b"}}, {}, False),
        ({}, {"tolerations": [{"key": "k", "operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, {}, False),
        ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 5}, True),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 9}, False),
        ({"terminationGracePeriodSeconds": -1}, {"terminationGracePeriodSeconds": 1}, True),
        ({"terminationGracePeriodSeconds": 5}, {"terminationGracePeriodSeconds": 1}, False),
    ],
)
def test_what_may_change_in_a_gated_pod(old: dict[str, Any], new: dict[str, Any], allowed: bool) -> None:
    causes = pods.update(gated(**new), gated(**old))
    assert (causes == []) == allowed, causes
