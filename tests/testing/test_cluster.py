"""One cluster of real processes, as a test of another project uses it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import anyio
import pytest

from nominee.localcluster.supervisor.directory import StateDirectory, is_alive
from nominee.testing import AsyncCluster, Cluster, StatusError, node, pod, ref
from nominee.testing.cluster import BrokenInvariantsError
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.processes
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]}
"""
ANSWER_SECONDS = 2
"""A wait for what does not come; a slow API server must have answered once."""
_numbers = count()


@pytest.fixture(scope="module")
def whole() -> Iterator[Cluster]:
    options = ("--components", "etcd,apiserver,scheduler,controllers,kubelet", "--timeout")
    with Cluster(
        nodes=2,
        emulated_version="1.36",
        feature_gates={"scheduler": {"NominatedNodeNameForExpectation": False}},
        options=(*options, f"{PATIENCE_SECONDS:g}"),
    ) as cluster:
        yield cluster
    assert not cluster.directory.exists()


@pytest.fixture
def cluster(whole: Cluster) -> Iterator[Cluster]:
    made = whole.in_new_namespace(f"test-{next(_numbers)}")
    # So that the history of a test has its own objects only.
    made.wait(ref("ConfigMap", "kube-root-ca.crt"), {"exists": True}, timeout=PATIENCE_SECONDS)
    yield made
    made.delete_namespace()


def test_objects_are_written_read_and_awaited(cluster: Cluster) -> None:
    before = cluster.now()
    (applied,) = cluster.apply(POD.replace("NAME", "a"))
    assert applied["metadata"]["namespace"] == cluster.namespace
    running = cluster.wait(pod("a"), "status.phase == 'Running'", timeout=PATIENCE_SECONDS)
    assert running is not None
    assert running["spec"]["nodeName"].startswith("node-")
    assert cluster.wait(pod("a"), {"condition": "Ready=True"}, timeout=PATIENCE_SECONDS) is not None

    patched = cluster.patch(pod("a"), {"metadata": {"labels": {"app": "web"}}})
    assert patched["metadata"]["labels"] == {"app": "web"}
    assert [each["metadata"]["name"] for each in cluster.list("pods", selector="app=web")] == ["a"]
    assert {each["metadata"]["name"] for each in cluster.list("no")} == {"node-0", "node-1"}
    with pytest.raises(StatusError, match='pods "a" already exists'):
        cluster.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": running["spec"]}
        )

    cluster.delete(pod("a"), grace_period=0)
    assert cluster.wait(pod("a"), {"exists": False}, timeout=PATIENCE_SECONDS) is None
    assert cluster.find(pod("a")) is None
    with pytest.raises(StatusError, match="not found"):
        cluster.get(pod("a"))

    revisions = cluster.history(pod("a"), since=before)
    assert [revisions[0].verb, revisions[-1].verb] == ["created", "deleted"]
    assert ("spec.nodeName", running["spec"]["nodeName"]) in {
        (change.path, change.new) for each in revisions for change in each.changes if change.old is None
    }
    everything = cluster.history(since=before)
    assert {each.kind for each in everything} == {"Pod"}
    assert {each.namespace for each in everything} == {cluster.namespace}


def test_a_state_that_does_not_come(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match=r"Pod test-\d+/none: not true within 2 s; there is no such obj"):
        cluster.wait(pod("none"), "true", timeout=ANSWER_SECONDS)
    cluster.apply(POD.replace("NAME", "large").replace('"1"', '"1000"'))
    cluster.wait(pod("large"), {"condition": "PodScheduled=False/Unschedulable"}, timeout=PATIENCE_SECONDS)
    with pytest.raises(
        TimeoutError, match=r"not status.phase == 'Running' within .*; status.phase = Pending"
    ):
        cluster.wait(pod("large"), "status.phase == 'Running'", timeout=ANSWER_SECONDS)


def test_processes_end_stop_and_are_perturbed(cluster: Cluster) -> None:
    before = cluster.now()
    cluster.stop("scheduler")
    cluster.apply(POD.replace("NAME", "waits"))
    cluster.start("scheduler", "--log-level=debug")
    cluster.wait(pod("waits"), "has(spec.nodeName)", timeout=PATIENCE_SECONDS)
    assert "Ready http=" in cluster.logs("scheduler", before)

    cluster.failpoint("scheduler", "scheduler.bind.before", 'error("as the test says")')
    cluster.fault("scheduler", "delay(1)", method="Bind")
    cluster.apply(POD.replace("NAME", "fails"))
    cluster.wait(
        ref("Pod", "fails"), {"condition": "PodScheduled=False/SchedulerError"}, timeout=PATIENCE_SECONDS
    )
    cluster.restart("scheduler", kill=True)
    cluster.wait(pod("fails"), "has(spec.nodeName)", timeout=PATIENCE_SECONDS)
    cluster.pause("scheduler")
    cluster.resume("scheduler")


def test_a_wait_goes_on_without_an_api_server(cluster: Cluster) -> None:
    cluster.apply(POD.replace("NAME", "later"))
    cluster.restart("apiserver", kill=True)
    assert cluster.wait(pod("later"), {"condition": "Ready=True"}, timeout=PATIENCE_SECONDS) is not None


def test_the_invariants_hold_or_not(cluster: Cluster) -> None:
    assert cluster.verify("one-node-per-pod")["holds"] is True
    report = {
        "holds": False,
        "invariants": [{"violations": [{"invariant": "one-node", "message": "p is on two nodes"}]}],
    }
    with pytest.raises(BrokenInvariantsError, match=r"^one-node: p is on two nodes$"):
        raise BrokenInvariantsError(report)


async def test_the_same_calls_in_an_event_loop(whole: Cluster) -> None:
    asynchronous = AsyncCluster(directory=whole.directory)
    nodes = await asynchronous.list("nodes")
    assert len(nodes) == 2
    with pytest.raises(TimeoutError, match="unschedulable = unset"):
        await asynchronous.wait(node("node-0"), "spec.unschedulable", timeout=ANSWER_SECONDS)
    with anyio.move_on_after(0.2) as scope:
        await asynchronous.wait(node("node-0"), "spec.unschedulable", timeout=PATIENCE_SECONDS)
    assert scope.cancelled_caught


async def test_a_cluster_in_an_event_loop_starts_and_ends() -> None:
    options = ("--components", "etcd,apiserver", "--timeout", f"{PATIENCE_SECONDS:g}")
    async with AsyncCluster(options=options) as cluster:
        found = StateDirectory(cluster.directory).live_run_files()
        assert set(found) == {"apiserver", "etcd"}
        assert await cluster.find(ref("Namespace", "kube-system")) is not None
    assert not any(is_alive(each["pid"]) for each in found.values())
    assert not cluster.directory.exists()
