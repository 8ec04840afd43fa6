"""One look at the cluster, in upstream's steps. The planners decide; ports do what they decide.

Source: cluster-autoscaler 1.36, static autoscaler. Where `--compat=fixed` differs it says which hole it
closes (H1 to H4, docs/design).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from autoscaler import points
from autoscaler.actuation import Actuator, TaintError
from autoscaler.loop_context import LoopContext
from autoscaler.options import Compat, Options
from autoscaler.planning import pods, readiness, taints
from autoscaler.planning.actionable_cluster import NO_NODES, empty_cluster
from autoscaler.planning.balancing import ScaleUp
from autoscaler.planning.cluster_state import ClusterState
from autoscaler.planning.cooldowns import Cooldowns
from autoscaler.planning.deletions import Deletions
from autoscaler.planning.dynamic_resources import DynamicResources, Listers
from autoscaler.planning.events import Events
from autoscaler.planning.nominations import Nominations
from autoscaler.planning.observation import CloudView, Observation
from autoscaler.planning.readiness import filter_out_unready
from autoscaler.planning.scale_down import Cropped, Removal, ScaleDownInput, ScaleDownPlanner, crop
from autoscaler.planning.scale_up import (
    MAX_TOTAL,
    ScaleUpInput,
    ScaleUpPlan,
    ScaleUpResult,
    plan_min_size,
    plan_scale_up,
    summary,
)
from autoscaler.planning.snapshot import ClusterSnapshot, Hints
from autoscaler.planning.soft_taints import soft_taint_changes
from autoscaler.planning.templates import Templates, fresh
from autoscaler.ports import Cloud, CloudError, Cluster
from autoscaler.repairs import Repairs
from autoscaler.result import (
    SCALE_DOWN_ERROR,
    SCALE_DOWN_IN_COOLDOWN,
    SCALE_DOWN_NO_CANDIDATES,
    SCALE_DOWN_NO_NODE_DELETED,
    SCALE_DOWN_STARTED,
    LoopResult,
    error_type,
)
from machinery.api.errors import StatusError
from machinery.api.pb import core
from machinery.features.gates import Gates
from machinery.runtime.clock import Clock, from_time
from machinery.runtime.failpoints import FailpointError
from scheduler.framework.types import PodInfo

_INFOS_SPARE = 1000
EMPTY_CLUSTER_SECONDS = 600.0
"""Nodes may take so long to become ready after the start before an event reports that none is."""


class Autoscaler:
    """Looks again and again; keeps clocks and back-offs in between."""

    def __init__(
        self,
        options: Options,
        cluster: Cluster,
        cloud: Cloud,
        actuator: Actuator,
        *,
        gates: Gates,
        clock: Clock,
        rng: random.Random,
        listers: Listers | None = None,
    ) -> None:
        self.options, self.cluster, self.cloud, self.actuator = options, cluster, cloud, actuator
        self._gates, self._clock, self._rng = gates, clock, rng
        self._devices = DynamicResources(listers or {})
        self.state = ClusterState(options)
        self.planner = ScaleDownPlanner(options)
        self.templates = Templates(gates, clock, force_daemon_sets=options.force_ds)
        self.nominations = Nominations(options.nomination_timeout)
        self.view = CloudView()
        self.cooldowns = Cooldowns(options)
        self._started = clock.now()
        self._pending_hints = Hints()
        self._infos: dict[str, PodInfo] = {}
        self._cleaned_up = False
        self._repairs = Repairs(options, self.state, cloud)
        actuator.deleted = self._node_deleted
        actuator.refused = lambda group: self.cooldowns.group_failed(group, clock.now())
        self.on_deleted: Callable[[core.Node, str, bool], None] = lambda node, group, drain: None

    def _node_deleted(self, node: core.Node, group: str, drain: bool) -> None:
        now = self._clock.now()
        self.state.register_deletion(group, now)
        self.cooldowns.group_deleted(group, now)
        self.on_deleted(node, group, drain)

    async def run_once(self) -> LoopResult:
        """Run one loop. Errors of the cluster or the provider end it, and are in the result."""
        result = LoopResult(at=self._clock.now(), activities={"main"})
        try:
            await points.LOOP_BEFORE.hit()
            result.at = self._clock.now()  # a loop that was held up starts now
            await self._loop(result)
        except (CloudError, StatusError, FailpointError) as error:
            result.error, result.error_type = str(error), error_type(error)
        self.cluster.record(result.events)
        return result

    async def _loop(self, result: LoopResult) -> None:
        now = result.at
        observation = self.cluster.observe()
        deletions = self.actuator.deletions.snapshot()
        with result.timed("cloudProviderRefresh", self._clock):
            view = self.view = await self.cloud.refresh(observation.nodes)
        self._devices.refresh()
        observation = replace(observation, nodes=self._unstarted_as_unready(observation, view, now))
        if not self._cleaned_up:
            await self._clean_up(observation, view, result.events)
            self._cleaned_up = True
        if self._ends_for_empty_cluster(observation, result):
            return
        with result.timed("updateClusterState", self._clock):
            context = self._look(observation, view, deletions, result)
            self.state.update(observation.nodes, view, now, result.events)
        try:
            await self._act(context)
        finally:
            self.view = context.view

    async def _act(self, context: LoopContext) -> None:
        result = context.result
        await self._repairs.revert_timed_out(context)
        await self._repairs.remove_unregistered(context)
        if not self.state.is_cluster_healthy():
            self.planner.forget()
            result.events.status("Warning", "ClusterUnhealthy", "Cluster is unhealthy")
            return
        await self._repairs.remove_failed_instances(context)
        if await self._repairs.fix_sizes(context):
            return
        result.activities.add("autoscaling")
        self._add_upcoming(context)
        with result.timed("filterOutSchedulable", self._clock):
            pending = self._pods_to_help(context)
        await self._scale_up(context, pending)
        if self.options.scale_down_enabled:
            await self._scale_down(context)
        if (
            self.options.enforce_node_group_min_size
            and result.scale_up.result is not ScaleUpResult.SUCCESSFUL
        ):
            result.activities.add("scaleUp")
            plan = plan_min_size(self._scale_up_input(context))
            if plan.orders:
                await self._execute(context, plan)
                result.scale_up = plan

    # Looking

    async def _clean_up(self, observation: Observation, view: CloudView, events: Events) -> None:
        """A former life may have died in the middle of a deletion."""
        for node in observation.nodes:
            name = node.metadata.name
            tainted = taints.taint_time(node, taints.TO_BE_DELETED) is not None
            if tainted and view.group(name) is not None and name not in self.actuator.deletions.names():
                await points.UNTAINT_BEFORE.hit(node=name)
                await self.cluster.clean_to_be_deleted(name)
                text = f"removed {taints.TO_BE_DELETED} taint from node {name}"
                events.about(node, "Normal", "ClusterAutoscalerCleanup", text)

    def _unstarted_as_unready(
        self, observation: Observation, view: CloudView, now: float
    ) -> tuple[core.Node, ...]:
        """Return the nodes; those that have not started yet are not ready.

        A node may take as long to publish its devices as it may take to become ready.
        """
        slices = self._devices.slices

        def lacks_devices(node: core.Node) -> bool:
            name = node.metadata.name
            new = from_time(node.metadata.creationTimestamp) + self.options.max_node_startup_time > now
            group = view.group_of_node.get(name, "")
            return new and self.templates.lacks_devices(group, slices.of_node(name))

        return filter_out_unready(observation.nodes, lacks_devices)

    def _ends_for_empty_cluster(self, observation: Observation, result: LoopResult) -> bool:
        """Report whether the cluster is empty and must not be scaled up from zero."""
        if not self.options.scale_up_from_zero:
            result.empty_cluster = empty_cluster(observation.nodes)
        if not result.empty_cluster:
            return False
        self.planner.forget()
        if result.empty_cluster == NO_NODES or self._started + EMPTY_CLUSTER_SECONDS < result.at:
            result.events.status("Warning", "ClusterUnhealthy", result.empty_cluster)
        return True

    def _info(self, pod: core.Pod) -> PodInfo:
        """What is derived from a pod, kept while the pod is the same object."""
        found = self._infos.get(pod.metadata.uid)
        if found is None or found.pod is not pod:
            found = self._infos[pod.metadata.uid] = PodInfo(pod)
        return found

    def _look(
        self, observation: Observation, view: CloudView, deletions: Deletions, result: LoopResult
    ) -> LoopContext:
        options = self.options
        arranged = pods.arrange(observation.pods, options)
        if len(self._infos) > 2 * len(arranged.scheduled) + _INFOS_SPARE:
            self._infos.clear()
        nodes = sorted(observation.nodes, key=lambda node: node.metadata.name)
        snapshot = ClusterSnapshot(nodes, gates=self._gates, clock=self._clock, devices=self._devices)
        cutoff = options.expendable_pods_priority_cutoff
        for pod in arranged.scheduled:
            if not pods.is_expendable(pod, cutoff):
                snapshot.put(self._info(pod), pod.spec.nodeName)
        nominated = [pod for pod in arranged.nominated if not pods.is_expendable(pod, cutoff)]
        lost = [pod for pod in nominated if not snapshot.put(pod, pod.status.nominatedNodeName)]
        ready = [node for node in nodes if readiness.is_ready_and_schedulable(node)]
        context = LoopContext(observation, view, deletions, arranged, snapshot, {}, nodes, ready, result)
        if options.compat is Compat.FIXED:
            self.nominations.update(nominated, result.at)
            context.holding = self.nominations.holding(result.at)
            # H4: a nomination to a node that is gone must not hide the pod. One whose machine is only just
            # coming finds its place again among the upcoming nodes.
            arranged.unschedulable += lost
        context.templates = self.templates.update(view, nodes, snapshot, observation.daemon_sets, result.at)
        return context

    def _add_upcoming(self, context: LoopContext) -> None:
        """Placeholders for nodes on their way, instead of those of them that are registered already."""
        counts, registered = self.state.upcoming(context.view.groups, context.result.at)
        placeholders: dict[str, list[str]] = {}
        for group, count in counts.items():
            template = context.templates.get(group)
            for number in range(count if template is not None else 0):
                assert template is not None
                info = fresh(template, f"upcoming-{number}", upcoming=True)
                context.snapshot.add_node(info)
                placeholders.setdefault(group, []).append(info.name)
        gone = set(registered)
        context.nodes = [node for node in context.nodes if node.metadata.name not in gone]
        for name in registered:
            if context.snapshot.get(name) is None:
                continue
            removed = context.snapshot.remove_node(name)
            if self.options.compat is Compat.FIXED:
                self._keep_nominated(context, name, removed, placeholders)

    def _keep_nominated(
        self, context: LoopContext, name: str, removed: Sequence[core.Pod], placeholders: dict[str, list[str]]
    ) -> None:
        """H3: pods nominated to a node that is not ready yet keep their place on its placeholder."""
        group = context.view.group_of_node.get(name, "")
        places = placeholders.get(group, [])
        place = places.pop(0) if places else ""
        for pod in removed:
            if not pod.spec.nodeName and not context.snapshot.put(pod, place):
                context.arranged.unschedulable.append(pod)

    def _pods_to_help(self, context: LoopContext) -> list[core.Pod]:
        """Pods that want a node: what the pod list processors leave of the unschedulable ones."""
        options, snapshot = self.options, context.snapshot
        pending = [*context.arranged.unschedulable, *context.arranged.unprocessed]
        context.result.unschedulable_pods = len(context.arranged.unschedulable)
        context.result.unprocessed_pods = len(context.arranged.unprocessed)
        cutoff = options.expendable_pods_priority_cutoff
        pending = [pod for pod in pending if not pods.is_expendable(pod, cutoff)]
        if options.compat is Compat.V1_35:
            # Then only pods that had been tried in vain and were nominated by preemption held their place.
            pending = [
                pod
                for pod in pending
                if not pod.status.nominatedNodeName or not snapshot.put(pod, pod.status.nominatedNodeName)
            ]
        for name in self.actuator.deletions.drained():
            for pod in snapshot.pods_on(name):
                stays = pods.is_mirror(pod) or pods.is_static(pod) or pods.is_daemon(pod)
                if not stays and not pod.metadata.HasField("deletionTimestamp"):
                    snapshot.devices.unreserve(pod)  # it comes again with claims that are new
                    pending.append(pods.unbound(pod))
        pending.sort(key=lambda pod: -pod.spec.priority)
        pending = snapshot.place_all(pending, self._pending_hints, lambda _: True, stop=False)
        self._pending_hints.drop_old()
        pending = [pod for pod in pending if not pods.is_daemon(pod)]
        return pods.without_young(pending, options.new_pod_scale_up_delay, context.result.at)

    # Growing

    def _scale_up_input(self, context: LoopContext) -> ScaleUpInput:
        return ScaleUpInput(
            options=self.options,
            snapshot=context.snapshot,
            state=self.state,
            view=context.view,
            templates=context.templates,
            nodes=context.snapshot.nodes(),
            rng=self._rng,
            now=context.result.at,
        )

    async def _scale_up(self, context: LoopContext, pending: list[core.Pod]) -> None:
        options, result = self.options, context.result
        if not pending:
            result.scale_up = ScaleUpPlan(result=ScaleUpResult.NOT_NEEDED)
            return
        if options.max_nodes_total and len(context.ready) >= options.max_nodes_total:
            result.scale_up = ScaleUpPlan(
                result=ScaleUpResult.LIMITED, remaining=[(pod, {}) for pod in pending]
            )
            for pod in pending:
                text = f"pod didn't trigger scale-up: {MAX_TOTAL}"
                result.events.about(pod, "Normal", "NotTriggerScaleUp", text)
            self._report_max_nodes_total(context)
            return
        if not options.bypassed_scheduler_names and pods.all_are_new(pending, result.at):
            context.scale_down_disabled = True
            result.scale_up = ScaleUpPlan(result=ScaleUpResult.IN_COOLDOWN)
            return
        result.activities.add("scaleUp")
        with result.timed("scaleUp", self._clock):
            plan = result.scale_up = plan_scale_up(self._scale_up_input(context), pending)
            if plan.max_nodes_total_reached:
                self._report_max_nodes_total(context)
            if plan.orders:
                await self._execute(context, plan)
        if plan.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR):
            for pod, reasons in plan.remaining:
                text = f"pod didn't trigger scale-up: {summary(reasons)}"
                result.events.about(pod, "Normal", "NotTriggerScaleUp", text)

    def _report_max_nodes_total(self, context: LoopContext) -> None:
        text = f"Max total nodes in cluster reached: {self.options.max_nodes_total}"
        context.result.events.status("Warning", "MaxNodesTotalReached", text)

    async def _execute(self, context: LoopContext, plan: ScaleUpPlan) -> None:
        """Places the orders, one after the other; ends at the first that is refused."""
        events = context.result.events
        for order in plan.orders:
            group = order.group
            sizes = f"{order.size} instead of {group.target} (max: {group.max})"
            events.status("Normal", "ScaledUpGroup", f"Scale-up: setting group {group.id} size to {sizes}")
            try:
                await points.SCALE_UP_BEFORE.hit(group=group.id, delta=order.delta)
                await self.cloud.increase(group.id, order.delta)
                await points.SCALE_UP_AFTER.hit(group=group.id, delta=order.delta)
            except (CloudError, FailpointError, StatusError) as error:
                self._refused(context, order, str(error), plan)
                return
            self.state.register_increase(group.id, order.delta, context.result.at)
            self.cooldowns.group_scaled_up(group.id, self._clock.now())
            context.view = context.view.with_target(group.id, order.size)
            events.status("Normal", "ScaledUpGroup", f"Scale-up: group {group.id} size set to {sizes}")
        self.state.recalculate(context.view)
        self.cooldowns.scaled_up(context.result.at)
        orders = " ".join(map(str, plan.orders))
        for pod in plan.triggered:
            events.about(pod, "Normal", "TriggeredScaleUp", f"pod triggered scale-up: [{orders}]")

    def _refused(self, context: LoopContext, order: ScaleUp, message: str, plan: ScaleUpPlan) -> None:
        group = order.group.id
        context.result.events.status(
            "Warning", "FailedToScaleUpGroup", f"Scale-up failed for group {group}: {message}"
        )
        self.state.register_failed_increase(group, order.delta, message, context.result.at)
        self.state.recalculate(context.view)
        plan.result = ScaleUpResult.ERROR
        plan.error = f"failed to increase node group size: {message}"
        plan.orders = [done for done in plan.orders if done.size == context.view.groups[done.group.id].target]
        plan.rule_out(group)

    # Shrinking

    async def _scale_down(self, context: LoopContext) -> None:
        result, now = context.result, context.result.at
        candidates = [
            node
            for node in self.planner.candidates(context.view, context.nodes)
            if not self.cooldowns.delays(context.view.group_of_node[node.metadata.name], now)
        ]
        given = ScaleDownInput(
            snapshot=context.snapshot,
            observation=context.observation,
            view=context.view,
            deletions=context.deletions,
            nodes=context.nodes,
            holding=context.holding,
            now=now,
        )
        with result.timed("findUnneeded", self._clock):
            self.planner.update(given, candidates)
        result.in_cooldown = context.scale_down_disabled or self.cooldowns.active(now)
        if not result.in_cooldown:
            result.activities.add("scaleDown")
        if result.in_cooldown or not candidates:
            result.scale_down = SCALE_DOWN_IN_COOLDOWN if result.in_cooldown else SCALE_DOWN_NO_CANDIDATES
            await self._soft_taints(context)
            return
        with result.timed("scaleDown", self._clock):
            empty, drain = self.planner.due(given)
            chosen = crop(self.options, self.actuator.deletions, empty, drain)
            result.scale_down = SCALE_DOWN_NO_NODE_DELETED
            if chosen.empty or chosen.drain:
                await self._start_deletion(context, chosen)
        await self._soft_taints(context)

    async def _start_deletion(self, context: LoopContext, chosen: Cropped) -> None:
        result, now = context.result, context.result.at
        try:
            await self.actuator.start(chosen.empty, chosen.drain, context.view, result.events)
        except TaintError as error:
            self.cooldowns.deletion_failed(now)
            result.scale_down = SCALE_DOWN_ERROR
            result.error, result.error_type = str(error), "apiCallError"
            return
        result.scale_down = SCALE_DOWN_STARTED
        result.empty, result.drained = _names(chosen.empty), _names(chosen.drain)
        self.cooldowns.deletion_started(now)

    async def _soft_taints(self, context: LoopContext) -> None:
        changes = soft_taint_changes(
            context.nodes, context.view, self.planner.unneeded(), self.options.max_bulk_soft_taint_count
        )
        for name, unneeded in changes:
            try:
                await self.cluster.set_deletion_candidate(name, context.result.at if unneeded else None)
            except StatusError:
                continue  # the next loop tries again


def _names(removals: Sequence[Removal]) -> list[str]:
    return sorted(removal.node.metadata.name for removal in removals)
