"""Which DaemonSet pods a new node is expected to have."""

from __future__ import annotations

import pytest

from autoscaler.options import Compat
from autoscaler.planning.observation import DaemonSet
from machinery.api.pb import apps, core
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, node, pod, world
from tests.autoscaler.world import World


def daemon_set(name: str, cpu: str, *, priority_class: str = "", never: bool = False) -> apps.DaemonSet:
    made = apps.DaemonSet()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, "kube-system", f"uid-{name}"
    spec = made.spec.template.spec
    spec.containers.add(name="c").resources.requests["cpu"].string = cpu
    spec.priorityClassName = priority_class
    if never:
        spec.preemptionPolicy = "Never"
    return made


def full_node_and_waiting_pod() -> World:
    """A full node without any DaemonSet's pod; a pod that needs more than half of a new one."""
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    pod(found, "waits", "1200m", unschedulable=True)
    return found


def add(found: World, made: apps.DaemonSet) -> core.Pod:
    """Add the DaemonSet; the pod that it would create."""
    row = found.daemon_sets["kube-system", made.metadata.name] = DaemonSet.of(made)
    return row.pod


@pytest.mark.parametrize(
    ("forced", "priority_class", "never", "grows"),
    [
        pytest.param(False, "", False, True, id="an ordinary one waits for its place"),
        pytest.param(True, "", False, False, id="--force-ds keeps room for it"),
        pytest.param(False, "system-node-critical", False, False, id="a critical one takes its place"),
        pytest.param(False, "system-node-critical", True, True, id="unless it never preempts"),
        pytest.param(False, "system-cluster-critical", False, True, id="critical for the cluster only"),
    ],
)
async def test_daemon_sets_that_do_not_run_on_the_example_node(
    forced: bool, priority_class: str, never: bool, grows: bool
) -> None:
    found = full_node_and_waiting_pod()
    add(found, daemon_set("agent", "1", priority_class=priority_class, never=never))
    result = await autoscaler(found, Compat.V1_36, force_ds=forced).run_once()
    assert found.increased == ({"ng1": 1} if grows else {})
    if not grows:
        assert [reasons for _, reasons in result.scale_up.remaining] == [{"ng1": ("Insufficient cpu",)}]


@pytest.mark.parametrize("why", ["taint", "selector", "runs"])
async def test_forced_daemon_sets_that_would_not_run_there_or_do_already(why: str) -> None:
    found = full_node_and_waiting_pod()
    made = daemon_set("agent", "500m" if why == "runs" else "1")
    if why == "selector":
        made.spec.template.spec.nodeSelector["disk"] = "ssd"
    if why == "taint":
        found.nodes["n1"].spec.taints.add(key="dedicated", value="x", effect="NoSchedule")
        found.pods["default", "waits"].spec.tolerations.add(key="dedicated", operator="Exists")
    of_set = add(found, made)
    if why == "runs":
        found.pods["default", "full"].spec.containers[0].resources.requests["cpu"].string = "1400m"
        running = core.Pod()
        running.CopyFrom(of_set)
        running.metadata.uid, running.spec.nodeName = "running", "n1"
        found.pods["kube-system", "agent-x"] = running
    await autoscaler(found, Compat.V1_36, force_ds=True).run_once()
    assert found.increased == {"ng1": 1}
