"""A kubelet whose watch of nodes lags behind the API server."""

from __future__ import annotations

import json

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.kubelet.e2e.support import KUBELET, Lab, condition, in_force, is_ready, lab, pod
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

SSD = {"disk": "ssd"}


def fault(here: Lab, action: str, method: str) -> None:
    body = json.dumps({"to": "apiserver", "method": method, "kind": "nodes", "action": action})
    answer = here.cluster.ask(KUBELET, "/faults", method="PUT", body=body)
    assert answer.status == 200, answer.text


async def label(here: Lab, value: str | None) -> int:
    """Label the node, or remove the label; return the revision."""
    change = {"metadata": {"labels": {"disk": value}}}
    return int((await here.client.patch(kinds.NODE, "node-0", "", change)).metadata.resourceVersion)


def seen_revision(here: Lab) -> int:
    """Return the revision of the node that the kubelet's watch has shown."""
    copies = json.loads(here.cluster.ask(KUBELET, "/debug/state").text)["copies"]
    return next(int(copy["objects"].get("node-0", "0")) for copy in copies if copy["kind"] == "Node")


def on_ssd(name: str) -> core.Pod:
    made = pod(name, {"cpu": "1"})
    made.spec.nodeSelector.update(SSD)
    return made


async def test_a_pod_runs_on_a_node_that_was_labelled_a_moment_ago(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        fault(here, "hold", "Watch")
        await label(here, "ssd")
        await here.create(on_ssd("a"))
        await here.pod("a", is_ready)
        fault(here, "off", "Watch")
        await here.create(on_ssd("b"))
        await here.pod("b", is_ready)


async def test_a_pod_is_rejected_if_the_node_cannot_be_read_or_has_no_such_label(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await here.create(on_ssd("a"))
        await here.pod("a", lambda seen: seen.status.reason == "NodeAffinity")
        fault(here, "hold", "Watch")
        fault(here, "cut", "Get")
        await label(here, "ssd")
        await here.create(on_ssd("b"))
        seen = await here.pod("b", lambda seen: seen.status.phase == "Failed")
        assert seen.status.message == (
            "Pod was rejected: Predicate NodeAffinity failed: "
            "node(s) didn't match Pod's node affinity/selector"
        )
        assert "Failed to synchronously fetch node info" in cluster.log(KUBELET)


async def test_a_resize_is_allocated_once_the_labels_are_back(cluster: Cluster) -> None:
    async with lab(cluster) as here:
        await label(here, "ssd")
        await here.create(on_ssd("a"))
        await here.pod("a", is_ready)
        removed = await label(here, None)
        # The watch of pods may be ahead of that of nodes: with the old label the kubelet would run the pod.
        await eventually(lambda: seen_revision(here) >= removed)
        await here.create(on_ssd("b"))
        await here.pod("b", lambda seen: seen.status.reason == "NodeAffinity")
        await here.resize("a", cpu="1500m")
        await here.pod("a", lambda seen: condition(seen, "PodResizePending") is not None)
        fault(here, "hold", "Watch")
        await label(here, "ssd")
        await here.resize("a", cpu="2")
        await here.pod("a", lambda seen: in_force(seen) == {"cpu": "2"})
