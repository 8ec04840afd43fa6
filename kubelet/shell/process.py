"""The whole process: nodes, watches, pod workers, heartbeats, cloud.

One watch on pods and one on nodes serve all nodes; what they bring is sorted by node and handled in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import anyio
import anyio.abc

from nominee.kubelet.addresses import CLOUD_NUMBERS, CLOUD_NUMBERS_FROM
from nominee.kubelet.features import ResizePreemptionFlavour, features, status_features
from nominee.kubelet.node.adopted_node import AdoptedShare
from nominee.kubelet.node.node_object import Identity, NodeFacts
from nominee.kubelet.node.state import NodeSettings, NodeState
from nominee.kubelet.node.summary import memory_in_use, summary
from nominee.kubelet.node.swap import swap_predicate
from nominee.kubelet.node.sysctls import SysctlAllowlist
from nominee.kubelet.options import Delays, Heartbeats, NodeShape
from nominee.kubelet.pods.merge_order import merge_order
from nominee.kubelet.shell import metrics
from nominee.kubelet.shell.agent import Agent, Environment
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from nominee.kubelet.shell.cloud import CloudInstance, CloudWatcher, Provider, node_name
from nominee.kubelet.shell.failpoints import ADMIT_BEFORE
from nominee.kubelet.shell.fresh_node import refresh_node
from nominee.kubelet.shell.pod_worker import PodWorker
from nominee.kubelet.shell.registration import Registrar, attempt
from nominee.kubelet.shell.serving import node_endpoints
from nominee.kubelet.shell.timers import Timers
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client import credentials
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.events.correlator import EventCorrelator
from nominee.machinery.features.gates import DEFAULT
from nominee.machinery.process.component import Process
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.debug_state import DebugState
from nominee.machinery.process.serving_port.health import TimedWork
from nominee.machinery.runtime.queues.work_queue import WorkQueue

if TYPE_CHECKING:
    # Starlette is imported with the first page: most processes serve none.
    from starlette.requests import Request
    from starlette.responses import Response

_CLOUD_CLIENT = "kubelets"
WORKERS_MAX = 64
REGISTRATIONS_MAX = 8
BEATS_MAX = 64
"""Beats that are under way at once: as many can share a message."""
DISK_THREADS_MAX = 4
MEASURE_SECONDS = 2.0
DISPATCH_RETRY_SECONDS = 1.0
DISPATCH_SECONDS_MAX = 300.0
"""For all that a watch brought to be handed over; then the kubelet is not healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfig:
    """The options of the command line."""

    nodes: int = 1
    first_node: int = 0
    name_prefix: str = "node-"
    shape: NodeShape = field(default_factory=NodeShape)
    delays: Delays = field(default_factory=Delays)
    beats: Heartbeats = field(default_factory=Heartbeats)
    sysctls: SysctlAllowlist = field(default_factory=lambda: SysctlAllowlist.of(DEFAULT))
    resize_preemption_flavour: ResizePreemptionFlavour = "kep"
    cloud_address: str = ""
    cloud: bool = False
    """Find the cloud's address in D/run/cloud.json."""
    adopts: AdoptedShare | None = None
    """The nodes of another cluster that this process runs."""

    def identities(self) -> list[Identity]:
        numbers = range(self.first_node, self.first_node + self.nodes)
        return [Identity(name=f"{self.name_prefix}{number}", number=number) for number in numbers]


async def run_kubelet(process: Process, config: KubeletConfig) -> None:
    """Run the kubelet until the process is to stop."""
    client = await process.client()
    async with anyio.create_task_group() as group:
        kubelet = Kubelet(process, config, client, group)
        await kubelet.start()
        await process.announce()
        await process.stopping.wait()
        group.cancel_scope.cancel()


class Kubelet:
    """All nodes of the process, with their shared clients and queues."""

    def __init__(
        self, process: Process, config: KubeletConfig, client: Client, group: anyio.abc.TaskGroup
    ) -> None:
        self.process, self.config, self.client, self.group = process, config, client, group
        clock = process.clock
        self.agents: dict[str, Agent] = {}
        self.timers = Timers(clock)
        correlator = EventCorrelator()
        self.recorder, self.container_recorder = (
            CorrelatingRecorder(
                client, "kubelet", queue=queue, clock=clock, instance=process.name, correlator=correlator
            )
            for queue in ("", "containers")
        )
        # Other processes' nodes are of no interest, but one selector cannot name a hundred nodes: all bound
        # pods come, and those of others are dropped on arrival.
        self.pods = Informer(
            client,
            kinds.POD,
            field_selector="spec.nodeName!=",
            clock=clock,
            rng=process.rng,
            indexers={"node": lambda pod: (pod.spec.nodeName,)},
        )
        self.node_objects = Informer(client, kinds.NODE, clock=clock, rng=process.rng)
        self.status = status_features(
            process.version, process.gates, cpu_manager_policy=config.shape.cpu_manager_policy
        )
        facts = NodeFacts(
            version=process.version, declared_features=self.status.declared_features, shape=config.shape
        )
        self.registrar = Registrar(client, clock, facts, config.beats, self.node_objects.get)
        self.worker = PodWorker(client, self.agents.get)
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue(clock)
        self.environment = Environment(
            clock=clock,
            timers=self.timers,
            recorder=self.recorder,
            container_recorder=self.container_recorder,
            enqueue=lambda node, uid: self.queue.add((node, uid)),
            retry=self._retry_due,
            disk=anyio.CapacityLimiter(DISK_THREADS_MAX),
        )
        self._inbox: dict[tuple[str, int], tuple[str, core.Pod | None]] = {}
        """What the watch brought and is still to be handled, by `_inbox_key`: node and pod."""
        self._listed: dict[str, dict[str, core.Pod | None]] = {}
        """The changes of a list that is still read, by node and uid."""
        self._retries: dict[str, None] = {}
        """The nodes whose pending resizes are to be retried, in order."""
        self._arrived = anyio.Event()
        self._dispatching = TimedWork(clock, DISPATCH_SECONDS_MAX, "sync Loop took longer than expected")
        # Not anyio's limiter, which costs as much as the rest of a renewal does.
        self._beats = asyncio.Semaphore(BEATS_MAX)

    async def start(self) -> None:
        """Register the nodes of the command line and begin to serve them."""
        self._watch()
        self.process.serving.health.add("syncloop", self._dispatching.check, ["healthz"])
        self.process.serving.add_route("/debug/allocations", self.debug)
        self.process.serving.add_route("/stats/summary", self.stats)
        state = DebugState(self.process.serving, (self.pods, self.node_objects))
        state.add("nodes", self._pods_by_node)
        endpoints = node_endpoints.NodeEndpoints(self.agents, self.process.serving.health, self.process.clock)
        self.process.serving.add_route(node_endpoints.ROUTE, endpoints.answer)
        group = self.group
        recorders = (self.recorder, self.container_recorder)
        for part in (self.pods, self.node_objects, self.timers, *recorders):
            group.start_soon(part.run)
        group.start_soon(self.queue.run_workers, self.worker.work, WORKERS_MAX)
        self.process.step = "list pods and nodes"
        await self.pods.wait_synced()
        await self.node_objects.wait_synced()
        self.process.step = "register nodes"
        await self._register_all([*self.config.identities(), *self._adopted()])
        group.start_soon(self._dispatch)
        self._measure()
        if self.config.cloud or self.config.cloud_address:
            watcher = CloudWatcher(
                self._provider,
                self.process.clock,
                self._instance_appeared,
                self._instance_disappeared,
            )
            group.start_soon(watcher.run)

    def _provider(self) -> Provider | None:
        """The provider; None as long as it does not serve."""
        if self.config.cloud_address:
            return Provider(self.config.cloud_address)
        run_file = RunFile.read(self.process.directory, "cloud")
        if run_file is None:
            return None
        try:
            shown = credentials.find_certificate(run_file, self.process.directory, _CLOUD_CLIENT)
        except credentials.NoCredential as error:
            self.process.log.warning("Cloud cannot be asked", error=str(error))
            return None
        return Provider(run_file.grpc, shown)

    # Nodes

    async def _register_all(self, identities: Sequence[Identity]) -> None:
        """Run these nodes. Fatal, before any is registered, where a checkpoint is corrupt."""
        limiter = anyio.CapacityLimiter(REGISTRATIONS_MAX)
        restored = [self._restored(identity) for identity in identities]

        async def one(agent: Agent) -> None:
            async with limiter:
                await self._run_node(agent)

        async with anyio.create_task_group() as group:
            for agent in restored:
                group.start_soon(one, agent)

    def _adopted(self) -> Iterable[Identity]:
        """Return the nodes of another cluster that this process runs."""
        share = self.config.adopts
        return () if share is None else share.identities(self.node_objects.list())

    def _restored(self, identity: Identity) -> Agent:
        """Return a node with the checkpoint of an earlier process. Fatal for a corrupt checkpoint."""
        node_features = features(
            self.process.version, self.process.gates, self.config.resize_preemption_flavour
        )
        agent = Agent(
            identity=identity,
            node=NodeState(core.Node(), self._settings(identity), node_features),
            file=CheckpointFile(self.checkpoints, identity.name),
            env=self.environment,
        )
        agent.restore()
        return agent

    async def _run_node(self, agent: Agent) -> None:
        agent.node_changed(await self.registrar.register(agent))
        await refresh_node(self.client, agent, self.pods.by_index("node", agent.name))
        if (node := self.node_objects.get(agent.name)) is not None:
            agent.node_changed(node)
        self.agents[agent.name] = agent
        agent.begin(self.pods.by_index("node", agent.name))
        if agent.adopting:
            # On disk before the mark: without it, the next process would adopt the pods again.
            await agent.checkpointer.save()
            await self.registrar.mark_adopted(agent)
            agent.adopting = False
        self._start_beats(agent)

    def _settings(self, identity: Identity) -> NodeSettings:
        shape, gates = self.config.shape, self.process.gates
        return NodeSettings(
            host_ip=identity.host_ip,
            version=self.process.version,
            delays=self.config.delays,
            status=self.status,
            cpu_manager_policy=shape.cpu_manager_policy,
            memory_manager_policy=shape.memory_manager_policy,
            resizes_exclusive_cpus=gates.enabled("InPlacePodVerticalScalingExclusiveCPUs"),
            resizes_exclusive_memory=gates.enabled("InPlacePodVerticalScalingExclusiveMemory"),
            uses_swap=swap_predicate(shape.swap_behavior),
            memory_usage=memory_in_use,
            sysctls=self.config.sysctls,
        )

    @property
    def checkpoints(self) -> Path:
        return self.process.directory / "kubelet"

    async def _instance_appeared(self, instance: CloudInstance) -> None:
        name = node_name(instance.id)
        number = CLOUD_NUMBERS_FROM + crc32(name.encode()) % CLOUD_NUMBERS
        identity = Identity(name=name, number=number, provider_id=instance.id, template=instance.template)
        self.process.log.info("Instance appeared", node=name, group=instance.group)
        await self._run_node(self._restored(identity))

    async def _instance_disappeared(self, instance: str) -> None:
        agent = self.agents.pop(node_name(instance), None)
        if agent is None:
            return
        self.process.log.info("Instance is gone", node=agent.name)
        agent.stopped = True
        self.registrar.forget(agent)
        await agent.checkpointer.remove()

    # Heartbeats

    def _start_beats(self, agent: Agent) -> None:
        """Renew the lease at once, and then do each beat at the node's own place in the interval."""
        beats = self.config.beats
        self._beat(agent, beats.lease_interval, "Renewing the lease", self.registrar.renew, now=True)
        what, needed = "Writing the node's status", self.registrar.needs_report
        self._beat(agent, beats.status_frequency, what, self.registrar.report, needed=needed)

    def _beat(
        self,
        agent: Agent,
        interval: float,
        what: str,
        call: Callable[[Agent], Awaitable[object]],
        *,
        needed: Callable[[Agent], bool] = lambda _: True,
        now: bool = False,
    ) -> None:
        async def beat() -> None:
            async with self._beats:
                if not agent.stopped:
                    await attempt(what, agent, call)

        def due() -> bool:
            if not agent.stopped and needed(agent):
                self.group.start_soon(beat)
            return not agent.stopped

        place = crc32(f"{what}/{agent.name}".encode()) / 2**32
        if now:
            self.group.start_soon(beat)
        self.timers.every(interval, due, first=interval * (place if not now else 0.5 + 0.5 * place))

    # Pods

    def _watch(self) -> None:
        self.pods.on_change(self._pod_seen, deletions=False)
        self.pods.add_handler(on_delete=lambda pod, _: self._pod_gone(pod))
        self.pods.add_batch_handler(self._list_seen)
        self.node_objects.on_change(self._node_seen, deletions=False)

    def _pod_seen(self, pod: core.Pod) -> None:
        if pod.spec.nodeName in self.agents:
            self._put(pod, pod)

    def _pod_gone(self, pod: core.Pod) -> None:
        if pod.spec.nodeName in self.agents:
            self._put(pod, None)

    def _put(self, pod: core.Pod, newest: core.Pod | None) -> None:
        node, uid = pod.spec.nodeName, pod.metadata.uid
        if self.pods.replacing:
            self._listed.setdefault(node, {})[uid] = newest
            return
        self._inbox[_inbox_key(uid, newest)] = (node, newest)
        self._arrived.set()

    def _list_seen(self) -> None:
        """Put the changes of a list into the inbox, in the order of a kubelet that merges the list."""
        listed, self._listed = self._listed, {}
        for node, pods in listed.items():
            if (agent := self.agents.get(node)) is not None:
                for uid, pod in merge_order(agent.node.pods, pods.items()):
                    self._inbox[_inbox_key(uid, pod)] = (node, pod)
                self._arrived.set()

    def _node_seen(self, node: core.Node) -> None:
        agent = self.agents.get(node.metadata.name)
        if agent is not None:
            agent.node_changed(node)

    async def _dispatch(self) -> None:
        """Hand over the changes from the watch, node by node, in the order of arrival."""
        while True:
            await self._arrived.wait()
            self._arrived = anyio.Event()
            inbox, self._inbox = self._inbox, {}
            retries, self._retries = self._retries, {}
            by_node: dict[str, list[tuple[str, core.Pod | None]]] = {}
            for (uid, _), (node, pod) in inbox.items():
                by_node.setdefault(node, []).append((uid, pod))
            with self._dispatching:
                for node, changes in by_node.items():
                    await self._hand_over(node, changes)
                for node in retries:
                    await self._retry(node)

    async def _hand_over(self, node: str, changes: list[tuple[str, core.Pod | None]]) -> None:
        agent = self.agents.get(node)
        if agent is None:
            return
        try:
            for uid, pod in {uid: pod for uid, pod in changes if pod is not None}.items():
                if uid not in agent.node.pods:
                    await ADMIT_BEFORE.hit(pod=key_of(pod), node=node)
        except Exception as error:  # noqa: BLE001  # an armed failpoint: the pods wait, and come again
            self.process.log.warning("Admission failed, will retry", node=node, error=str(error))
            self.timers.after(DISPATCH_RETRY_SECONDS, lambda: self._put_back(node, changes))
            return
        gone = {uid for uid, pod in changes if pod is None}
        await refresh_node(self.client, agent, [pod for _, pod in changes if pod is not None], gone)
        if not agent.stopped:
            agent.observe(changes)

    def _retry_due(self, node: str) -> None:
        self._retries[node] = None
        self._arrived.set()

    async def _retry(self, node: str) -> None:
        agent = self.agents.get(node)
        if agent is None:
            return
        await refresh_node(self.client, agent)
        if not agent.stopped:
            agent.retry()

    def _put_back(self, node: str, changes: list[tuple[str, core.Pod | None]]) -> None:
        """Put changes back, as the pods are now: newer changes may have been handed over in the meantime."""
        for uid, pod in changes:
            newest = self.pods.get_by_key(key_of(pod)) if pod is not None else None
            if newest is not None and newest.metadata.uid != uid:
                newest = None
            self._inbox.setdefault(_inbox_key(uid, newest), (node, newest))
        self._arrived.set()

    def _measure(self) -> None:
        """Set the gauges, from time to time: not with each event."""
        running = sum(len(agent.runtime.sandboxes) for agent in self.agents.values())
        metrics.measure((agent.node for agent in self.agents.values()), running)
        metrics.NODES.set(len(self.agents))
        self.timers.after(MEASURE_SECONDS, self._measure)

    # Served on the process's port

    def _pods_by_node(self) -> dict[str, list[str]]:
        """Return the uids of each node's pods."""
        return {name: sorted(agent.node.pods) for name, agent in self.agents.items()}

    async def stats(self, request: Request) -> Response:
        """`GET /stats/summary`: kubelet's Summary of each node of the process, in a list."""
        from starlette.responses import JSONResponse

        now = self.process.clock.now()
        return JSONResponse(
            [summary(name, node_endpoints.sandboxes(agent), now) for name, agent in self.agents.items()]
        )

    async def debug(self, request: Request) -> Response:
        """`GET /debug/allocations?node=NAME`: the resources allocated and in force, by pod."""
        from starlette.responses import JSONResponse

        asked = request.query_params.get("node")
        document = {}
        for name, agent in sorted(self.agents.items()):
            if asked in (None, name):
                document[name] = _describe(agent)
        return JSONResponse(document)


def _inbox_key(uid: str, pod: core.Pod | None) -> tuple[str, int]:
    """Return the key under which a pod's changes are merged: by generation, -1 for one that is gone.

    Only with a new generation a pod can ask for other resources, and only its end gives all of them back.
    These have their own places among the changes of other pods; all else is as good at its first place.
    """
    return uid, pod.metadata.generation if pod is not None else -1


def _describe(agent: Agent) -> dict[str, object]:
    node = agent.node
    pods = {}
    for uid, record in node.pods.items():
        sandbox = agent.runtime.sandboxes.get(uid)
        pods[str(key_of(record.pod))] = {
            "uid": uid,
            "state": record.state,
            "allocated": node.allocated(record).to_json(),
            "actuated": sandbox.in_force().to_json() if sandbox is not None else None,
            "pending": record.pending.reason if record.pending is not None else "",
            "inProgress": record.in_progress is not None,
            "transitions": record.log or [],
        }
    waiting = [node.pods[uid].pod for uid in node.queue if uid in node.pods]
    return {"pods": pods, "queue": [str(key_of(pod)) for pod in waiting]}
