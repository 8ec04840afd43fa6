"""The usage that a kubelet serves."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet.node.summary import summary
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.kubelet.runtime import sandbox as runtime
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec


def _pod(**annotations: str) -> core.Pod:
    return codec.from_json(
        core.Pod,
        {
            "metadata": {
                "name": "p", "namespace": "default", "uid": "u",
                "annotations": {f"nominee.dev/{k.replace('_', '-')}": v for k, v in annotations.items()},
            },
            "spec": {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": [{"name": "i"}]},
        },
    )  # fmt: skip


RESOURCES = PodResources(
    (
        (
            "c",
            Requirements.from_json({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}}),
        ),
        ("d", Requirements.from_json({})),
        ("i", Requirements.from_json({"requests": {"cpu": "3"}})),
    )
)


@pytest.mark.parametrize(
    ("annotations", "cpu", "memory"),
    [
        ({}, [100, 0], [64 << 20, 0]),
        ({"cpu_usage": "250m", "memory_usage": "1Ki"}, [250, 250], [1024, 1024]),
        ({"cpu_usage": "9"}, [1000, 9000], [64 << 20, 0]),  # no more than the limit
        ({"cpu_usage": "much"}, [100, 0], [64 << 20, 0]),
        ({"cpu_usage": "-1"}, [0, 0], [64 << 20, 0]),
    ],
)
def test_usage_of_running_containers(annotations: dict[str, str], cpu: list[int], memory: list[int]) -> None:
    pod = _pod(**annotations)
    sandbox = runtime.start(runtime.prepare(pod, now=0.0), RESOURCES, ip="10.0.0.1", now=0.0)
    found: Any = summary("n1", [(pod, sandbox)], 0.0)
    (row,) = found["pods"]
    assert row["podRef"] == {"name": "p", "namespace": "default", "uid": "u"}
    assert [each["name"] for each in row["containers"]] == ["c", "d"]
    assert [each["cpu"]["usageNanoCores"] // 1_000_000 for each in row["containers"]] == cpu
    assert [each["memory"]["workingSetBytes"] for each in row["containers"]] == memory
    assert found["node"]["nodeName"] == "n1"
    assert found["node"]["cpu"]["usageNanoCores"] == sum(cpu) * 1_000_000
    ended = runtime.stop(sandbox, now=1.0)
    assert summary("n1", [(pod, ended)], 0.0)["pods"] == []
