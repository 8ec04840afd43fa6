"""Applies and updates of objects as functions: who owns what, and what becomes of the object."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.apiserver.managed_fields.manager import Who, apply, track_create, track_update
from nominee.apiserver.registry.writes import tracking
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec

KEYS = st.sampled_from("abcdef")
DATA = st.dictionaries(KEYS, st.sampled_from(["1", "2"]), max_size=4)
LABELS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.just("v"), max_size=3)
FINALIZERS = st.lists(st.sampled_from(["ex.com/a", "ex.com/b", "ex.com/c"]), unique=True, max_size=3)


def now(seconds: int = 0) -> meta.Time:
    return meta.Time(seconds=seconds)


def config_map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}
    return made if data is None else {**made, "data": data}


def applied(
    live: Any,
    config: dict[str, Any],
    who: str,
    *,
    force: bool = False,
    kind: Kind[Any] = kinds.CONFIG_MAP,
    subresource: str = "",
    at: int = 0,
) -> Any:
    return apply(tracking.endpoint(kind, subresource), live, config, Who(who, now(at)), force=force)


def updated(live: Any, who: str, change: Any, *, subresource: str = "", at: int = 0) -> Any:
    new = type(live)()
    new.CopyFrom(live)
    change(new)
    track_update(tracking.endpoint(kinds.of(live), subresource), live, new, Who(who, now(at)))
    return new


def created(document: dict[str, Any], who: str = "creator", kind: Kind[Any] = kinds.CONFIG_MAP) -> Any:
    made = codec.from_json(kind.message, document)
    track_create(tracking.endpoint(kind), made, Who(who, now()))
    made.metadata.uid = "u"
    return made


def conflicting(error: StatusError) -> list[str]:
    assert error.details is not None
    return [cause.field for cause in error.details.causes]


def owners(obj: Any) -> dict[str, Any]:
    """Fields by `manager/operation[/subresource]`."""
    return {
        "/".join(filter(None, (entry.manager, entry.operation, entry.subresource))): json.loads(
            entry.fieldsV1.Raw
        )
        for entry in obj.metadata.managedFields
    }


# Properties.


def configuration(data: Any, labels: Any, finalizers: Any) -> dict[str, Any]:
    """Without empty maps and lists: an empty map is a value of its own, which others may own."""
    metadata = {"labels": labels, "finalizers": finalizers}
    return config_map(data or None, **{name: value for name, value in metadata.items() if value})


CONFIGS = st.builds(configuration, DATA, LABELS, FINALIZERS)


def data_of(config: dict[str, Any]) -> dict[str, str]:
    return dict(config.get("data", {}))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(CONFIGS, CONFIGS)
def test_applying_the_same_again_changes_nothing(before: dict[str, Any], config: dict[str, Any]) -> None:
    live = applied(applied(None, before, "other"), config, "me", force=True)
    again = applied(live, config, "me", at=9)
    assert again == live


@settings(max_examples=40, deadline=None, derandomize=True)
@given(CONFIGS, CONFIGS)
def test_appliers_of_different_fields_never_conflict(one: dict[str, Any], other: dict[str, Any]) -> None:
    theirs = configuration(
        {key: value for key, value in data_of(other).items() if key not in data_of(one)},
        {
            key: "v"
            for key in other["metadata"].get("labels", {})
            if key not in one["metadata"].get("labels", {})
        },
        other["metadata"].get("finalizers"),
    )
    live = applied(applied(None, one, "me"), theirs, "they")
    # Whatever each takes back, the other's stays.
    alone = applied(live, config_map(), "me")
    assert dict(alone.data) == data_of(theirs)
    assert set(alone.metadata.finalizers) == set(theirs["metadata"].get("finalizers", ()))
    assert applied(alone, theirs, "they") == alone


@settings(max_examples=40, deadline=None, derandomize=True)
@given(CONFIGS, CONFIGS)
def test_a_forced_field_has_one_owner(one: dict[str, Any], other: dict[str, Any]) -> None:
    live = applied(applied(None, one, "me"), other, "they", force=True)
    for key, value in data_of(other).items():
        assert live.data[key] == value
        if data_of(one).get(key, value) != value:
            assert f"f:{key}" not in owners(live).get("me/Apply", {}).get("f:data", {})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(CONFIGS, CONFIGS)
def test_an_apply_removes_only_fields_without_another_owner(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    live = created(one)
    both = applied(live, other, "me", force=True)
    left = applied(both, config_map(), "me")
    for key, value in data_of(one).items():
        if data_of(other).get(key, value) == value:
            assert left.data[key] == value
        else:
            assert key not in left.data
    assert set(one["metadata"].get("finalizers", ())) <= set(left.metadata.finalizers)


# Examples that the recorded answers lack.


def node(*names: str) -> dict[str, Any]:
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    policy = {"disableResizePreemption": list(names)}
    return {**document, "spec": {"podPreemptionPolicy": policy}} if names else document


def blocked(obj: Any) -> list[str]:
    return list(obj.spec.podPreemptionPolicy.disableResizePreemption)


def test_owners_of_a_set_add_and_remove_their_own_entries_only() -> None:
    """KEP-5836, `disableResizePreemption`: each owner of a reason applies just that."""
    live = created({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, kind=kinds.NODE)
    live = applied(live, node("ex.com/upgrade"), "upgrader", kind=kinds.NODE)
    live = applied(live, node("ex.com/repair", "ex.com/audit"), "repairer", kind=kinds.NODE)
    assert blocked(live) == ["ex.com/upgrade", "ex.com/repair", "ex.com/audit"]
    live = applied(live, node("ex.com/audit"), "repairer", kind=kinds.NODE)
    assert blocked(live) == ["ex.com/upgrade", "ex.com/audit"]
    shared = applied(live, node("ex.com/upgrade", "ex.com/audit"), "repairer", kind=kinds.NODE)
    assert blocked(applied(shared, node(), "upgrader", kind=kinds.NODE)) == ["ex.com/upgrade", "ex.com/audit"]
    live = applied(live, node(), "repairer", kind=kinds.NODE)
    assert blocked(live) == ["ex.com/upgrade"]
    assert list(owners(live)) == ["upgrader/Apply"]
    assert blocked(applied(live, node(), "upgrader", kind=kinds.NODE)) == []


def test_ports_are_known_by_number_and_defaulted_protocol() -> None:
    def pod(*ports: dict[str, Any]) -> dict[str, Any]:
        containers = [{"name": "c", "image": "i", "ports": list(ports)}]
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": containers},
        }  # fmt: skip

    live = applied(None, pod({"containerPort": 53, "protocol": "UDP"}), "dns", kind=kinds.POD)
    live = applied(live, pod({"containerPort": 53, "name": "tcp"}), "other", kind=kinds.POD)
    assert [(port.containerPort, port.protocol) for port in live.spec.containers[0].ports] == [
        (53, "UDP"), (53, ""),
    ]  # fmt: skip
    twice = pod({"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"})
    with pytest.raises(StatusError) as caught:
        applied(live, twice, "other", kind=kinds.POD)
    assert '.ports: duplicate entries for key [containerPort=80,protocol="TCP"]' in caught.value.message


def test_what_was_there_before_the_first_apply_has_an_owner() -> None:
    live = codec.from_json(kinds.CONFIG_MAP.message, config_map({"a": "1"}))
    live.metadata.uid = "u"
    with pytest.raises(StatusError) as caught:
        applied(live, config_map({"a": "2"}), "me")
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    made = applied(live, config_map({"b": "2"}), "me")
    assert owners(made) == {
        "me/Apply": {"f:data": {"f:b": {}}},
        "before-first-apply/Update": {"f:data": {".": {}, "f:a": {}}},
    }


def test_an_update_of_what_is_not_tracked_tracks_nothing() -> None:
    live = codec.from_json(kinds.CONFIG_MAP.message, config_map({"a": "1"}))
    assert not updated(live, "u", lambda new: new.data.update(a="2")).metadata.managedFields


def test_of_many_updaters_the_oldest_become_one() -> None:
    live = created(config_map({"a": "0"}))
    for number in range(14):
        live = updated(
            live, f"u{number:02}", lambda new, n=number: new.data.update({f"k{n}": "v"}), at=number
        )
    names = [entry.manager for entry in live.metadata.managedFields]
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    assert set(names[1:]) == {f"u{number:02}" for number in range(5, 14)}
    merged = owners(live)["ancient-changes/Update"]["f:data"]
    assert set(merged) == {".", "f:a", *(f"f:k{number}" for number in range(5))}
    assert live.metadata.managedFields[0].time.seconds == 4


def test_times_change_with_fields_only() -> None:
    live = applied(None, config_map({"a": "1"}), "me", at=1)
    assert applied(live, config_map({"a": "1"}), "me", at=2) == live
    other = applied(live, config_map({"a": "1"}), "they", at=3)
    assert [entry.time.seconds for entry in other.metadata.managedFields] == [0, 1]
    changed = applied(other, config_map({"b": "1"}), "they", at=4)
    assert {entry.manager: entry.time.seconds for entry in changed.metadata.managedFields} == {
        "me": 1, "they": 4,
    }  # fmt: skip


def test_status_is_nobodys_by_the_main_resource_and_the_other_way_round() -> None:
    live = created({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, kind=kinds.NODE)
    document = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "1"}},
    }  # fmt: skip
    assert owners(applied(live, document, "m", kind=kinds.NODE)) == {
        "m/Apply": {"f:spec": {"f:unschedulable": {}}}
    }
    by_status = applied(live, document, "m", kind=kinds.NODE, subresource="status")
    assert owners(by_status) == {"m/Apply/status": {"f:status": {"f:capacity": {"f:cpu": {}}}}}


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([{}], {}),
        ([{"manager": "m", "operation": "Apply", "apiVersion": "v1"}], "as before"),
        ([{"manager": "m", "operation": "Bogus", "apiVersion": "v1", "fieldsType": "FieldsV1"}], "as before"),
        ([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
           "fieldsV1": {"f:data": {"f:a": {}}}}], {"m/Apply": {"f:data": {"f:a": {}}}}),
    ],
)  # fmt: skip
def test_entries_that_a_user_writes(entries: list[Any], kept: Any) -> None:
    live = created(config_map({"a": "1"}))

    def write(new: Any) -> None:
        new.metadata.ClearField("managedFields")
        new.metadata.managedFields.extend(
            codec.from_json(meta.ObjectMeta, {"managedFields": entries}).managedFields
        )

    changed = updated(live, "u", write)
    assert owners(changed) == (owners(live) if kept == "as before" else kept)


@pytest.mark.parametrize(
    ("config", "code", "text"),
    [
        ({"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": "a/b/c", "kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": "a/v1", "kind": "Other"}, 400, "invalid object type: a/v1, Kind=Other"),
        (config_map(managedFields=[]), 400, "metadata.managedFields must be nil"),
        (config_map(labels={"a": 1}), 500, "failed to create typed patch object (/x; /v1, Kind=ConfigMap):"
         " .metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}"),
        (config_map(generation="1"), 500, "failed to create typed patch object (/x; /v1, Kind=ConfigMap):"
         " .metadata.generation: expected numeric (int or float), got string"),
        ({**config_map(), "immutable": "yes"}, 500, "failed to create typed patch object"
         " (/x; /v1, Kind=ConfigMap): .immutable: expected boolean, got &{yes}"),
        (config_map(finalizers="a"), 500, "failed to create typed patch object (/x; /v1, Kind=ConfigMap):"
         " .metadata.finalizers: expected list, got &{a}"),
        (config_map(finalizers=[None]), 500, "failed to create typed patch object (/x; /v1, Kind=ConfigMap):"
         " .metadata.finalizers: element 0: associative list without keys has an element that's an explicit"
         " null"),
        (config_map(ownerReferences=["a"]), 500, "failed to create typed patch object"
         " (/x; /v1, Kind=ConfigMap): .metadata.ownerReferences: element 0: associative list with keys may"
         " not have non-map elements"),
    ],
)  # fmt: skip
def test_configurations_that_are_refused(config: dict[str, Any], code: int, text: str) -> None:
    with pytest.raises(StatusError) as caught:
        applied(None, config, "m")
    assert (caught.value.code, caught.value.message) == (code, text)


def test_an_empty_map_is_a_value_with_an_owner() -> None:
    """As measured: an applier of `data: {}` is asked before the first entry comes."""
    live = applied(None, config_map({}), "one")
    with pytest.raises(StatusError) as caught:
        applied(live, config_map({}), "two")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data'


def test_a_list_in_one_piece_is_owned_in_one_piece() -> None:
    def pod(*keys: str) -> dict[str, Any]:
        spec = {"tolerations": [{"key": key, "operator": "Exists"} for key in keys]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}

    live = applied(None, pod("a"), "one", kind=kinds.POD)
    with pytest.raises(StatusError) as caught:
        applied(live, pod("b"), "two", kind=kinds.POD)
    assert conflicting(caught.value) == [".spec.tolerations"]


ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    last = config_map({"a": "1", "b": "1"}, annotations={})
    live = created(config_map({"a": "1", "b": "2"}, annotations={ANNOTATION: json.dumps(last)}), "kubectl-cs")
    new = applied(live, config_map({"a": "2"}), "kubectl")
    assert new.data["a"] == "2"
    assert json.loads(new.metadata.annotations[ANNOTATION]) == config_map({"a": "2"})
    with pytest.raises(StatusError) as caught:
        applied(live, config_map({"a": "2", "b": "3"}), "kubectl")
    assert conflicting(caught.value) == [".data.b"]
    with pytest.raises(StatusError):
        applied(live, config_map({"a": "2"}), "another")
