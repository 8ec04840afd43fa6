"""Mounts whose subPathExpr cannot be used: the container is not created until the pod changes."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet.instructions import RecordContainerEvents
from nominee.kubelet.pods.sub_paths import problems
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from tests.kubelet.executor import Executor, new_pod, node_object

_ANNOTATION = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['sub']"}}}
_LABEL = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}
_SECRET = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def _value(text: str, name: str = "A") -> dict[str, str]:
    return {"name": name, "value": text}


def _pod(expression: str, *env: Any, **more: Any) -> core.Pod:
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": expression}
    document = {"name": "c", "image": "i", "env": list(env), "volumeMounts": [mount], **more}
    pod = new_pod("a", codec.from_json(core.Container, document))
    pod.metadata.labels["app"] = "web"
    return pod


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        (_pod("$(A)", _value("foo")), ""),
        (_pod("logs/$(A)", _value("/foo")), ""),
        (_pod("$(A)", _value("/tmp")), "error SubPath `/tmp` must not be an absolute path"),
        (_pod("$(A)", _value("..")), "unable to provision SubPath `..`: must not contain '..'"),
        (_pod("a/$(B)", _value(".."), _value("$(A)/c", "B")),
         "unable to provision SubPath `a/../c`: must not contain '..'"),
        (_pod("$(A)", _value("..a")), ""),
        (_pod("$$(A)", _value("/tmp")), ""),
        (_pod("$(A)", _LABEL), ""),
        (_pod("$(A)/$(B)", _ANNOTATION), "missing value for A, B"),
        (_pod("$(A)", _value("")), "missing value for A"),
        (_pod("/$(A)", _SECRET), ""),
        (_pod("$(B)", envFrom=[{"secretRef": {"name": "s"}}]), ""),
        (_pod("$(WEB_SERVICE_HOST)"), ""),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_sub_path(pod: core.Pod, problem: str) -> None:
    assert problems(pod) == ({"c": problem} if problem else {})


def test_a_container_with_a_wrong_sub_path_waits_until_the_pod_changes() -> None:
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    here.store(_pod("$(A)", _ANNOTATION))
    here.observe("a")
    here.work()
    status = here.api["a"].status
    waiting = status.containerStatuses[0].state.waiting
    assert status.phase == "Pending"
    assert (waiting.reason, waiting.message) == ("CreateContainerConfigError", "missing value for A")
    here.sync(here.api["a"].metadata.uid)
    failed = [
        (event.type, event.reason, event.note, event.regarding.fieldPath)
        for recorded in here.noted
        if isinstance(recorded, RecordContainerEvents)
        for event in recorded.events
    ]
    assert failed == [("Warning", "Failed", "Error: missing value for A", "spec.containers{c}")]

    changed = core.Pod()
    changed.CopyFrom(here.api["a"])
    changed.metadata.annotations["sub"] = "mypath"
    here.store(changed)
    here.observe("a")
    here.work()
    status = here.api["a"].status
    assert status.phase == "Running"
    assert status.containerStatuses[0].state.HasField("running")
