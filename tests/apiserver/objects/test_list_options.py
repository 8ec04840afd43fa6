"""Field selectors of every kind that has its own, and what is checked first (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nominee.apiserver.fronts.rest.http.messages import Request
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.list_options import check_list, parse_revision, parse_selectors, predicate_of
from nominee.apiserver.objects.requests import ListOptions
from nominee.apiserver.objects.selectable_fields import UnknownFieldLabel
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import batch, core, devices, meta


def values_of(kind: Kind[Any], obj: Any) -> Mapping[str, str]:
    return fields_of(kind).values(obj)


def field_label(kind: Kind[Any], label: str) -> str:
    return fields_of(kind).key_of(label)


META = meta.ObjectMeta(name="x", namespace="ns")


@pytest.mark.parametrize(
    ("kind", "obj", "own"),
    [
        (kinds.SECRET, core.Secret(metadata=META, type="Opaque"), {"type": "Opaque"}),
        (
            kinds.SERVICE,
            core.Service(metadata=META, spec=core.ServiceSpec(clusterIP="10.0.0.1", type="NodePort")),
            {"spec.clusterIP": "10.0.0.1", "spec.type": "NodePort"},
        ),
        (
            kinds.REPLICATION_CONTROLLER,
            core.ReplicationController(metadata=META, status=core.ReplicationControllerStatus(replicas=3)),
            {"status.replicas": "3"},
        ),
        (
            kinds.JOB,
            batch.Job(metadata=META, status=batch.JobStatus(succeeded=2)),
            {"status.successful": "2"},
        ),
    ],
)
def test_fields_beside_the_metadata(kind: Kind[Any], obj: Any, own: dict[str, str]) -> None:
    assert values_of(kind, obj) == own | {"metadata.name": "x", "metadata.namespace": "ns"}
    for label in (*own, "metadata.name", "metadata.namespace"):
        assert field_label(kind, label) == label


def test_resource_slices_are_found_by_node_and_driver() -> None:
    found = devices.ResourceSlice(metadata=meta.ObjectMeta(name="s"))
    found.spec.nodeName, found.spec.driver = "n1", "gpu.example.com"
    assert values_of(kinds.RESOURCE_SLICE, found) == {
        "metadata.name": "s",
        "spec.nodeName": "n1",
        "spec.driver": "gpu.example.com",
    }


@pytest.mark.parametrize(
    ("kind", "label", "said"),
    [
        (kinds.SECRET, "data", "field label not supported: data"),
        (kinds.SERVICE, "status.phase", "field label not supported: status.phase"),
        (kinds.JOB, "status.x", 'field label "status.x" not supported for Job'),
        (
            kinds.RESOURCE_SLICE,
            "metadata.namespace",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace",
        ),
        (
            kinds.DEPLOYMENT,
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            kinds.STATEFUL_SET,
            "status.successful",
            '"status.successful" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_fields_that_a_kind_lacks(kind: Kind[Any], label: str, said: str) -> None:
    with pytest.raises(UnknownFieldLabel) as raised:
        field_label(kind, label)
    assert str(raised.value) == said


def check(options: ListOptions) -> None:
    selectors = parse_selectors(options.label_selector, options.field_selector)
    check_list(options)
    predicate_of(selectors, fields_of(kinds.POD))


def refused(options: ListOptions) -> StatusError:
    with pytest.raises(StatusError) as raised:
        check(options)
    return raised.value


def test_syntax_goes_before_options_and_options_before_fields() -> None:
    both = ListOptions(field_selector="bogus=1", resource_version_match="Exact")
    assert refused(both).code == 422
    assert refused(ListOptions(label_selector="a in (", resource_version_match="Exact")).code == 400
    assert refused(ListOptions(field_selector="bogus=1")).message == "field label not supported: bogus"


def test_all_invalid_options_are_reported_at_once() -> None:
    options = ListOptions(resource_version_match="Exact", send_initial_events=False)
    assert refused(options).message == (
        'ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is '
        "forbidden unless resourceVersion is provided, sendInitialEvents: Forbidden: sendInitialEvents is "
        "forbidden for list]"
    )


def test_what_is_quoted_is_quoted_as_go_does() -> None:
    with pytest.raises(ValueError, match=r'Invalid value: "a\\"b": .*parsing "a\\"b": invalid syntax'):
        parse_revision('a"b')


@pytest.mark.parametrize(
    ("query", "said"),
    [("", False), ("watch=0", False), ("watch=FALSE", False), ("watch=", True), ("watch=maybe", True)],
)
def test_flags_are_true_unless_they_say_no(query: str, said: bool) -> None:
    scope = {"method": "GET", "path": "/api/v1/pods", "query_string": query.encode(), "headers": []}

    async def nothing() -> dict[str, Any]:
        raise AssertionError

    assert Request(scope, nothing).flag("watch") is said
