"""The core of the cloud: increases, deletions, emulated failures, persistence, and its file of groups."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nominee.autoscaler.cloud.node_groups import Failures, NodeGroup, NodeGroupError, load, parse
from nominee.autoscaler.cloud.state import CloudError, CloudState, InstanceState
from nominee.autoscaler.cloud.state_file import StateFile, StateFileError
from nominee.machinery.api.pb import core

NOW = 1000.0
GROUP = NodeGroup(name="g", min=1, max=3, target=1, template=core.Node(), provisioning_delay=2.0)


def begun(group: NodeGroup = GROUP) -> CloudState:
    state = CloudState([group])
    state.begin(NOW)
    return state


def states(state: CloudState) -> dict[str, str]:
    return {name: instance.state.value for name, instance in state.instances.items()}


def test_instances_run_after_the_provisioning_delay_and_not_before() -> None:
    state = begun()
    assert state.next_due(InstanceState.CREATING) == NOW + 2
    assert not state.advance(NOW + 1.9)
    assert states(state) == {"g-1": "creating"}
    assert state.advance(NOW + 2)
    assert states(state) == {"g-1": "running"}
    assert state.next_due(InstanceState.CREATING) is None


def test_an_increase_above_the_maximum_is_refused_and_changes_nothing() -> None:
    state = begun()
    state.increase("g", 2, NOW)
    with pytest.raises(CloudError, match=r"too large, desired: 4, max: 3") as refused:
        state.increase("g", 1, NOW)
    assert refused.value.code == "FAILED_PRECONDITION"
    assert state.target("g") == 3
    assert len(state.instances) == 3


@pytest.mark.parametrize("delta", [0, -1])
def test_an_increase_by_zero_or_less_is_refused(delta: int) -> None:
    with pytest.raises(CloudError):
        begun().increase("g", delta, NOW)


def test_a_deletion_decreases_the_target_once_also_below_the_minimum() -> None:
    state = begun()
    state.advance(NOW + 2)
    state.delete("g", ["g-1"], NOW + 3)
    state.delete("g", ["g-1", "g-1"], NOW + 4)
    assert state.target("g") == 0
    assert [i.id for i in state.deleted(NOW + 3)] == ["g-1"]
    state.remove("g-1")
    assert state.instances == {}


def test_a_deletion_is_all_or_none() -> None:
    state = begun()
    with pytest.raises(CloudError, match="instance g-9 does not belong to node group g"):
        state.delete("g", ["g-1", "g-9"], NOW)
    assert (state.target("g"), states(state)) == (1, {"g-1": "creating"})


def test_a_deletion_takes_its_delay() -> None:
    state = begun(replace(GROUP, deletion_delay=5.0))
    state.delete("g", ["g-1"], NOW)
    assert state.deleted(NOW + 4.9) == []
    assert len(state.deleted(NOW + 5)) == 1


def test_a_decreased_target_cancels_requests_but_keeps_running_instances() -> None:
    state = begun()
    state.advance(NOW + 2)
    state.increase("g", 2, NOW + 3)
    state.decrease_target("g", -1)
    assert states(state) == {"g-1": "running", "g-2": "creating"}
    with pytest.raises(CloudError, match="attempt to delete existing nodes"):
        state.decrease_target("g", -2)
    assert state.target("g") == 2


def test_a_name_is_not_reused() -> None:
    state = begun()
    state.delete("g", ["g-1"], NOW)
    state.remove("g-1")
    state.increase("g", 1, NOW)
    assert list(state.instances) == ["g-2"]


def test_emulated_failures() -> None:
    state = begun(replace(GROUP, target=0, failures=Failures(increase=1, provisioning=1, stuck=1)))
    with pytest.raises(CloudError) as refused:
        state.increase("g", 3, NOW)
    assert refused.value.code == "RESOURCE_EXHAUSTED"
    assert state.target("g") == 0
    state.increase("g", 3, NOW)
    state.advance(NOW + 1000)
    assert states(state) == {"g-1": "creating", "g-2": "creating", "g-3": "running"}
    assert [i.error_code for i in state.instances.values()] == ["OUT_OF_STOCK", "", ""]


@pytest.mark.parametrize(
    ("minimum", "refreshes", "failed"),
    [
        (2, 1, 1),  # deleted at the minimum
        (1, 1, 0),  # above it
        (1, 2, 1),  # above it, and late: the removal of a node may have begun
    ],
)
def test_failed_instances_explain_a_size_below_the_minimum(minimum: int, refreshes: int, failed: int) -> None:
    failures = Failures(provisioning=1)
    state = begun(replace(GROUP, min=minimum, target=2, failures=failures))
    for _ in range(refreshes):
        state.refresh()
    assert state.summary()["g"]["failed"] == 0
    state.delete("g", ["g-1"], NOW)
    assert state.summary()["g"]["failed"] == failed
    state.delete("g", ["g-1", "g-2"], NOW)
    assert state.summary()["g"]["failed"] == failed
    state.increase("g", 1, NOW)
    assert state.summary()["g"]["failed"] == 0


def test_the_largest_size_of_a_group_stays() -> None:
    state = begun(replace(GROUP, min=2, target=1))
    assert state.summary()["g"]["largest"] == 1
    state.increase("g", 2, NOW)
    state.delete("g", ["g-1", "g-2"], NOW)
    assert state.summary()["g"] | {"target": 1, "largest": 3} == state.summary()["g"]


def test_a_cancelled_request_that_failed_explains_a_size_below_the_minimum() -> None:
    state = begun(replace(GROUP, min=2, target=2, failures=Failures(provisioning=2)))
    state.decrease_target("g", -1)
    assert state.summary()["g"]["failed"] == 1


def test_the_state_is_restored_from_json() -> None:
    state = begun()
    state.increase("g", 2, NOW)
    state.advance(NOW + 2)
    state.delete("g", ["g-2"], NOW + 3)
    other = CloudState([GROUP])
    other.restore(json.loads(json.dumps(state.to_document())))
    other.begin(NOW + 4)
    assert (other.instances, other.sizes) == (state.instances, state.sizes)


def test_instances_of_a_removed_group_are_deleted() -> None:
    state = begun()
    other = CloudState([])
    other.restore(state.to_document())
    other.begin(NOW)
    assert other.sizes == {}
    assert [i.state for i in other.instances.values()] == [InstanceState.DELETING]


def test_an_invalid_state_file_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    assert file.load(begun()) is False
    file.save(begun())
    assert file.load(CloudState([GROUP])) is True
    file.path.write_text('{"groups": {}', encoding="utf-8")
    with pytest.raises(StateFileError, match="remove it"):
        file.load(begun())


def test_groups_are_read_with_their_templates() -> None:
    (group,) = parse("""
nodeGroups:
- name: big
  max: 5
  provisioningDelay: 1m30s
  template:
    cpu: 4000m
    memory: 1Gi
    resources: {example.com/fpga: 2}
    labels: {tier: a}
    taints: [{key: k, value: v, effect: NoSchedule}]
""")
    assert (group.min, group.max, group.target, group.provisioning_delay) == (0, 5, 0, 90.0)
    assert {n: q.string for n, q in group.template.status.allocatable.items()} == {
        "cpu": "4",
        "memory": "1Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
        "example.com/fpga": "2",
    }
    assert dict(group.template.metadata.labels) == {"tier": "a", "nominee.dev/node-group": "big"}
    assert [t.key for t in group.template.spec.taints] == ["k"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b", "nodeGroups: expected a list"),
        ("nodeGroups: [{name: a, template: {cpu: 1}}]", r"nodeGroups\[0\].template.memory: required"),
        ("nodeGroups: [{name: a, template: {cpu: x, memory: 1}}]", r"template.cpu: quantities must"),
        (
            "nodeGroups: [{name: a, template: {cpu: 1, memory: 1, taints: 5}}]",
            r"nodeGroups\[0\].template.taints: expected a list",
        ),
        (
            "nodeGroups: [{name: a, failures: {errorClass: [x]}, template: {cpu: 1, memory: 1}}]",
            "failures.errorClass: expected one of OutOfResources, Other",
        ),
        ("nodeGroups: [{name: a, maxx: 1}]", r"nodeGroups\[0\].maxx: unknown"),
        ("nodeGroups: [{name: a, min: 2, max: 1, template: {cpu: 1, memory: 1}}]", "min 2 is above max 1"),
        ("nodeGroups: [{name: a, target: 2, max: 1, template: {cpu: 1, memory: 1}}]", "target 2 is above"),
        (
            "nodeGroups: [{name: a, failures: {errorCode: NO}, template: {cpu: 1, memory: 1}}]",
            r"failures.errorCode: expected a string",
        ),
        (
            "nodeGroups: [{name: a, provisioningDelay: soon, template: {cpu: 1, memory: 1}}]",
            "provisioningDelay: expected a duration",
        ),
    ],
)
def test_an_invalid_file_is_an_error_with_the_field(text: str, problem: str) -> None:
    with pytest.raises(NodeGroupError, match=problem):
        parse(text)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_bytes(b"\xff")
    with pytest.raises(NodeGroupError, match=r"groups\.yaml: not text in UTF-8"):
        load(tmp_path / "groups.yaml")
