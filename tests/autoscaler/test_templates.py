"""DaemonSet pods of template nodes."""

from __future__ import annotations

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.objects.observation import DaemonSet
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import autoscaler, new_world, node, pod
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
    """Return a world with a full node without DaemonSet pods, and a pending pod of more than half a node."""
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1200m", unschedulable=True)
    return world


def add(world: World, made: apps.DaemonSet) -> core.Pod:
    """Add the DaemonSet; return the pod that it would create."""
    row = world.daemon_sets["kube-system", made.metadata.name] = DaemonSet.of(made)
    return row.pod


@pytest.mark.parametrize(
    ("forced", "priority_class", "never", "grows"),
    [
        pytest.param(False, "", False, True, id="ordinary DaemonSets are left out"),
        pytest.param(True, "", False, False, id="--force-ds adds them"),
        pytest.param(False, "system-node-critical", False, False, id="node-critical pods are added"),
        pytest.param(False, "system-node-critical", True, True, id="unless they never preempt"),
        pytest.param(False, "system-cluster-critical", False, True, id="cluster-critical pods are left out"),
    ],
)
async def test_daemon_sets_without_a_pod_on_the_example_node(
    forced: bool, priority_class: str, never: bool, grows: bool
) -> None:
    world = full_node_and_waiting_pod()
    add(world, daemon_set("agent", "1", priority_class=priority_class, never=never))
    result = await autoscaler(world, Compat.V1_36, force_ds=forced).run_once()
    assert world.increased == ({"ng1": 1} if grows else {})
    if not grows:
        assert [reasons for _, reasons in result.scale_up.remaining] == [{"ng1": ("Insufficient cpu",)}]


@pytest.mark.parametrize("why", ["taint", "selector", "runs"])
async def test_forced_daemon_sets_that_do_not_select_the_node_or_run_already(why: str) -> None:
    world = full_node_and_waiting_pod()
    made = daemon_set("agent", "500m" if why == "runs" else "1")
    if why == "selector":
        made.spec.template.spec.nodeSelector["disk"] = "ssd"
    if why == "taint":
        world.nodes["n1"].spec.taints.add(key="dedicated", value="x", effect="NoSchedule")
        world.pods["default", "waits"].spec.tolerations.add(key="dedicated", operator="Exists")
    of_set = add(world, made)
    if why == "runs":
        world.pods["default", "full"].spec.containers[0].resources.requests["cpu"].string = "1400m"
        running = core.Pod()
        running.CopyFrom(of_set)
        running.metadata.uid, running.spec.nodeName = "running", "n1"
        world.pods["kube-system", "agent-x"] = running
    await autoscaler(world, Compat.V1_36, force_ds=True).run_once()
    assert world.increased == {"ng1": 1}


@pytest.mark.parametrize(("taint", "target"), [("disk-pressure", 2), ("dedicated", 1)])
async def test_a_template_of_the_provider_has_the_pods_of_daemon_sets(taint: str, target: int) -> None:
    """Pods of DaemonSets tolerate pressure on a node, though their template does not say so."""
    world = new_world(FakeClock(), target=0)
    key = f"node.kubernetes.io/{taint}"
    world.groups["ng1"]["template"]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    for name in ("one", "two"):
        waits = pod(world, name, "900m", unschedulable=True)
        waits.spec.tolerations.add(key=key, operator="Exists")
    add(world, daemon_set("agent", "500m"))
    await autoscaler(world, Compat.V1_36).run_once()
    assert world.increased == {"ng1": target}
