"""Kubernetes JSON: the same objects, and their own bytes, in both directions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire import codec, envelope
from nominee.machinery.wire.files.manifests import parse_manifests
from nominee.machinery.wire.values import scalars

GOLDEN = Path(__file__).parents[1] / "golden"
VALUES = [
    value
    for value in json.loads((GOLDEN / "etcd_values.json").read_text())
    if value["enc"] == "protobuf" and kinds.by_kind(*value["gvk"].rsplit("/", 1))
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value["key"])
def test_stored_bytes_survive_the_way_through_json(value: dict[str, str]) -> None:
    kind = kinds.by_kind(*value["gvk"].rsplit("/", 1))
    assert kind is not None
    data = bytes.fromhex(value["hex"])
    as_json = json.loads(json.dumps(codec.to_json(envelope.decode(kind, data))))
    assert (as_json["apiVersion"], as_json["kind"]) == (kind.api_version, kind.kind)
    assert envelope.encode(codec.from_json(kind.message, as_json, strict=True)) == data


def _created_objects() -> list[dict[str, Any]]:
    """Objects as the real API server answered them (api_table.jsonl holds them live)."""
    lines = [json.loads(line) for line in (GOLDEN / "api_table.jsonl").read_text().splitlines()]
    # Times of the run are masked in the recording.
    moment = '"2026-11-21T02:31:06Z"'
    masked = [
        json.loads(json.dumps(line).replace('"<set>"', moment).replace('"<now>"', moment)) for line in lines
    ]
    objects = [line["object"] for line in masked if "object" in line]
    return [o for o in objects if kinds.by_kind(o["apiVersion"], o["kind"])]


@pytest.mark.parametrize("obj", _created_objects(), ids=lambda o: f"{o['kind']}-{o['metadata']['name']}")
def test_real_json_survives_the_way_through_messages(obj: dict[str, Any]) -> None:
    kind = kinds.by_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None
    assert codec.to_json(codec.from_json(kind.message, obj, strict=True)) == obj


def test_empties_are_written_as_go_writes_them() -> None:
    pod = core.Pod()
    pod.metadata.name = "p"
    pod.spec.containers.add(name="c")
    pod.status.conditions.add(type="Ready", status="True")
    assert codec.to_json(pod) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
            ]
        },
    }


def test_a_pointer_to_zero_is_not_an_unset_pointer() -> None:
    pod = codec.from_json(core.Pod, {"spec": {"terminationGracePeriodSeconds": 0, "containers": []}})
    assert pod.spec.HasField("terminationGracePeriodSeconds")
    assert codec.to_json(pod)["spec"] == {"terminationGracePeriodSeconds": 0, "containers": None}


@pytest.mark.parametrize(
    ("data", "path", "text"),
    [
        ({"spec": {"containers": {}}}, "spec.containers", "expected an array, got object"),
        ({"spec": {"containers": [{"name": 1}]}}, "spec.containers[0].name", "expected a string, got number"),
        ({"spec": {"priority": 1 << 40}}, "spec.priority", "does not fit into int32"),
        ({"spec": {"priority": 1.5}}, "spec.priority", "expected an integer"),
        ({"metadata": "x"}, "metadata", "expected an object, got string"),
        ({"spec": {"nodeNam": "x"}}, "spec.nodeNam", "unknown field"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp", "cannot parse"),
        (
            {"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}},
            "spec.containers[0].resources.requests.cpu",
            "quantities must match",
        ),
    ],
)
def test_bad_json_names_its_field(data: dict[str, Any], path: str, text: str) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.from_json(core.Pod, data, strict=True)
    assert caught.value.path == path
    assert text in caught.value.message


def test_unknown_fields_are_dropped_and_reported() -> None:
    unknown: list[str] = []
    pod = codec.from_json(core.Pod, {"spec": {"a": 1}, "b": {}}, unknown_fields=unknown)
    assert unknown == ["spec.a", "b"]
    assert pod == codec.from_json(core.Pod, {"spec": {}})


@given(st.integers(-62135596800, 253402300799), st.integers(0, 999_999))
def test_micro_times_round_trip(seconds: int, micros: int) -> None:
    text = scalars.format_time(seconds, micros * 1000, micro=True)
    assert scalars.parse_time(text) == (seconds, micros * 1000)


@given(st.integers(-(1 << 62), 1 << 62))
def test_durations_round_trip(nanoseconds: int) -> None:
    assert scalars.parse_duration(scalars.format_duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, f'invalid duration "{text}"') for text in ("", "s", "--1s", "1s.", "2562048h", ".h")),
        ("1", 'missing unit in duration "1"'),
        ("1s5", 'missing unit in duration "1s5"'),
        ("1.2.3s", 'missing unit in duration "1.2.3s"'),
        ("1x", 'unknown unit "x" in duration "1x"'),
        ("1h 2m", 'unknown unit "h " in duration "1h 2m"'),
        ("1é", r'unknown unit "\xc3\xa9" in duration "1\xc3\xa9"'),
    ],
)
def test_other_durations_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'time: {problem}')}$"):
        scalars.parse_duration(text)


def test_manifests_expand_lists_and_keep_times_as_text() -> None:
    pods = parse_manifests(
        """
apiVersion: v1
kind: Pod
metadata: {name: a, creationTimestamp: 2026-11-21T02:31:06Z}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n}}
---
"""
    )
    assert [type(o).__name__ for o in pods] == ["Pod", "Node"]
    assert isinstance(pods[0], core.Pod)
    assert pods[0].metadata.creationTimestamp == meta.Time(seconds=1795228266, nanos=0)


def test_manifests_say_what_is_unknown() -> None:
    with pytest.raises(codec.DecodeError, match=r'document 1: no matches for kind "Pud" in version "v1"'):
        parse_manifests("{apiVersion: v1, kind: Pud}")
