"""What `nominee scenario record` makes of changes of objects and processes."""

from __future__ import annotations

import pytest
import yaml

from machinery.wire.scalars import Json
from nominee.scenario.model import Apply
from nominee.scenario.reading import read_text
from nominee.scenario.recorder import ProcessView, Recorder
from nominee.scenario.written_fields import is_component

_CONTAINER: dict[str, Json] = {"name": "c", "image": "i", "resources": {}, "imagePullPolicy": "Always"}
_SPEC: dict[str, Json] = {
    "containers": [_CONTAINER],
    "restartPolicy": "Always",
    "tolerations": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}],
}
_MANAGED = {
    "manager": "kubectl-create",
    "operation": "Update",
    "time": "2026-01-01T00:00:00Z",
    "fieldsV1": {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:image": {}}}},
    },
}


def _pod(**more: Json) -> dict[str, Json]:
    metadata = {
        "name": "a",
        "namespace": "default",
        "uid": "1",
        "labels": {"app": "x"},
        **more.pop("metadata", {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _SPEC, "status": {}, **more}


def test_a_created_object_is_applied_without_defaults() -> None:
    (step,) = Recorder().on_object(None, _pod())
    spec = {"containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "a", "labels": {"app": "x"}}
    assert step == {"apply": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}
    (tracked,) = Recorder().on_object(None, _pod(metadata={"managedFields": [_MANAGED]}))
    assert tracked == step


@pytest.mark.parametrize(
    "document",
    [
        _pod(metadata={"ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}),
        _pod(metadata={"managedFields": [{**_MANAGED, "manager": "kube-controller-manager/v1.37"}]}),
        _pod(metadata={"namespace": "kube-system"}),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "x"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "spec": {}},
    ],
)
def test_objects_of_components_are_not_recorded(document: dict[str, Json]) -> None:
    recorder = Recorder()
    assert recorder.on_object(None, document) == []
    assert recorder.on_object(document, None) == []


def test_changes_by_components_are_not_recorded() -> None:
    recorder = Recorder()
    assert (
        recorder.on_object(_pod(), _pod(spec={**_SPEC, "nodeName": "n"}, status={"phase": "Running"})) == []
    )
    late = {**_MANAGED, "manager": "kube-scheduler", "time": "2026-01-01T00:00:01Z"}
    before = _pod(metadata={"managedFields": [_MANAGED]})
    after = _pod(metadata={"managedFields": [_MANAGED, late]}, spec={**_SPEC, "nodeName": "n"})
    assert recorder.on_object(before, after) == []


def test_a_resize_is_a_patch_of_the_container() -> None:
    container = {**_CONTAINER, "resources": {"requests": {"cpu": "2"}}}
    (step,) = Recorder().on_object(_pod(), _pod(spec={**_SPEC, "containers": [container]}))
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    assert step == {"patch": {"kind": "Pod", "name": "a", "subresource": "resize", "patch": patch}}


def test_a_deletion_is_recorded_once_and_not_for_a_victim() -> None:
    recorder = Recorder()
    terminating = _pod(metadata={"deletionTimestamp": "2026-01-01T00:00:02Z"})
    assert recorder.on_object(_pod(), terminating) == [{"delete": {"kind": "Pod", "name": "a"}}]
    assert recorder.on_object(terminating, None) == []
    victim = _pod(
        metadata={"deletionTimestamp": "2026-01-01T00:00:02Z", "name": "b"},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    )
    assert recorder.on_object(_pod(metadata={"name": "b"}), victim) == []


def _view(state: str = "ready", pid: int = 1, **more: Json) -> ProcessView:
    return ProcessView(name="scheduler", state=state, pid=pid, **more)


@pytest.mark.parametrize(
    ("before", "now", "steps"),
    [
        (_view(), _view(), []),
        (_view(), _view("paused"), [{"pause": "scheduler"}]),
        (_view("paused"), _view(), [{"resume": "scheduler"}]),
        (_view(), _view("down", 0, last_exit="exit code 0"), [{"stop": "scheduler"}]),
        (_view(), _view("down", 0, last_exit="SIGKILL"), [{"kill": "scheduler"}]),
        (_view("down", 0), _view(), [{"start": "scheduler"}]),
        (_view(), _view(pid=2, last_exit="exit code 0"), [{"restart": "scheduler"}]),
        (
            _view(emulated_version="1.37", gates={"SchedulerAsyncPreemption": True}),
            _view(pid=2, emulated_version="1.36", gates={"SchedulerAsyncPreemption": False}),
            [
                {
                    "restart": {
                        "component": "scheduler",
                        "emulatedVersion": "1.36",
                        "featureGates": {"SchedulerAsyncPreemption": False},
                    }
                }
            ],
        ),
        (
            _view(),
            _view(failpoints={"scheduler.bind.before": "pause"}),
            [{"failpoint": {"component": "scheduler", "name": "scheduler.bind.before", "action": "pause"}}],
        ),
        (
            _view(failpoints={"scheduler.bind.before": "pause"}),
            _view(),
            [{"failpoint": {"component": "scheduler", "name": "scheduler.bind.before", "action": "off"}}],
        ),
        # The process crashed at its failpoint, and the supervisor restarted it.
        (_view(failpoints={"scheduler.bind.before": "crash"}), _view(pid=2, last_exit="SIGKILL"), []),
        (
            _view(),
            _view(faults=[("apiserver", "Bind", "*", "cut")]),
            [{"fault": {"component": "scheduler", "to": "apiserver", "method": "Bind", "action": "cut"}}],
        ),
        (
            _view(faults=[("apiserver", "Bind", "*", "cut")]),
            _view(),
            [{"fault": {"component": "scheduler", "to": "apiserver", "method": "Bind", "action": "off"}}],
        ),
    ],
)
def test_changes_of_a_process(before: ProcessView, now: ProcessView, steps: list[Json]) -> None:
    recorder = Recorder()
    assert recorder.on_processes([before]) == []
    assert recorder.on_processes([now]) == steps


def test_the_recording_is_a_scenario() -> None:
    recorder = Recorder()
    recorder.on_object(None, _pod())
    document = recorder.document("mine", {"nodes": 1}, {"default/a": "Running"})
    (scenario,) = read_text(yaml.safe_dump(document), "mine.yaml")
    assert isinstance(scenario.steps[0].action, Apply)
    assert [step.verb for step in scenario.steps] == ["apply", "expect"]


@pytest.mark.parametrize(
    ("manager", "component"),
    [("kubelet-1", True), ("kube-scheduler", True), ("cluster-autoscaler/v1.37", True), ("kubectl", False)],
)
def test_field_managers_of_components(manager: str, component: bool) -> None:
    assert is_component(manager) is component
