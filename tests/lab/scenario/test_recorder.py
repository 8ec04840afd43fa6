"""What `nominee scenario record` makes of changes of objects and processes."""

from __future__ import annotations

import pytest
import yaml

from nominee.lab.scenario.acting.base import ProcessView
from nominee.lab.scenario.acting.written_fields import is_component
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.record.recorder import Recorder
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.machinery.wire.files.manifests import dump_yaml, load_documents
from nominee.machinery.wire.values.scalars import Json

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


_LINKS = {frozenset({"etcd-0", "etcd-1"}), frozenset({"etcd-0", "etcd-2"}), frozenset({"etcd-1", "etcd-2"})}


def _links(*cut: str) -> dict[frozenset[str], bool]:
    """Return the links of three members; `01` is cut between etcd-0 and etcd-1."""
    found = {frozenset(f"etcd-{number}" for number in pair) for pair in cut}
    return {link: link in found for link in _LINKS}


@pytest.mark.parametrize(
    ("before", "now", "steps"),
    [
        (_links(), _links(), []),
        (_links("01"), _links("01"), []),
        (_links(), _links("01"), [{"component": "etcd-0", "to": "etcd-1", "action": "cut"}]),
        (_links("01"), _links(), [{"component": "etcd-0", "to": "etcd-1", "action": "off"}]),
        # All links of a member are one step.
        (_links(), _links("01", "12"), [{"component": "etcd-1", "action": "cut"}]),
        (_links("02", "12"), _links(), [{"component": "etcd-2", "action": "off"}]),
        (
            _links(),
            _links("01", "02", "12"),
            [
                {"component": "etcd-0", "action": "cut"},
                {"component": "etcd-1", "to": "etcd-2", "action": "cut"},
            ],
        ),
        (
            _links("01"),
            _links("12"),
            [
                {"component": "etcd-1", "to": "etcd-2", "action": "cut"},
                {"component": "etcd-0", "to": "etcd-1", "action": "off"},
            ],
        ),
    ],
)
def test_links_between_etcd_members(
    before: dict[frozenset[str], bool], now: dict[frozenset[str], bool], steps: list[Json]
) -> None:
    recorder = Recorder()
    assert recorder.on_links(before) == []
    assert recorder.on_links(now) == [{"fault": step} for step in steps]
    assert recorder.on_links(now) == []


def test_a_link_whose_members_are_down_is_as_it_was() -> None:
    recorder = Recorder()
    recorder.on_links(_links("01"))
    assert (
        recorder.on_links({link: False for link in _LINKS if link != frozenset({"etcd-0", "etcd-1"})}) == []
    )
    assert recorder.on_links(_links("01")) == []


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


@pytest.mark.parametrize("second", [{}, {"f:spec": {"f:replicas": {}}}])
def test_two_writes_within_a_second_are_both_recorded(second: dict[str, Json]) -> None:
    """Entries of managedFields have the time in seconds: fields and their values show the second write."""
    fields: dict[str, Json] = {"f:metadata": {"f:labels": {"f:app": {}}}}
    entry = {**_MANAGED, "manager": "kubectl", "fieldsV1": fields}
    other = {**_MANAGED, "manager": "kube-controller-manager", "subresource": "status", "fieldsV1": {}}
    before = _pod(metadata={"managedFields": [entry, other]})
    labels = {"labels": {"app": "y"}}
    grown = {**entry, "fieldsV1": {**fields, **second}}
    after = _pod(metadata={"managedFields": [grown, other], **labels})
    assert Recorder().on_object(before, after) == [
        {"patch": {"kind": "Pod", "name": "a", "patch": {"metadata": labels}}}
    ]
    # The component's entry has a field more, the client's a field less: it was the component.
    taken = {**entry, "fieldsV1": {}}
    more = {**other, "fieldsV1": fields}
    assert Recorder().on_object(before, _pod(metadata={"managedFields": [taken, more], **labels})) == []


def test_texts_are_no_variables_and_secrets_have_no_values() -> None:
    data = {"a": "${HOME} $${X}", "${B}": "c"}
    step = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    assert Recorder().on_object(None, step) == [
        {"apply": {**step, "data": {"a": "$${HOME} $$${X}", "$${B}": "c"}}}
    ]
    values = {"p": "aHVudGVyMg=="}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": values}
    assert Recorder().on_object(None, secret) == [{"apply": {**secret, "data": {"p": "e30="}}}]
    more = {**secret, "data": {**values, "q": "b3RoZXI="}}
    assert Recorder().on_object(secret, more) == [
        {"patch": {"kind": "Secret", "name": "s", "patch": {"data": {"q": "e30="}}}}
    ]


def _deleted(document: dict[str, Json], grace: int) -> dict[str, Json]:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:02Z", "deletionGracePeriodSeconds": grace}
    return {**document, "metadata": {**document["metadata"], **metadata}}


def test_a_pod_that_is_deleted_and_created_again() -> None:
    recorder = Recorder()
    old = _pod(spec={**_SPEC, "terminationGracePeriodSeconds": 30, "nodeName": "n1"})
    for step in range(25):  # other deletions in between
        recorder.on_object(_pod(metadata={"name": f"x{step}", "uid": f"x{step}"}), None)
    assert recorder.on_object(old, _deleted(old, 1)) == [
        {"delete": {"kind": "Pod", "name": "a", "gracePeriodSeconds": 1}}
    ]
    for step in range(25):
        recorder.on_object(_pod(metadata={"name": f"y{step}", "uid": f"y{step}"}), None)
    assert recorder.on_object(_deleted(old, 1), None) == []
    new = {**old, "metadata": {**old["metadata"], "uid": "2"}}
    wait, apply = recorder.on_object(None, new)
    assert wait == {"wait": {"object": {"kind": "Pod", "name": "a", "exists": False}}}
    assert list(apply) == ["apply"]
    assert recorder.on_object(new, None) == [
        {"delete": {"kind": "Pod", "name": "a", "gracePeriodSeconds": 0}}
    ]


def _namespace(name: str, **metadata: Json) -> dict[str, Json]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, **metadata}}


def test_what_a_deleted_namespace_had_is_deleted_with_it() -> None:
    recorder = Recorder()
    ending = _namespace("team", deletionTimestamp="2026-01-01T00:00:02Z")
    assert recorder.on_object(_namespace("team"), ending) == [
        {"delete": {"kind": "Namespace", "name": "team"}}
    ]
    assert recorder.on_object(_pod(metadata={"namespace": "team"}), None) == []
    (_, apply) = recorder.on_object(None, _namespace("team"))
    assert apply["apply"]["metadata"] == {"name": "team"}
    assert len(recorder.on_object(_pod(metadata={"namespace": "team"}), None)) == 1


def test_pods_are_evicted_by_a_person_from_a_cordoned_node_only() -> None:
    evicted = {"conditions": [{"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"}]}
    pod = _pod(spec={**_SPEC, "nodeName": "n1"}, status=evicted)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}}
    recorder = Recorder()
    recorder.on_existing(node)
    assert recorder.on_object(pod, _deleted(pod, 30)) == []
    cordoned = {**node, "spec": {"unschedulable": True}}
    assert recorder.on_object(node, cordoned) == [
        {"patch": {"kind": "Node", "name": "n1", "patch": {"spec": {"unschedulable": True}}}}
    ]
    assert list(recorder.on_object(pod, _deleted(pod, 30))[0]) == ["delete"]


def test_taints_of_a_person_are_recorded_until_they_are_removed() -> None:
    def node(*keys: str) -> dict[str, Json]:
        taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
        spec = {"taints": taints} if taints else {}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": spec}

    def patch(taints: Json) -> list[Json]:
        return [{"patch": {"kind": "Node", "name": "n1", "patch": {"spec": {"taints": taints}}}}]

    lost = "node.kubernetes.io/not-ready"
    recorder = Recorder()
    assert recorder.on_object(node(), node("k")) == patch([{"key": "k", "effect": "NoSchedule"}])
    assert recorder.on_object(node("k"), node("k", lost)) == []
    assert recorder.on_object(node("k"), node()) == patch(None)


def test_what_existed_is_created_first_and_namespaces_with_their_account() -> None:
    recorder = Recorder()
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "team"},
    }
    system = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "system-node-critical"},
        "value": 1,
    }
    for existing in (_pod(), account, system, _namespace("default"), _namespace("team")):
        recorder.on_existing(existing)
    recorder.on_object(None, _namespace("later"))
    recorder.on_object(None, {**account, "metadata": {"name": "default", "namespace": "later"}})
    steps = recorder.document("mine", {}, {"default/a": "Running"})["spec"]["steps"]
    assert [list(step)[-1] for step in steps] == ["apply", "wait", "apply", "apply", "wait", "expect"]
    assert [each["metadata"]["name"] for each in steps[0]["apply"]] == ["team"]
    assert steps[1]["wait"]["object"] == {"kind": "ServiceAccount", "name": "default", "namespace": "team"}
    assert [each["metadata"]["name"] for each in steps[2]["apply"]] == ["a"]


def test_pods_of_one_name_in_two_namespaces_are_both_expected() -> None:
    recorder = Recorder()
    recorder.on_object(None, _pod())
    recorder.on_object(None, _pod(metadata={"namespace": "team", "uid": "2"}))
    steps = recorder.document("mine", {}, {"default/a": "Running", "team/a": "Pending"})["spec"]["steps"]
    expected = [step["expect"]["eventually"]["object"] for step in steps if "expect" in step]
    assert [(each.get("namespace"), each["jsonPath"]) for each in expected] == [
        (None, {".status.phase": "Running"}),
        ("team", {".status.phase": "Pending"}),
    ]


def test_steps_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nominee.lab.scenario.record.recorder.STEPS_MAX", 2)
    recorder = Recorder()
    for number in range(5):
        recorder.on_object(None, _pod(metadata={"name": f"p{number}"}))
    assert (len(recorder.steps), recorder.dropped) == (2, 3)


def test_a_start_has_the_version_only_if_it_is_another_one() -> None:
    recorder = Recorder()
    for state, version in (
        ("ready", "1.37"),
        ("down", ""),
        ("ready", "1.37"),
        ("down", ""),
        ("ready", "1.36"),
    ):
        recorder.on_processes([_view(state, emulated_version=version, last_exit="exit code 0")])
    assert [step["start"] for step in recorder.steps if "start" in step] == [
        "scheduler",
        {"component": "scheduler", "emulatedVersion": "1.36"},
    ]


def test_yaml_is_read_as_it_was() -> None:
    data = {
        key: key for key in ("1e3", "null", "012", "0x1", "on", "12:30", "2026-01-01", "é\x07", "~", "1_0")
    }
    assert load_documents(dump_yaml(data)) == [data]
