"""The second set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from nominee.apiserver.admission import resource_quota
from nominee.apiserver.admission.pods.priority import Priority
from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.registry import scale
from nominee.apiserver.registry.pods.binding import bind
from nominee.apiserver.registry.store import Store
from nominee.apiserver.schema.version_fields import TABLE_VERSION
from nominee.autoscaler.actuation.node_deletion import NodeDeletion
from nominee.autoscaler.options import Options
from nominee.autoscaler.orders import ErrorType, Failure, ReadNode
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.scale_down.planner import crop_to_budgets
from nominee.autoscaler.planning.scale_down.unneeded_nodes import UnneededNodes
from nominee.controllers.deployments import rollout
from nominee.controllers.deployments.rollout import UpdateSet
from nominee.controllers.deployments.shell.deployments import DeploymentController
from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.controllers.nodes.shell.lifecycle import NodeLifecycle
from nominee.kubelet import events, instructions
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import get_condition, key_of
from nominee.machinery.api.pb import apps, core, scheduling
from nominee.machinery.features.gates import DEFAULT, Gates
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.machinery.runtime.queues.work_queue import WorkQueue
from nominee.machinery.wire import codec
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling
from nominee.scheduler.dispatch.api_calls import Outcome
from nominee.scheduler.dispatch.states import Trigger
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Candidate
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.node_resources.plugin import NodeResourcesFit
from nominee.scheduler.plugins.pod_topology_spread.constraints import Reader
from nominee.scheduler.plugins.pod_topology_spread.counts import HardState, Inclusion
from nominee.scheduler.preemption.selection import best_candidates
from tests.controllers.builders import node as stored_node
from tests.controllers.builders import owned_by
from tests.controllers.builders import pod as stored_pod
from tests.controllers.contexts import context_of, synced
from tests.controllers.deployments.builders import deployment, replica_set
from tests.kubelet.executor import Executor, container, deleted, new_pod, node_object, resized
from tests.mutations.proofs.memory_storage import MemoryStorage
from tests.scheduler.builders import node, pod
from tests.scheduler.dispatch.test_call_queue import Stage, shown
from tests.support.fake_api import FakeApi

# --- scheduler ---


def test_the_most_important_victim_decides_between_nodes() -> None:
    costly = Candidate("n1", (pod("a", priority=5), pod("b")), 0)
    cheap = Candidate("n2", (pod("c", priority=3), pod("d", priority=3)), 0)
    best, _ = best_candidates([costly, cheap], 0.0)
    assert [each.node for each in best] == ["n2"]


def running(name: str, cpu: str, memory: str) -> core.Pod:
    """Return a pod on a node."""
    requests = {"cpu": cpu, "memory": memory}
    data = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": requests}}]},
    }
    return codec.from_json(core.Pod, data)


def test_a_resize_of_cpu_alone_may_help_a_pod_that_requests_memory_too() -> None:
    waiting = running("waiting", "1", "1Gi")
    waiting.spec.nodeName = ""
    before, after = running("other", "2", "1Gi"), running("other", "1", "1Gi")
    nothing = cast("NodeResourcesFit", None)
    assert NodeResourcesFit._scale_down_helps(nothing, PodInfo(waiting), before, after)
    assert not NodeResourcesFit._scale_down_helps(nothing, PodInfo(waiting), before, before)


def test_nodes_without_the_topology_label_are_no_domain() -> None:
    cache, snapshot = Cache(), Snapshot()
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "")):
        made = node(name)
        if zone:
            made.metadata.labels["zone"] = zone
        cache.put_node(made)
    labels = {"app": "web"}
    for name, on in (("p1", "n1"), ("p2", "n2")):
        placed = pod(name, on=on).pod
        placed.metadata.labels.update(labels)
        cache.add_pod(PodInfo(placed))
    cache.update_snapshot(snapshot)
    who = pod("who").pod
    who.metadata.labels.update(labels)
    row = who.spec.topologySpreadConstraints.add(
        maxSkew=1, topologyKey="zone", whenUnsatisfiable="DoNotSchedule"
    )
    row.labelSelector.matchLabels.update(labels)
    reader = Reader(policies=True, match_label_keys=True)
    constraints = reader.read(who.spec.topologySpreadConstraints, labels, "DoNotSchedule")
    info = PodInfo(who)
    state = HardState.count(constraints, info, snapshot, Inclusion.of(info, comparison=False))
    assert [each.allows("a") for each in state.domains] == [True]


def test_a_pod_that_is_deleted_while_it_is_bound_frees_its_node() -> None:
    freed = list[core.Pod]()

    def move_all(event: object, old: Message | None, *_: object) -> None:
        freed.append(cast("core.Pod", old))

    queue = SimpleNamespace(move_all=move_all, delete=lambda pod: None)
    cache = Cache()
    handlers = EventHandlers(cast("Any", queue), cache, is_ours=lambda name: True)
    cache.assume_pod(pod("p"), "n1")
    handlers.pod_deleted(pod("p").pod, False, 0.0)
    assert [each.spec.nodeName for each in freed] == ["n1"]


def test_a_status_is_patched_from_the_newest_answer() -> None:
    stage = Stage()
    stage.show(shown())
    for number, nominated in ((2, "n1"), (3, "")):
        stage.fails(str(number), nominated)
        call = stage.take()
        stage.patch(call)
        stage.calls.finish([Outcome(call, Trigger.WRITTEN, shown(revision=number, nominated=nominated))])
    stage.fails("4", "n1")
    assert stage.patch(stage.take())["nominatedNodeName"] == "n1"


# --- kubelet ---


def kubelet(*pods: core.Pod) -> Executor:
    """Return a node of 4 cpus with a kubelet that runs these pods."""
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    for made in pods:
        on.store(made)
    on.list_pods()
    on.work()
    return on


def allocated_cpu(on: Executor, name: str) -> int:
    held = on.node.allocations[f"uid-{name}"].get("main")
    assert held is not None
    return held.requests.number("cpu")


def test_room_that_a_status_shows_to_be_free_is_given_to_a_deferred_resize() -> None:
    on = kubelet(new_pod("a", container("main", cpu="3")), new_pod("b", container("main", cpu="1")))
    for name, cpu in (("b", "3"), ("a", "1")):
        on.store(resized(on.api[name], "main", cpu=cpu))
        on.observe(name)
        on.work()
    assert allocated_cpu(on, "a") == 1000
    assert allocated_cpu(on, "b") == 3000
    assert get_condition(on.api["b"].status.conditions, "PodResizePending") is None


def test_a_resize_made_while_the_kubelet_was_down_is_allocated() -> None:
    on = kubelet(new_pod("a", container("main", cpu="1")))
    on.store(resized(on.api["a"], "main", cpu="2"))
    on.start_process()
    on.list_pods()
    on.work()
    on.retry()
    assert allocated_cpu(on, "a") == 2000


def test_a_removal_that_failed_is_tried_again() -> None:
    on = kubelet(new_pod("a", container("main", cpu="1")))
    on.store(deleted(on.api["a"], 1))
    on.observe("a")
    failed = False
    for _ in range(20):
        instruction = on.begin("uid-a")
        while instruction is not None:
            if isinstance(instruction, instructions.DeletePod):
                failed = True
                on.later.clear()
                on.queue.clear()
                sandbox = on.runtime.sandboxes.get("uid-a")
                result: Any = events.InstructionFailed(uid="uid-a", sandbox=sandbox, at=on.moment())
            else:
                before = on.revision
                result = on.perform(instruction)
                if on.revision != before:
                    on.handle(result)
                    on.observe("a")
                    break
            instruction = on.handle(result)
        if failed:
            break
        on.pass_time(1.0)
    assert failed
    assert [uid for _, uid in on.later] == ["uid-a"]


# --- autoscaler ---


def test_a_drain_in_progress_takes_up_the_budget_of_drains() -> None:
    deletions = NodeDeletionTracker()
    deletions.start_deletion("n1", "g", drain=True)
    due = cast("Any", object())
    assert crop_to_budgets(Options(), deletions, [], [due]).drain == []
    assert crop_to_budgets(Options(), NodeDeletionTracker(), [], [due]).drain == [due]


def test_a_node_that_is_needed_again_is_not_unneeded() -> None:
    unneeded = UnneededNodes(Options())
    removal = cast("Any", SimpleNamespace(node=node("n1")))
    unneeded.update([removal], 0.0)
    unneeded.update([], 30.0)
    assert unneeded.names() == []
    unneeded.update([removal], 60.0)
    assert unneeded.durations(70.0) == {"n1": 10.0}


def test_a_deletion_that_failed_has_ended() -> None:
    deletions = NodeDeletionTracker()
    deletions.start_deletion("n1", "g", drain=False)
    state = SimpleNamespace(options=Options(), clock=FakeClock(), deletions=deletions)
    run = NodeDeletion(cast("Any", state), node("n1"), "g", drain=False).run()
    order: Any = next(run)
    while order is not None:
        refused = isinstance(order, ReadNode)
        try:
            order = run.send(Failure(ErrorType.API_CALL, "away") if refused else None)
        except StopIteration:
            order = None
    assert deletions.nodes() == frozenset()


# --- controllers ---


def test_a_pod_that_terminates_still_runs() -> None:
    old = replica_set("old", "v1", 0)
    ending = stored_pod(phase="Running", deleted=True, owners=[owned_by("old")])
    pods = SimpleNamespace(by_index=lambda index, uid: [ending] if uid == "old" else [])
    controller = cast("DeploymentController", SimpleNamespace(pods=pods))
    assert DeploymentController._running(controller, [old]) == {"old"}


def test_pods_that_can_be_spared_are_taken_once() -> None:
    sets = list[apps.ReplicaSet]()
    for at, (image, size) in enumerate((("v1", 4), ("v2", 4), ("v3", 2))):
        each = replica_set(image, image, size, at=at, revision=at + 1, largest=10, desired=10)
        each.status.readyReplicas = each.status.availableReplicas = size
        sets.append(each)
    found = deployment(replicas=10, image="v3", surge=0, unavailable=2)
    outcome = rollout.sync(found, sets, running=frozenset(), now=0.0)
    sizes = {each.metadata.name: each.spec.replicas for each in sets}
    for action in outcome.actions:
        if isinstance(action, UpdateSet):
            sizes[action.replica_set.metadata.name] = action.replica_set.spec.replicas
    assert sum(sizes.values()) == 8


async def test_a_second_taint_is_tolerated_for_the_whole_time() -> None:
    clock, tainted = FakeClock(), {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    on_node = {"n1": stored_node(taints=[tainted])}
    toleration = {"key": tainted["key"], "operator": "Exists", "tolerationSeconds": 300}
    tolerant = stored_pod(uid="u", node="n1", phase="Running", tolerations=[toleration])
    made = SimpleNamespace(
        pods=SimpleNamespace(get=lambda name, namespace: tolerant),
        nodes=SimpleNamespace(get=on_node.get),
        clock=clock,
        _due={},
        _comparison=False,
        _evicted=set(),
        _record_eviction=lambda pod, action: None,
    )
    controller = cast("TaintEviction", made)
    made._cancel = partial(TaintEviction._cancel, controller)

    async def remaining() -> float | None:
        return await TaintEviction.reconcile(controller, key_of(tolerant))

    assert await remaining() == 300.0
    on_node["n1"] = stored_node()
    assert await remaining() is None
    await clock.advance(200)
    on_node["n1"] = stored_node(taints=[tainted])
    assert await remaining() == 300.0


async def test_pods_of_a_silent_node_become_unready_after_a_failed_write_too() -> None:
    conflicts = [errors.conflict(kinds.POD, "p", "changed meanwhile")]
    api, clock = FakeApi.of(stored_node(), stored_pod(node="n1", ready=True)), FakeClock()
    api.reject = lambda request: conflicts.pop() if conflicts and request.kind == "Pod" else None
    context = context_of(api, clock)
    pods = context.informers.of(kinds.POD)
    controller = NodeLifecycle(
        context, pods, monitor_seconds=1.0, grace_seconds=10.0, startup_grace_seconds=10.0
    )
    async with synced(context, controller.run):
        for _ in range(15):
            await clock.advance(1)
        assert not conflicts
        ready = get_condition(api.pod("p").status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "False"


# --- machinery ---


async def test_a_shorter_wait_replaces_a_longer_one() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 300.0)
    queue.add_after("a", 0.25)
    await clock.advance(1)
    assert queue.get_nowait() == "a"


# --- apiserver ---


def test_a_scale_is_written_at_its_version() -> None:
    workload, body = apps.Deployment(), autoscaling.Scale()
    workload.metadata.resourceVersion, body.metadata.resourceVersion = "5", "3"
    body.spec.replicas = 2
    scale._take_over(workload, body)
    assert (workload.spec.replicas, workload.metadata.resourceVersion) == (2, "3")


def test_an_update_is_charged_its_increase() -> None:
    old, new = running("p", "1", "1Gi"), running("p", "1500m", "1Gi")
    quota = core.ResourceQuota()
    for name in ("requests.cpu", "requests.memory"):
        quota.spec.hard[name].string = quota.status.hard[name].string = "10Gi"
        quota.status.used[name].string = "1"
    request = SimpleNamespace(kind=kinds.POD, operation="UPDATE", subresource="resize", obj=new, old=old)
    [(_, used)] = resource_quota._charges(cast("Any", request), [quota], 0)
    assert str(used["requests.cpu"]) == "500m"


async def test_a_pod_gets_the_preemption_policy_of_its_class() -> None:
    polite = scheduling.PriorityClass(value=10, preemptionPolicy="Never")
    polite.metadata.name = "polite"

    async def find(kind: object, namespace: str, name: str) -> object:
        return SimpleNamespace(message=polite)

    made = core.Pod()
    made.spec.priorityClassName = "polite"
    request = SimpleNamespace(kind=kinds.POD, operation="CREATE", obj=made, old=None)
    await Priority().admit(cast("Any", request), cast("Any", SimpleNamespace(find=find)))
    assert (made.spec.priority, made.spec.preemptionPolicy) == (10, "Never")


async def test_a_binding_does_not_bind_another_pod_of_the_name() -> None:
    storage = MemoryStorage()
    storage.put(stored_pod(uid="second"))
    store = Store(cast("Any", storage), StoredObjects(TABLE_VERSION))
    binding = core.Binding(target=core.ObjectReference(kind="Node", name="n1"))
    binding.metadata.name, binding.metadata.uid = "p", "first"
    env = SimpleNamespace(version=DEFAULT, now=to_time(1.0), gates=Gates("apiserver", DEFAULT))
    with pytest.raises(StatusError) as refused:
        await bind(store, "default", "p", binding, cast("Any", env))
    assert refused.value.code == 409
