"""Changes that reach a kubelet together with the result of its own status write."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.kubelet.e2e.support import KUBELET, Lab, condition, is_ready, lab, pod
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

GATE = "example.com/gate"


async def _written(here: Lab, name: str) -> core.Pod:
    """The pod once the kubelet's status is in the API server, read without a watch."""
    seen = await eventually(
        lambda: here.get(name), lambda pod: pod is not None and pod.status.phase == "Running"
    )
    assert seen is not None
    return seen


async def _change_before_the_status_is_written(here: Lab, change: str) -> core.Pod:
    """Make a change that no watch shows before the kubelet's status patch of the same pod is written."""
    here.failpoint("kubelet.status.before", "pause")
    made = pod("a", {"cpu": "1"})
    if change == "gate":
        made.spec.readinessGates.add(conditionType=GATE)
    await here.create(made)
    await here.waits_at("kubelet.status.before")
    here.failpoint("apiserver.watch.send", "pause", process="apiserver")
    if change == "deletion":
        await here.client.delete(kinds.POD, "a", "default", grace_period_seconds=30)
    else:
        body = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
        await here.client.patch(kinds.POD, "a", "default", body, subresource="status")
    here.failpoint("kubelet.status.before", "off")
    return await _written(here, "a")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["deletion", "gate"])
async def test_a_change_between_the_kubelets_read_and_its_write_is_acted_on(
    cluster: Cluster, change: str
) -> None:
    async with lab(cluster) as here:
        seen = await _change_before_the_status_is_written(here, change)
        assert seen.metadata.HasField("deletionTimestamp") == (change == "deletion")
        cluster.kill("apiserver")
        await cluster.start("apiserver")
        if change == "deletion":
            await here.gone("a")
        else:
            ready = await here.pod("a", is_ready)
            assert condition(ready, GATE) is not None
        assert cluster.processes[KUBELET].poll() is None, "the kubelet was not restarted"
