"""Annotations that a pod keeps from its creation to its end, and the values that are checked."""

from __future__ import annotations

import pytest

from nominee.apiserver.kinds.core.pods import ephemeral_containers
from nominee.apiserver.kinds.core.pods import (
    status_validation as pod_status,
)
from nominee.apiserver.kinds.core.pods import validation as pods
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec

GATES = Gates("apiserver")
MIRROR = "kubernetes.io/config.mirror"
COST = "controller.kubernetes.io/pod-deletion-cost"
ARMOR = "container.apparmor.security.beta.kubernetes.io/c"


def pod(node: str = "n", **annotations: str) -> core.Pod:
    known = {"mirror": MIRROR, "cost": COST, "armor": ARMOR}
    return codec.from_json(
        core.Pod,
        {
            "metadata": {
                "name": "p",
                "namespace": "d",
                "resourceVersion": "1",
                "annotations": {known.get(key, key): value for key, value in annotations.items()},
            },
            "spec": {
                "nodeName": node,
                "restartPolicy": "Always",
                "dnsPolicy": "ClusterFirst",
                "terminationGracePeriodSeconds": 30,
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "imagePullPolicy": "Always",
                        "terminationMessagePolicy": "File",
                    }
                ],
            },
        },
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            pod(),
            pod(mirror="x"),
            f"metadata.annotations[{MIRROR}]: Forbidden: may not add mirror pod annotation",
        ),
        (
            pod(mirror="x"),
            pod(mirror="y"),
            f"metadata.annotations[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
        ),
        (
            pod(mirror="x"),
            pod(),
            f"metadata.annotations[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
        ),
        (
            pod(),
            pod(armor="localhost/x"),
            f"metadata.annotations[{ARMOR}]: Forbidden: may not add AppArmor annotations",
        ),
        (
            pod(),
            pod(cost="+1"),
            f'metadata.annotations[{COST}]: Invalid value: "+1": must be a 32bit integer',
        ),
    ],
)
def test_no_update_changes_what_a_pod_is(old: core.Pod, new: core.Pod, problem: str) -> None:
    for causes in (
        pods.update(new, old),
        pod_status.update(new, old, GATES),
        # That of static pods comes first.
        [] if MIRROR in old.metadata.annotations else ephemeral_containers.update(new, old, GATES),
    ):
        assert {str(cause) for cause in causes} <= {problem}
    assert problem in {str(cause) for cause in pods.update(new, old)}
    assert problem in {str(cause) for cause in pod_status.update(new, old, GATES)}


def test_other_annotations_change_and_these_may_stay() -> None:
    for old, new in ((pod(x="1"), pod(y="2")), (pod(mirror="x"), pod(mirror="x", y="1"))):
        assert pods.update(new, old) == []
        assert pod_status.update(new, old, GATES) == []


def test_a_mirror_pod_is_on_a_node() -> None:
    assert pods.create(pod(mirror="x")) == []
    assert [str(cause) for cause in pods.create(pod(node="", mirror="x"))] == [
        f'metadata.annotations[{MIRROR}]: Invalid value: "x":'
        " must set spec.nodeName if mirror pod annotation is set"
    ]


@pytest.mark.parametrize("cost", ["0", "-1", "2147483647", "-2147483648"])
def test_a_cost_of_deletion(cost: str) -> None:
    assert pods.create(pod(cost=cost)) == []


@pytest.mark.parametrize("cost", ["", "+1", "01", "2147483648", "-2147483649", "a", "1.5", "-"])
def test_what_is_no_cost_stays_only_where_it_was(cost: str) -> None:
    assert len(pods.create(pod(cost=cost))) == 1
    assert pods.update(pod(cost=cost, x="1"), pod(cost=cost)) == []
