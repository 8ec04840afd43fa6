"""The third set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from google.protobuf.message import Message

from nominee.apiserver.process.server_leases import LEASE_SECONDS, Endpoint, ServerLeases
from nominee.apiserver.registry.services import node_ports
from nominee.apiserver.registry.services.allocation import Claim
from nominee.apiserver.storage.interface import StorageUnavailable
from nominee.autoscaler.actuation.deletion_states import DeletionEvent
from nominee.autoscaler.actuation.eviction import evict_pod
from nominee.autoscaler.actuation.node_deletion import NodeDeletion
from nominee.autoscaler.options import Options
from nominee.autoscaler.orders import CheckPodsOnNode, ErrorType, EvictPod, Failure, RunInParallel
from nominee.autoscaler.planning.objects.observation import NodeGroup
from nominee.autoscaler.planning.scale_up.expander import ScaleUpOption, best_option
from nominee.controllers.endpoints.shell.slices import EndpointSliceController
from nominee.controllers.horizontal_pod_autoscalers.autoscaling import Sync, decide
from nominee.controllers.horizontal_pod_autoscalers.normalization import History
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.controllers.stateful_sets.shell.stateful_sets import StatefulSetController
from nominee.kubelet.instructions import PatchStatus
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import ObjectKey, copy_of, key_of
from nominee.machinery.api.pb import core, storage
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.scheduling.volume_matching import claim_reference, prebound_volume
from nominee.machinery.wire import codec
from nominee.scheduler.framework.api.events import QueueingHint
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Handle
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.preemption.evictions import Evictions
from nominee.scheduler.queue.scheduling_queue import PrioritySchedulingQueue, QueueProfile
from tests.controllers.builders import node as stored_node
from tests.controllers.builders import pod as stored_pod
from tests.controllers.contexts import context_of
from tests.controllers.endpoints.builders import backend, service
from tests.controllers.horizontal_pod_autoscalers.builders import CPU, moment, row, scale
from tests.controllers.horizontal_pod_autoscalers.builders import autoscaler as horizontal_autoscaler
from tests.controllers.horizontal_pod_autoscalers.builders import pod as autoscaled_pod
from tests.kubelet.executor import Executor, container, new_pod, node_object
from tests.mutations.proofs.memory_storage import MemoryStorage
from tests.scheduler.builders import Desk, desk, node, pod
from tests.scheduler.performing import performer
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

ORDERS_MAX = 100

# --- scheduler ---


def desk_of(*objects: Message) -> Desk:
    """Return a scheduler of a cluster; the nodes and the bound pods among the objects are in its snapshot."""
    api = FakeApi.of(*objects)
    made = desk(environment={"client": api, "listers": api.listers()})
    for obj in objects:
        if isinstance(obj, core.Node):
            made.cache.put_node(obj)
        elif isinstance(obj, core.Pod) and obj.spec.nodeName:
            made.cache.add_pod(PodInfo(obj))
    made.cache.update_snapshot(made.framework.snapshot)
    return made


def fitting(on: Desk, who: PodInfo) -> list[str]:
    """Return the names of the nodes that the pod fits."""
    snapshot = on.framework.snapshot
    try:
        search, _ = find_feasible(on.framework, CycleState(), who, snapshot)
    except FitError:
        return []
    return sorted(snapshot.nodes[row].name for row in search.rows.tolist())


def test_affinity_to_pods_that_do_not_run_is_not_satisfied() -> None:
    selector = {"matchLabels": {"app": "database"}}
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    database = pod("database", on="n1").pod
    assert fitting(desk_of(node("n1"), node("n2"), database), pod("web", affinity=affinity)) == []
    database.metadata.labels["app"] = "database"
    assert fitting(desk_of(node("n1"), node("n2"), database), pod("web", affinity=affinity)) == ["n1"]


def claim(name: str = "data", **annotations: str) -> core.PersistentVolumeClaim:
    """Return a claim that waits for its first consumer."""
    spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    return codec.from_json(core.PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def user(name: str, on: str = "") -> PodInfo:
    """Return a pod that uses the claim `data`."""
    return pod(name, on=on, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def fast_class() -> storage.StorageClass:
    return storage.StorageClass(
        metadata={"name": "fast"}, provisioner="delayed.nominee.dev", volumeBindingMode="WaitForFirstConsumer"
    )


def test_a_volume_that_is_attached_takes_no_more_room() -> None:
    limits = storage.CSINode(metadata={"name": "n1"})
    limits.spec.drivers.add(name="delayed.nominee.dev", nodeID="n1").allocatable.count = 1
    shared = (node("n1"), limits, fast_class(), claim(), user("first", on="n1").pod)
    assert fitting(desk_of(*shared), user("second")) == ["n1"]


def test_the_end_of_the_emptiest_domain_may_help() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    waiting = pod("web", topologySpreadConstraints=[constraint])
    plugin = desk().framework.plugins["PodTopologySpread"]
    assert isinstance(plugin, PodTopologySpread)
    gone = node("n1")
    gone.metadata.labels["zone"] = "a"
    assert plugin._after_node_change(waiting, gone, None) is QueueingHint.Queue
    assert plugin._after_node_change(waiting, node("n2"), None) is QueueingHint.Skip


async def test_a_victim_that_was_marked_before_is_deleted() -> None:
    victim, preemptor = pod("victim", on="n1"), pod("vip", priority=1000)
    api = FakeApi.of(victim.pod, preemptor.pod)
    api.rejections["delete"] = [errors.service_unavailable("it was killed")]
    framework = desk(environment={"client": api, "listers": api.listers()}).framework
    evictions = Evictions(framework, "DefaultPreemption")
    for refused in (True, False):
        shown = PodInfo(api.pod("victim"))
        work = evictions._evict(Candidate("n1", (shown,), 0), preemptor, shown)
        with pytest.raises(errors.StatusError) if refused else nullcontext():
            await performer(framework).run(work)
    assert api.find(kinds.POD, "victim", "default") is None


def test_a_nomination_of_an_earlier_process_counts() -> None:
    queue = PrioritySchedulingQueue(
        profiles={"default-scheduler": QueueProfile()},
        sort=PrioritySort({}, cast("Handle", None)),
        nominator=Nominator(),
    )
    queue.add(pod("p", nominated="n1"), 0.0)
    assert queue.nominator.node_of("uid-p") == "n1"


def test_a_claim_that_has_its_node_pins_the_pod() -> None:
    given: Any = {"volume.kubernetes.io/selected-node": "n1"}
    cluster = desk_of(node("n1"), node("n2"), fast_class(), claim(**given))
    assert fitting(cluster, user("p")) == ["n1"]
    plugin: Any = cluster.framework.plugins["VolumeBinding"]
    claims = plugin.binder.claims_of(user("p"))
    other = cluster.framework.snapshot.get("n2")
    assert plugin.binder.find(claims, other)[1]


# --- kubelet ---


def kubelet(*pods: core.Pod) -> Executor:
    """Return a node of 4 cpus with a kubelet that runs these pods."""
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    for made in pods:
        on.store(made)
    on.list_pods()
    on.work()
    return on


def test_a_lowered_deadline_counts() -> None:
    on = kubelet(new_pod("p", activeDeadlineSeconds=3600))
    changed = copy_of(on.api["p"])
    changed.spec.activeDeadlineSeconds = 5
    on.store(changed)
    on.observe("p")
    on.work()
    assert on.api["p"].status.phase == "Running"
    for _ in range(3):
        on.pass_time(60)
        on.work()
    assert (on.api["p"].status.phase, on.api["p"].status.reason) == ("Failed", "DeadlineExceeded")


def test_a_status_is_for_one_pod_only() -> None:
    on = kubelet(new_pod("p"))
    patches = [each.patch for each in on.performed if isinstance(each, PatchStatus)]
    assert patches
    assert all(each["metadata"] == {"uid": "uid-p"} for each in patches)


def test_pods_that_arrive_together_share_the_room() -> None:
    on = kubelet(*(new_pod(name, container("main", cpu="3")) for name in ("a", "b")))
    assert [on.api[name].status.phase for name in ("a", "b")] == ["Running", "Failed"]
    assert on.api["b"].status.reason == "OutOfcpu"


# --- autoscaler ---


def option(group: str, cpu: str, nodes: int, pods: int) -> ScaleUpOption:
    """Return an option of nodes with so much cpu for pods of one cpu."""
    made = node(group, cpu=cpu)
    made.status.capacity["memory"].string = "0"
    target = NodeGroup(id=group, min=0, max=10, target=0)
    return ScaleUpOption(target, nodes, tuple(pod(f"p{n}").pod for n in range(pods)), NodeInfo(group, made))


def test_the_waste_of_several_nodes_is_that_of_all() -> None:
    small, large = option("small", "3", 2, 4), option("large", "4", 1, 4)
    assert best_option((small, large), "least-waste", random.Random(1)) is large


def result_of(orders: Generator[Any, Any, Any], results: Mapping[type, object]) -> Any:
    """Return what orders lead to, where those of these types have these results, and all others None."""
    result: object = None
    for _ in range(ORDERS_MAX):
        try:
            order = orders.send(result)
        except StopIteration as end:
            return end.value
        result = results.get(type(order))
    raise AssertionError(f"there is no end of orders: {order}")


async def test_a_drain_waits_for_the_grace_periods() -> None:
    clock = FakeClock()
    state = SimpleNamespace(options=Options(), clock=clock)
    deletion = NodeDeletion(cast("Any", state), node("n1"), "g", drain=True)
    deletion._pods = (pod("p", on="n1").pod,)
    assert result_of(deletion._evict(), {RunInParallel: ("",)}) is DeletionEvent.EVICTED
    await clock.advance(60)
    left = deletion._check_pods()
    assert result_of(left, {CheckPodsOnNode: deletion._pods}) is DeletionEvent.PODS_REMAIN


def test_a_pod_that_is_gone_need_not_be_evicted() -> None:
    gone = Failure(ErrorType.API_CALL, "not found", not_found=True)
    eviction = evict_pod(pod("p", on="n1").pod, Options(), FakeClock(), required=True)
    assert result_of(eviction, {EvictPod: gone}) == ""


# --- controllers ---


def test_the_end_of_a_claim_wakes_the_set_of_its_pod() -> None:
    woken = list[ObjectKey]()
    controller = cast("Any", SimpleNamespace(queue=SimpleNamespace(add=woken.append)))
    gone = claim("data-web-1")
    gone.metadata.ownerReferences.add(apiVersion="v1", kind="Pod", name="web-1", uid="u", controller=True)
    StatefulSetController._claim_gone(controller, gone)
    assert woken == [ObjectKey("default", "web")]


def test_nothing_is_scaled_down_while_a_metric_is_unknown() -> None:
    target = {"type": "AverageValue", "averageValue": "10"}
    external = {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}
    pods = [autoscaled_pod(f"p{number}") for number in range(4)]
    rows = [row(each.metadata.name, "5m") for each in pods]
    policies = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": policies}}
    for metrics, replicas in (((CPU,), 1), ((CPU, external), None)):
        sync = Sync.of(horizontal_autoscaler(*metrics, behavior=behavior), moment())
        found = decide(sync, scale(4), rows, pods, History(), Settings())
        assert (None if found is None else found.replicas) == replicas


async def test_an_eviction_that_failed_is_tried_again_at_once() -> None:
    clock, taint = FakeClock(), {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    toleration = {"key": taint["key"], "operator": "Exists", "tolerationSeconds": 300}
    tolerant = stored_pod(uid="u", node="n1", phase="Running", tolerations=[toleration])
    tries = list[str]()

    async def evict(pod: core.Pod) -> None:
        tries.append(pod.metadata.name)
        if len(tries) == 1:
            raise errors.service_unavailable("it was killed")

    made = SimpleNamespace(
        pods=SimpleNamespace(get=lambda name, namespace: tolerant),
        nodes=SimpleNamespace(get={"n1": stored_node(taints=[taint])}.get),
        clock=clock,
        _due={},
        _comparison=False,
        _evicted=set(),
        _evict=evict,
    )
    controller = cast("TaintEviction", made)
    assert await TaintEviction.reconcile(controller, key_of(tolerant)) == 300.0
    await clock.advance(300)
    with pytest.raises(errors.StatusError):
        await TaintEviction.reconcile(controller, key_of(tolerant))
    await clock.advance(1)
    assert await TaintEviction.reconcile(controller, key_of(tolerant)) is None
    assert tries == ["p", "p"]


async def test_a_pod_gets_its_endpoint_once_its_node_is_seen() -> None:
    api, clock = FakeApi(), FakeClock()
    api.put(service())
    api.put(backend(0, labels={"app": "web"}))
    context = context_of(api, clock)
    controller = EndpointSliceController(context)

    def addresses() -> list[str]:
        slices = api.all_of(kinds.ENDPOINT_SLICE)
        return [text for found in slices for each in found.endpoints for text in each.addresses]

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.informers.run)
            await context.informers.wait_synced()
            again = await controller.reconcile(ObjectKey("default", "web"))
            assert addresses() == []
            tasks.cancel_scope.cancel()
    assert again is not None


# --- apiserver ---


def test_a_service_that_leaves_the_nodes_releases_its_ports() -> None:
    old = core.ServiceSpec(type="NodePort")
    old.ports.add(port=80, nodePort=30080, protocol="TCP")
    new = core.ServiceSpec(type="ClusterIP")
    new.ports.add(port=80, protocol="TCP")
    assert node_ports.concerns(new, old)
    assert not node_ports.concerns(new, new)
    taken = node_ports.TakenPorts(node_ports.PortRange()).with_ports([30080])
    assert node_ports.change(new, old, taken, random.Random(1)).released == [30080]


async def test_a_write_of_unknown_outcome_releases_nothing() -> None:
    given = list[tuple[list[str], list[int]]]()

    async def give_back(found: Iterable[str], ports: Iterable[int]) -> None:
        given.append((list(found), list(ports)))

    taken = Claim(give_back)
    taken.taken_addresses, taken.taken_ports = ["10.0.0.7"], [30080]
    await taken.finish(errors.timeout("etcdserver: request timed out"))
    await taken.finish(StorageUnavailable("etcd went away", maybe_applied=True))
    assert given == []
    await taken.finish(errors.conflict(kinds.SERVICE, "web"))
    assert given == [(["10.0.0.7"], [30080])]


class TimedStorage(MemoryStorage):
    """A storage that notes the time to live of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, int] = {}

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        self.seconds[key] = lease_seconds
        return await super().create(key, data)

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        self.seconds[key] = lease_seconds
        return await super().update(key, data, expected_revision=expected_revision)


async def test_a_renewed_lease_of_a_server_ends_by_itself() -> None:
    storage_, own = TimedStorage(), Endpoint(6443, "192.0.2.7")
    leases = ServerLeases(cast("Any", storage_))
    for _ in range(2):
        await leases.renew([own])
        assert storage_.seconds == {own.key: LEASE_SECONDS}


# --- machinery ---


def test_a_released_volume_is_not_for_the_next_claim_of_the_name() -> None:
    released, again = core.PersistentVolume(metadata={"name": "pv"}), claim()
    released.spec.claimRef.CopyFrom(claim_reference(claim()))
    released.spec.capacity["storage"].string = "1Gi"
    assert prebound_volume(again, [released]) is released
    again.metadata.uid = "uid-of-the-next"
    assert prebound_volume(again, [released]) is None
