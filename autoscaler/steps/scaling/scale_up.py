"""Step: increase node groups for pending pods. Pure."""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import Failure, IncreaseSize, Orders
from nominee.autoscaler.planning.objects.pods import all_pods_are_new
from nominee.autoscaler.planning.scale_up.balancing import ScaleUpInfo
from nominee.autoscaler.planning.scale_up.plan import (
    MAX_NODES_TOTAL_REACHED,
    ScaleUpInput,
    ScaleUpPlan,
    ScaleUpResult,
    plan_scale_up,
    reasons_summary,
)
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core


def scale_up(state: AutoscalerState, context: LoopContext, pending: list[core.Pod]) -> Orders[None]:
    """Plan and execute a scale-up for these pods, unless none is needed or the loop must wait."""
    options, result = state.options, context.result
    if not pending:
        result.scale_up = ScaleUpPlan(result=ScaleUpResult.NOT_NEEDED)
    elif options.max_nodes_total and len(context.ready) >= options.max_nodes_total:
        _report_limited(state, context, pending)
    elif not options.bypassed_scheduler_names and all_pods_are_new(pending, result.at.now):
        context.is_scale_down_disabled = True
        result.scale_up = ScaleUpPlan(result=ScaleUpResult.IN_COOLDOWN)
    else:
        result.activities.add("scaleUp")
        with result.time("scaleUp", state.clock):
            plan = result.scale_up = plan_scale_up(scale_up_input(state, context), pending)
            if plan.max_nodes_total_reached:
                _report_max_nodes_total(state, context)
            if plan.scale_ups:
                yield from execute_scale_up(state, context, plan)
        if plan.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR):
            for pod, reasons in plan.remaining:
                _report_not_triggered(context, pod, reasons_summary(reasons))


def scale_up_input(state: AutoscalerState, context: LoopContext) -> ScaleUpInput:
    """Return the input of scale-up planning in this loop."""
    return ScaleUpInput(
        options=state.options,
        snapshot=context.snapshot,
        registry=state.registry,
        view=state.view,
        templates=context.templates,
        nodes=context.snapshot.nodes(),
        rng=state.rng,
        at=context.result.at,
    )


def execute_scale_up(state: AutoscalerState, context: LoopContext, plan: ScaleUpPlan) -> Orders[None]:
    """Increase the groups of the plan, one after the other; end at the first that the provider refuses."""
    events = context.result.events
    for info in plan.scale_ups:
        group = info.group
        sizes = f"{info.new_size} instead of {group.target} (max: {group.max})"
        events.status("Normal", "ScaledUpGroup", f"Scale-up: setting group {group.id} size to {sizes}")
        failure = yield from IncreaseSize(group.id, info.delta)
        if failure is not None:
            _fail(state, context, info, failure, plan)
            return
        state.registry.register_scale_up(group.id, info.delta, context.result.at.monotonic)
        state.cooldowns.group_scaled_up(group.id, state.clock.monotonic())
        state.view = state.view.with_target(group.id, info.new_size)
        events.status("Normal", "ScaledUpGroup", f"Scale-up: group {group.id} size set to {sizes}")
    state.registry.recalculate(state.view)
    state.cooldowns.scaled_up(context.result.at.monotonic)
    infos = " ".join(map(str, plan.scale_ups))
    for pod in plan.triggered:
        events.about(pod, "Normal", "TriggeredScaleUp", f"pod triggered scale-up: [{infos}]")


def _fail(
    state: AutoscalerState, context: LoopContext, info: ScaleUpInfo, failure: Failure, plan: ScaleUpPlan
) -> None:
    """Back the group off; increases before it stay in the plan."""
    group, now = info.group.id, context.result.at.monotonic
    text = f"Scale-up failed for group {group}: {failure}"
    context.result.events.status("Warning", "FailedToScaleUpGroup", text)
    state.registry.register_failed_scale_up(group, info.delta, failure.message, now)
    state.registry.recalculate(state.view)
    plan.result = ScaleUpResult.ERROR
    plan.error = f"failed to increase node group size: {failure}"
    groups = state.view.groups
    plan.scale_ups = [done for done in plan.scale_ups if done.new_size == groups[done.group.id].target]
    plan.exclude(group)


def _report_limited(state: AutoscalerState, context: LoopContext, pending: list[core.Pod]) -> None:
    remaining: list[tuple[core.Pod, dict[str, tuple[str, ...]]]] = [(pod, {}) for pod in pending]
    context.result.scale_up = ScaleUpPlan(result=ScaleUpResult.LIMITED, remaining=remaining)
    for pod in pending:
        _report_not_triggered(context, pod, MAX_NODES_TOTAL_REACHED)
    _report_max_nodes_total(state, context)


def _report_not_triggered(context: LoopContext, pod: core.Pod, reasons: str) -> None:
    text = f"pod didn't trigger scale-up: {reasons}"
    context.result.events.about(pod, "Normal", "NotTriggerScaleUp", text)


def _report_max_nodes_total(state: AutoscalerState, context: LoopContext) -> None:
    text = f"Max total nodes in cluster reached: {state.options.max_nodes_total}"
    context.result.events.status("Warning", "MaxNodesTotalReached", text)
