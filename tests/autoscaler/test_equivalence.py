"""Equivalence groups of pending pods."""

from __future__ import annotations

import pytest

from nominee.autoscaler.planning.scale_up.equivalence import equivalence_groups
from nominee.machinery.api.pb import core


def _pod(name: str, *, volume: str = "", kind: str = "projected", cpu: str = "1") -> core.Pod:
    pod = core.Pod()
    pod.metadata.name = pod.metadata.uid = name
    pod.metadata.ownerReferences.add(kind="ReplicaSet", name="web", uid="web", controller=True)
    containers = [pod.spec.initContainers.add(name="init"), pod.spec.containers.add(name="main")]
    containers[1].resources.requests["cpu"].string = cpu
    for container in containers:
        container.volumeMounts.add(name="data", mountPath="/data")
        if volume:
            container.volumeMounts.add(name=volume, mountPath="/var/run/secrets")
    if volume:
        getattr(pod.spec.volumes.add(name=volume).volumeSource, kind).SetInParent()
    return pod


@pytest.mark.parametrize(
    ("pods", "sizes"),
    [
        pytest.param([_pod("a"), _pod("b")], [2], id="equal"),
        pytest.param(
            [_pod("a", volume="kube-api-access-1"), _pod("b", volume="kube-api-access-2"), _pod("c")],
            [3],
            id="projected volumes and their mounts are ignored",
        ),
        pytest.param(
            [_pod("a", volume="v1", kind="emptyDir"), _pod("b", volume="v2", kind="emptyDir")],
            [1, 1],
            id="other volumes are compared",
        ),
        pytest.param(
            [_pod("a", volume="kube-api-access-1"), _pod("b", volume="kube-api-access-2", cpu="2")],
            [1, 1],
            id="resources are compared",
        ),
    ],
)
def test_pods_are_grouped_by_controller_labels_and_spec(pods: list[core.Pod], sizes: list[int]) -> None:
    before = [core.Pod.FromString(pod.SerializeToString()) for pod in pods]
    groups = equivalence_groups(pods)
    assert sorted((len(group.pods) for group in groups), reverse=True) == sizes
    assert pods == before, "the pods of the watch are not changed"
