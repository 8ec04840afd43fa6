"""The sixth set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from nominee.controllers.daemon_sets.pods import pod_for, template_of
from nominee.kubelet import instructions
from nominee.kubelet.node.node_object import Identity, NodeFacts, new_node
from nominee.kubelet.options import Heartbeats
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime.emulated_runtime import EmulatedRuntime
from nominee.kubelet.shell.agent import Agent
from nominee.kubelet.shell.registration import Registrar
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.api.events import ActionType
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, PostFilterResult
from nominee.scheduler.object_changes import node_changes
from nominee.scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from nominee.scheduler.pod_status import status_patch
from nominee.scheduler.shell.loop.evictions import Evictions
from tests.controllers.daemon_sets.builders import daemon_set
from tests.controllers.jobs.builders import job, sync_of
from tests.kubelet.executor import Executor, calls, container, new_pod, node_object, resized, uid
from tests.scheduler.builders import node, pod
from tests.support.fake_api import FakeApi

NAMESPACE = "default"

# --- scheduler ---


def test_a_node_that_comes_again_still_has_its_pods() -> None:
    cache = Cache()
    cache.put_node(node("n1"))
    cache.add_pod(pod("a", on="n1"))
    cache.remove_node("n1")
    assert cache.get_node("n1") is None
    cache.put_node(node("n1"))
    again = cache.get_node("n1")
    assert again is not None
    assert list(again.pods) == ["uid-a"]
    assert again.requested[0] == 1000


def test_the_condition_says_why_the_last_attempt_failed() -> None:
    waiting = pod("a").pod
    before = "0/1 nodes are available: 1 Insufficient cpu."
    waiting.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable", message=before)
    assert status_patch(waiting, None, reason="Unschedulable", message=before) is None
    now = "0/1 nodes are available: 1 node(s) were unschedulable."
    patch = status_patch(waiting, None, reason="Unschedulable", message=now)
    assert patch is not None
    assert patch["status"]["conditions"][0]["message"] == now


def test_a_resource_that_a_node_gets_wakes_pods() -> None:
    plain = node("n1")
    with_devices = copy_of(plain)
    with_devices.status.allocatable["example.com/gpu"].string = "1"
    for old, new in ((plain, with_devices), (with_devices, plain)):
        assert [event.action for event in node_changes(old, new)] == [ActionType.UpdateNodeAllocatable]
    assert not node_changes(with_devices, copy_of(with_devices))


def test_a_preemptor_goes_on_when_its_victim_was_only_stopped() -> None:
    preemptor = pod("preemptor", priority=100)
    info = SimpleNamespace(gated=True, pod=preemptor.pod)
    activated = list[str]()
    queue = SimpleNamespace(
        get=lambda key: info,
        activate=lambda pods, now: activated.extend(each.metadata.name for each in pods),
    )
    evictions = Evictions(cast("Any", SimpleNamespace(queue=queue, queue_now=lambda: 0.0)))
    attempt = cast("Any", SimpleNamespace(pod=preemptor, info=info))
    for victim, released in ((pod("runs", on="n1"), []), (pod("waits"), ["preemptor"])):
        result = PostFilterResult(None, Candidate("n1", (victim,), 0))
        evictions._release_preemptor(attempt, result)
        assert activated == released


def test_a_claim_for_one_pod_is_free_or_used_as_pods_come_and_go() -> None:
    claim = core.PersistentVolumeClaim(metadata={"name": "data", "namespace": NAMESPACE})
    claim.spec.accessModes.append("ReadWriteOncePod")
    lister = SimpleNamespace(get=lambda name, namespace: claim)
    plugin = VolumeRestrictions({}, cast("Any", SimpleNamespace(lister=lambda kind: lister)))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    waiting, using = pod("waiting", volumes=volumes), pod("using", on="n1", volumes=volumes)
    cache, snapshot = Cache(), Snapshot()
    cache.put_node(node("n1"))

    def is_free() -> bool:
        cache.update_snapshot(snapshot)
        _, status = plugin.pre_filter(CycleState(), waiting, snapshot)
        return status is not None and status.is_skip

    assert is_free()
    cache.add_pod(using)
    assert not is_free()
    cache.remove_pod(using)
    assert is_free()


# --- kubelet ---


async def test_a_status_report_that_failed_is_tried_with_the_next_beat() -> None:
    identity, facts = Identity(name="n1", number=1), NodeFacts(version=Version(1, 36))
    agent = cast("Agent", SimpleNamespace(name="n1", identity=identity))
    clock = FakeClock()
    lost = new_node(identity, facts, clock.now())
    api = FakeApi.of(lost)
    registrar = Registrar(
        cast("Client", api), clock, facts, Heartbeats(), node_of=lambda name: api.find(kinds.NODE, name)
    )
    await registrar.register(agent)
    for condition in lost.status.conditions:
        condition.status = "Unknown"
    api.put(lost)
    api.rejections["patch/status"] = [errors.service_unavailable("it restarts")]
    with pytest.raises(StatusError):
        await registrar.report(agent)
    assert registrar.needs_report(agent)
    await registrar.report(agent)
    stored = api.find(kinds.NODE, "n1")
    assert stored is not None
    assert {row.type: row.status for row in stored.status.conditions}["Ready"] == "True"


def test_an_ephemeral_container_is_started_once_also_across_a_restart() -> None:
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    on.list_pods()
    on.store(new_pod("a"))
    on.observe("a")
    on.work()
    debugged = copy_of(on.api["a"])
    common = debugged.spec.ephemeralContainers.add(targetContainerName="main").ephemeralContainerCommon
    common.name, common.image = "debugger", "tools"
    on.store(debugged)
    on.observe("a")
    on.work()
    on.start_process()
    on.list_pods()
    on.work()
    assert calls(on.performed).count("StartEphemeralContainers") == 1


def test_room_goes_to_the_resize_of_the_highest_priority() -> None:
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    on.store(new_pod("goes", container("main", cpu="2")))
    on.store(new_pod("high", container("main", cpu="1"), priority=100))
    limited = container("main", limits={"cpu": "1", "memory": "1Gi"}, cpu="1", memory="1Gi")
    low = new_pod("low", limited, priority=1)
    low.status.qosClass = "Guaranteed"
    on.store(low)
    on.list_pods()
    on.work()
    for name in ("high", "low"):
        on.store(resized(on.api[name], "main", cpu="3"))
        on.observe(name)
        on.work()
        assert on.node.pods[uid(name)].pending is not None
    del on.api["goes"]
    on.observe("goes")
    on.work()
    assert on.node.pods[uid("high")].pending is None
    assert on.node.pods[uid("low")].pending is not None


def test_a_pod_keeps_its_address_between_two_runs() -> None:
    runtime = EmulatedRuntime(1, "172.16.0.1")
    crashing, other = new_pod("a"), new_pod("b")
    runtime.perform(instructions.CreateSandbox(uid("a"), crashing), 0.0)
    started = instructions.StartContainers(uid("a"), crashing, desired_resources(crashing))
    first = runtime.perform(started, 1.0)
    runtime.perform(instructions.CrashContainers(uid("a"), 1), 2.0)
    second = runtime.perform(instructions.CreateSandbox(uid("b"), other), 3.0)
    assert first.ip
    assert second.ip != first.ip


# --- machinery ---


def test_a_job_that_is_scaled_down_counts_only_the_indexes_it_has() -> None:
    scaled = job(
        completionMode="Indexed",
        parallelism=3,
        completions=3,
        status={"completedIndexes": "0,1,4", "succeeded": 3, "startTime": "2026-01-01T00:00:00Z"},
    )
    sync = sync_of(scaled)
    [created] = sync.work().create
    assert created.metadata.annotations["batch.kubernetes.io/job-completion-index"] == "2"


def test_daemons_tolerate_a_lost_node_for_ever() -> None:
    copied = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    owner = daemon_set(tolerations=[{"key": key, **copied} for key in keys])
    made = pod_for(owner, template_of(owner, "hash"), "n1")
    for key in keys:
        [own] = [each for each in made.spec.tolerations if each.key == key]
        assert not own.HasField("tolerationSeconds")


class Events:
    """A client that keeps core/v1 events."""

    def __init__(self) -> None:
        self.stored: dict[str, core.Event] = {}

    async def create(self, event: core.Event) -> core.Event:
        self.stored[event.metadata.name] = copy_of(event)
        return event

    async def patch(self, kind: object, name: str, namespace: str, patch: Any, **_: object) -> None:
        if name not in self.stored:
            raise errors.not_found(kinds.EVENT, name)
        self.stored[name].count = patch["count"]


async def test_an_event_that_was_deleted_is_recorded_again() -> None:
    server = Events()
    recorder = CorrelatingRecorder(cast("Client", server), "kubelet", clock=FakeClock())

    async def counts() -> list[int]:
        """Record the event once more, and return the counts of those that are stored."""
        recorder.event(new_pod("a"), "Warning", "BackOff", action="", note="Back-off restarting")
        await recorder.flush()
        return [event.count for event in server.stored.values()]

    assert [await counts(), await counts()] == [[1], [2]]
    server.stored.clear()
    assert await counts() == [3]
