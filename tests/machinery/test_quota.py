"""What quotas count of an object, and what they require of it."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.resources import quota
from nominee.machinery.wire import codec


def _pod(*containers: dict[str, Any], **more: Any) -> core.Pod:
    rows = [{"name": name, "resources": each} for name, each in zip("abc", containers, strict=False)]
    return codec.from_json(core.Pod, {"metadata": {"name": "p"}, "spec": {"containers": rows}, **more})


@pytest.mark.parametrize(
    ("whole", "missing"),
    [
        ({}, "requests.cpu for: b; requests.memory for: a,b"),
        ({"requests": {"cpu": "1"}}, ""),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, ""),
    ],
)
def test_a_pod_with_resources_of_its_own_need_specify_no_other_ones(
    whole: dict[str, Any], missing: str
) -> None:
    asking = _pod({"requests": {"cpu": "1"}}, {})
    asking.spec.resources.CopyFrom(codec.from_json(core.ResourceRequirements, whole))
    names = ["pods", "requests.cpu", "requests.memory"]
    assert quota.missing_resources(asking, names) == missing
