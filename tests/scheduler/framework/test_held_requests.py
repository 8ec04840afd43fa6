"""What a pod holds while a resize is pending: allocated and actual, without what it desires (KEP-1287)."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.scheduler.framework.pod_requests import ResourceOptions
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.resizing import pod

POD_LEVEL: dict[str, Any] = {
    "spec": {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "3"}}},
    "status": {
        "containerStatuses": [{"name": "c"}],
        "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "2"}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("found", "counted", "held"),
    [
        (pod("deferred", "2", allocated="500m", deferred=True), 2000, 500),
        (pod("settled", "2"), 2000, 2000),
        (pod("pending", "2", on=""), 2000, 2000),
        (codec.from_json(core.Pod, POD_LEVEL), 3000, 2000),
    ],
    ids=["deferred", "settled", "pending", "pod-level"],
)
def test_what_a_pod_holds(found: core.Pod, counted: int, held: int) -> None:
    info = PodInfo(found)
    assert dict(info.requests) == {0: counted}
    assert dict(info.held_requests) == {0: held}


def test_without_in_place_resize_all_that_is_desired_is_held() -> None:
    info = PodInfo(pod("p", "2", allocated="500m"), ResourceOptions(in_place_resize=False))
    assert dict(info.held_requests) == {0: 2000}
