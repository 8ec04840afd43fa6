"""The fifth set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from google.protobuf.message import Message

from nominee.apiserver.admission.chain import NAMES
from nominee.apiserver.admission.limit_ranger import fill_in
from nominee.apiserver.admission.resource_quota import ResourceQuota
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Act, DeleteCollection, ListOptions, ListPage, WriteOptions
from nominee.apiserver.registry.deletions.collection import delete_collection
from nominee.apiserver.registry.registry import Registry
from nominee.apiserver.storage.interface import StoredValue
from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.backoff import NodeGroupBackoff
from nominee.autoscaler.planning.objects.pods import all_pods_are_new
from nominee.autoscaler.steps.cluster.process_pod_list import _currently_drained_pods
from nominee.controllers.devices import reservations
from nominee.controllers.horizontal_pod_autoscalers.normalization import History, Sample, normalize
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.kubelet.node.state import NodeSettings, NodeState
from nominee.kubelet.options import Delays
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.shell.process import Kubelet
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, copy_of
from nominee.machinery.api.pb import coordination, core, devices, meta, policy, workloads
from nominee.machinery.client.leader_election import LeaderElector, Timing
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.defaults.watched import autoscaler as complete
from nominee.machinery.features import gates as versions
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.machinery.wire import envelope
from nominee.scheduler.attempts.group import Verdict
from nominee.scheduler.framework.api.events import QueueingHint
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.plugins.inter_pod_affinity.hints import after_pod_change
from nominee.scheduler.plugins.volume_binding.binder import VolumeBinder
from nominee.scheduler.preemption.eligibility import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
    VICTIM_TERMINATING,
    why_not_eligible,
)
from nominee.scheduler.shell.calls.group_status import GroupConditions
from tests.apiserver.registry.memory_storage import MemoryStorage
from tests.controllers.builders import pod as stored_pod
from tests.controllers.builders import stamp
from tests.controllers.horizontal_pod_autoscalers.builders import autoscaler as scaler
from tests.controllers.jobs.builders import job, sync_of
from tests.controllers.stateful_sets.builders import planned, stateful_set, words
from tests.kubelet.executor import Executor, container, new_pod, node_object, resized, uid
from tests.scheduler.builders import node, pod
from tests.support.devices import claim as device_claim
from tests.support.leases import LeaseServer
from tests.support.patience import PATIENCE_SECONDS

NAMESPACE = "default"

# --- scheduler ---


def test_the_end_of_a_pod_that_kept_others_away_wakes_them() -> None:
    waiting = pod("waiting")
    waiting.pod.metadata.labels["app"] = "web"
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert after_pod_change(waiting, pod("alone", on="n1", affinity=apart).pod, None) is QueueingHint.Queue
    assert after_pod_change(waiting, pod("other", on="n1").pod, None) is QueueingHint.Skip


def test_a_preemptor_does_not_wait_for_victims_on_a_node_that_refuses_it() -> None:
    victim = pod("victim", on="n1")
    victim.pod.metadata.deletionTimestamp.seconds = 1
    victim.pod.status.conditions.add(type=DISRUPTION_TARGET, status="True", reason=PREEMPTION_BY_SCHEDULER)
    on_node = SimpleNamespace(pods={victim.uid: victim})
    snapshot = cast("Snapshot", SimpleNamespace(get=lambda name: on_node))
    preemptor = pod("preemptor", priority=100, nominated="n1")
    full, cordoned = Status(Code.Unschedulable), Status(Code.UnschedulableAndUnresolvable)
    assert why_not_eligible(preemptor, "n1", full, snapshot) == VICTIM_TERMINATING
    assert not why_not_eligible(preemptor, "n1", cordoned, snapshot)


async def test_the_last_verdict_about_a_group_is_written() -> None:
    group = workloads.PodGroup(metadata={"name": "g", "namespace": NAMESPACE})
    written, goes_on = list[str](), anyio.Event()

    async def get(*_: object) -> workloads.PodGroup:
        return group

    async def patch(kind: object, name: str, namespace: str, change: Any, **_: object) -> None:
        if not written:
            await goes_on.wait()
        [condition] = change["status"]["conditions"]
        written.append(condition["status"])

    lister = SimpleNamespace(get=lambda name, namespace: group)
    framework = cast("Any", SimpleNamespace(lister=lambda kind: lister))
    conditions = GroupConditions(cast("Any", SimpleNamespace(get=get, patch=patch)), FakeClock())
    key = ObjectKey(NAMESPACE, "g")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for is_placed in (False, True):
                verdict = Verdict(is_placed, waits_for_evictions=False, error="", outcomes=(), next_start=0)
                conditions.decided(framework, key, verdict, tasks)
                await anyio.wait_all_tasks_blocked()
            goes_on.set()
    assert written == ["False", "True"]


def test_a_claim_that_is_older_than_its_write_is_waited_for() -> None:
    shown = core.PersistentVolumeClaim(metadata={"name": "data", "namespace": NAMESPACE})
    shown.metadata.resourceVersion = "5"
    written = copy_of(shown)
    written.metadata.resourceVersion = "6"
    written.metadata.annotations["volume.kubernetes.io/selected-node"] = "n1"
    lister = SimpleNamespace(get=lambda name, namespace: shown)
    binder = VolumeBinder(cast("Any", SimpleNamespace(lister=lambda kind: lister)))
    assert not binder._is_claim_provisioned(written, node("n1"))


# --- controllers ---


def test_a_policy_counts_the_scalings_of_its_whole_period() -> None:
    rules = {
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}],
        "stabilizationWindowSeconds": 0,
    }
    hpa = scaler(most=100, behavior={"scaleDown": rules})
    complete(hpa, Gates("apiserver", versions.DEFAULT))
    history = History(downs=[Sample(1, 940.0)])
    assert normalize(hpa.spec, 9, 2, history, Settings(), 1000.0).replicas == 9
    assert normalize(hpa.spec, 9, 2, history, Settings(), 1541.0).replicas == 8


def test_a_partition_begins_at_the_first_ordinal() -> None:
    of = stateful_set(replicas=3, start=5, partition=2, policy="Parallel")
    assert words(planned(of, [], update="v2")) == [["create 5 v1", "create 6 v1", "create 7 v2"]]


def test_a_claim_that_was_freed_before_its_deletion_goes() -> None:
    freed = device_claim("c", finalizers=[reservations.FINALIZER])
    assert not reservations.plan(freed, lambda _: False, False).drops_finalizer
    freed.metadata.deletionTimestamp.seconds = 1
    assert reservations.plan(freed, lambda _: False, False).drops_finalizer
    assert isinstance(freed, devices.ResourceClaim)


def test_a_job_does_not_end_before_its_pods_are_seen() -> None:
    late = job(activeDeadlineSeconds=10, status={"startTime": stamp(0)})
    for satisfied, ends in ((False, []), (True, ["FailureTarget", "Failed"])):
        sync = sync_of(late, now=20, satisfied=satisfied)
        assert not sync.work().create
        sync.note_work(0, [])
        sync.count()
        sync.finish()
        assert [row.type for row in sync.job.status.conditions] == ends


# --- kubelet ---


def test_a_deferred_resize_is_tried_when_another_pod_has_become_smaller() -> None:
    settings = NodeSettings(delays=Delays(actuation=2.0))
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"), settings)
    for name in ("a", "b"):
        on.store(new_pod(name, container("main", cpu="2")))
    on.list_pods()
    on.work()
    on.store(resized(on.api["b"], "main", cpu="3"))
    on.observe("b")
    on.work()
    record: PodRecord = on.node.pods[uid("b")]
    assert record.pending is not None
    on.store(resized(on.api["a"], "main", cpu="1"))
    on.observe("a")
    on.work()
    on.pass_time(2.0)
    on.work()
    assert record.pending is None
    assert on.node.allocations[uid("b")].same(record.desired)


def test_the_ready_delay_begins_again_with_each_run() -> None:
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    on.list_pods()
    crashing = new_pod("a")
    times = {"run-duration": "5s", "ready-delay": "8s", "exit-code": "1"}
    crashing.metadata.annotations.update({f"nominee.dev/{name}": text for name, text in times.items()})
    on.store(crashing)
    on.observe("a")
    on.work()
    for _ in range(9):
        on.pass_time(1.0)
        on.work()
        [status] = on.api["a"].status.containerStatuses
        assert not status.ready
    assert status.restartCount == 1


async def test_a_kubelet_begins_with_the_pods_of_after_its_registration() -> None:
    shown, begun = ["removed"], list[list[str]]()

    async def register(agent: object) -> core.Node:
        shown[:] = ["bound"]
        return core.Node()

    agent = SimpleNamespace(
        name="n1",
        adopting=False,
        node=NodeState(core.Node()),
        node_changed=lambda found: None,
        begin=lambda pods: begun.append([each.metadata.name for each in pods]),
    )
    kubelet = SimpleNamespace(
        agents={},
        client=None,
        registrar=SimpleNamespace(register=register),
        pods=SimpleNamespace(by_index=lambda index, name: [new_pod(each) for each in shown]),
        node_objects=SimpleNamespace(get=lambda name: None),
        _start_beats=lambda agent: None,
    )
    await Kubelet._run_node(cast("Any", kubelet), cast("Any", agent))
    assert begun == [["bound"]]


# --- autoscaler ---


def created(name: str, at: float) -> core.Pod:
    made = new_pod(name)
    made.metadata.creationTimestamp.CopyFrom(to_time(at))
    return made


def test_an_old_pod_is_not_held_back_by_a_new_one() -> None:
    assert not all_pods_are_new([created("old", 90.0), created("new", 100.0)], 100.0)
    assert all_pods_are_new([created("newer", 99.0), created("new", 100.0)], 100.0)


def test_evicted_pods_of_a_drained_node_need_no_place() -> None:
    stays, evicted = stored_pod("stays", node="n1"), stored_pod("evicted", node="n1", deleted=True)
    snapshot = SimpleNamespace(
        pods_on=lambda name: [stays, evicted], devices=SimpleNamespace(unreserve=lambda pod: None)
    )
    state = SimpleNamespace(deletions=SimpleNamespace(drains=lambda: ["n1"]))
    found = _currently_drained_pods(cast("Any", state), cast("Any", snapshot))
    assert [each.metadata.name for each in found] == ["stays"]


def test_failures_during_a_back_off_do_not_double_it() -> None:
    backoff = NodeGroupBackoff(Options())
    first = backoff.backoff("g", 0.0, code="QUOTA", message="")
    assert backoff.backoff("g", 1.0, code="QUOTA", message="") == first + 1.0
    again = first + 2.0
    assert backoff.backoff("g", again, code="QUOTA", message="") == again + 2 * first


# --- apiserver ---


def test_init_containers_get_the_defaults_of_a_limit_range() -> None:
    limit_range = core.LimitRange()
    limit_range.spec.limits.add(type="Container").defaultRequest["cpu"].string = "100m"
    made = core.Pod()
    made.spec.initContainers.add(name="setup")
    made.spec.containers.add(name="main")
    fill_in(made, limit_range)
    for each in (*made.spec.initContainers, *made.spec.containers):
        assert each.resources.requests["cpu"].string == "100m"


class Quotas:
    """The quotas of a namespace, as admission plugins read and change them."""

    def __init__(self, **used_and_hard: tuple[str, str]) -> None:
        self.found = dict[str, Any]()
        for name, (used, hard) in used_and_hard.items():
            made = core.ResourceQuota(metadata={"name": name, "namespace": NAMESPACE})
            made.spec.hard["pods"].string = made.status.hard["pods"].string = hard
            made.status.used["pods"].string = used
            self.found[name] = SimpleNamespace(message=made)

    def listed(self, kind: object, namespace: str) -> list[Any]:
        return list(self.found.values())

    async def find(self, kind: object, namespace: str, name: str) -> Any:
        return self.found[name]

    async def change(self, kind: object, namespace: str, name: str, mutate: Callable[[Any], Any]) -> None:
        self.found[name].message = await mutate(self.found[name])


async def test_a_refused_write_is_charged_to_no_quota() -> None:
    quotas = Quotas(first=("1", "5"), second=("2", "2"))

    def forbidden(problem: str) -> StatusError:
        return errors.forbidden(kinds.POD, "p", problem)

    request = SimpleNamespace(
        kind=kinds.POD, operation="CREATE", subresource="", namespace=NAMESPACE, dry_run=False,
        obj=new_pod("p"), old=None, forbidden=forbidden,
    )  # fmt: skip
    with pytest.raises(StatusError, match="exceeded quota: second"):
        await ResourceQuota(FakeClock()).validate(cast("Any", request), cast("Any", quotas))
    assert quotas.found["first"].message.status.used["pods"].string == "1"


class Changing(MemoryStorage):
    """A storage in which other clients write after a read; `change` gets the key that was read."""

    def __init__(self, change: Callable[[Changing, str], None], *stored: Message) -> None:
        super().__init__()
        self.change = change
        for each in stored:
            self.put(each)

    def put(self, obj: Any) -> None:
        self._put(kinds.of(obj).key(obj.metadata.namespace, obj.metadata.name), envelope.encode(copy_of(obj)))

    async def get(self, key: str) -> StoredValue | None:
        found = await super().get(key)
        self.change(self, key)
        return found


def registry_of(storage: MemoryStorage, clock: FakeClock | None = None) -> Registry:
    return Registry(
        storage,
        None,
        None,
        gates=Gates("apiserver", versions.DEFAULT),
        clock=clock or FakeClock(),
        rng=random.Random(1),
        disabled_admission=NAMES,
    )


async def test_a_pod_that_becomes_ready_is_protected_by_its_budget() -> None:
    starting = stored_pod("p", uid="u", labels={"app": "web"}, phase="Pending", node="n1")
    ready = stored_pod("p", uid="u", labels={"app": "web"}, phase="Running", node="n1", ready=True)
    budget = policy.PodDisruptionBudget(metadata={"name": "b", "namespace": NAMESPACE, "uid": "b"})
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.currentHealthy = budget.status.desiredHealthy = 1
    reports = [ready]

    def change(storage: Changing, key: str) -> None:
        if reports and key == kinds.POD.key(NAMESPACE, "p"):
            storage.put(reports.pop())

    clock, storage = FakeClock(), Changing(change, starting, budget)
    registry = registry_of(storage, clock)
    eviction = policy.Eviction(metadata={"name": "p", "namespace": NAMESPACE})
    refused = list[StatusError]()

    async def evict() -> None:
        try:
            await registry.perform(Act(kinds.POD, NAMESPACE, "p", "eviction", eviction, WriteOptions()))
        except StatusError as error:
            refused.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(evict)
        await clock.advance(5.0)
    assert [error.code for error in refused] == [429]
    stored = envelope.decode(kinds.POD, storage.values[kinds.POD.key(NAMESPACE, "p")].data)
    assert not stored.metadata.HasField("deletionTimestamp")


async def test_the_deletion_of_a_collection_skips_what_is_gone() -> None:
    storage, listed = MemoryStorage(), list[CachedObject]()
    for name in "abc":
        made = core.ConfigMap(metadata={"name": name, "namespace": NAMESPACE, "uid": name})
        key, data = kinds.CONFIG_MAP.key(NAMESPACE, name), envelope.encode(made)
        revision = storage._put(key, data)
        listed.append(CachedObject(kinds.CONFIG_MAP, NAMESPACE, name, revision, stored=data))

    async def list_all(*_: object, **__: object) -> ListPage:
        del storage.values[kinds.CONFIG_MAP.key(NAMESPACE, "b")]
        return ListPage(listed, "4")

    context = replace(registry_of(storage)._context, reads=cast("Any", SimpleNamespace(list=list_all)))
    request = DeleteCollection(kinds.CONFIG_MAP, NAMESPACE, ListOptions(), meta.DeleteOptions())
    await delete_collection(context, request, [])
    assert not storage.values


# --- machinery ---


def test_the_end_of_an_unknown_object_is_a_gap() -> None:
    informer = Informer(cast("Any", SimpleNamespace(lists_newest_first=False)), kinds.POD)
    before = informer.gaps
    informer._remove(new_pod("p"))
    assert informer.gaps == before + 1


class SlowLeases(LeaseServer):
    """Leases whose writes are carried out at once, and answered some seconds later."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds

    async def update(self, lease: coordination.Lease) -> coordination.Lease:
        stored = await super().update(lease)
        await self.clock.advance(self.seconds)
        return stored


async def test_a_lease_is_counted_from_the_request_of_its_renewal() -> None:
    clock = FakeClock()
    server, timing = SlowLeases(clock, 7.0), Timing()
    elector = LeaderElector(
        server.client, name="scheduler", identity="a", timing=timing, clock=clock, rng=random.Random(1)
    )
    assert await elector._try_acquire()
    elector.leading = True
    assert await elector._try_acquire()
    assert elector._seconds_left() == timing.renew_deadline_seconds - 7.0
