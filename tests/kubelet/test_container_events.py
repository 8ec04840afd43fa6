"""Events of containers."""

from __future__ import annotations

import pytest

from nominee.kubelet.pod_sync.container_events import restarting, start_events, stopping
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import codec

POD = codec.from_json(
    core.Pod,
    {
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "initContainers": [{"name": "i", "image": "setup"}],
            "containers": [{"name": "c", "image": "pause:3"}],
        },
    },
)


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        (
            Version(1, 36),
            [
                'Container image "pause:3" already present on machine and can be accessed by the pod',
                "Container created",
                "Container started",
            ],
        ),
        (
            Version(1, 34),
            [
                'Container image "pause:3" already present on machine',
                "Created container: c",
                "Started container c",
            ],
        ),
    ],
)
def test_events_of_a_container_that_starts(version: Version, notes: list[str]) -> None:
    recorded = list(start_events(POD, ["c"], version))
    assert [each.reason for each in recorded] == ["Pulled", "Created", "Started"]
    assert [each.note for each in recorded] == notes
    assert {each.regarding.fieldPath for each in recorded} == {"spec.containers{c}"}
    assert {each.regarding.resourceVersion for each in recorded} == {"7"}


def test_events_of_a_container_that_stops() -> None:
    recorded = [*stopping(POD, ["i", "c"]), *restarting(POD, ["c"])]
    assert [(each.reason, each.regarding.fieldPath, each.note) for each in recorded] == [
        ("Killing", "spec.initContainers{i}", "Stopping container i"),
        ("Killing", "spec.containers{c}", "Stopping container c"),
        ("Killing", "spec.containers{c}", "Container c resize requires restart"),
    ]
