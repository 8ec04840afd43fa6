"""The recorded cases: read them, and replay them with the shipped loop and executor on a world in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import anyio

from nominee.autoscaler.options import Compat, Options, read
from nominee.autoscaler.planning.objects.events import Event
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult
from nominee.autoscaler.result import LoopResult
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire.values.scalars import parse_time
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World

# The recordings have the events of drains without it.
_UTILIZATION = re.compile(r", utilization: \{[^}]*\}")
LAST_STEP_SECONDS = 600.0


def seconds(text: str) -> float:
    """Parse a timestamp to seconds since the epoch."""
    whole, nanos = parse_time(text)
    return whole + nanos / 1e9


def from_flags(values: Mapping[str, str]) -> Options:
    """Return the options with these flags, which have no leading dashes (`scan-interval`)."""
    named = {flag.replace("-", "_"): text for flag, text in values.items()}
    parsed: dict[str, Any] = {name: read(name, text) for name, text in named.items()}
    return Options(**parsed)


async def replay(case: dict[str, Any], compat: Compat) -> list[dict[str, Any]]:
    """Run a case; return the answers of its steps, in the form of the recording."""
    options = from_flags({**case["options"], "compat": compat.value})
    t0 = seconds(case["t0"])
    clock = FakeClock(t0)
    world = World({group["name"]: group for group in case["nodeGroups"]}, clock)
    world.targets = {group["name"]: group["target"] for group in case["nodeGroups"]}
    for obj in case["objects"]:
        world.apply(obj)
    answers = []
    async with anyio.create_task_group() as tasks:

        def spawn(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
            tasks.start_soon(run)

        autoscaler = Harness(world, options, spawn)
        times = [step["at_seconds"] for step in case["steps"]]
        ends = [at - 0.001 for at in times[1:]] + [times[-1] + LAST_STEP_SECONDS]
        for step, end in zip(case["steps"], ends, strict=True):
            world.events, world.evicted, world.cloud_deleted = [], [], []
            world.increased, world.decreased = {}, {}
            # What a deletion does at the very time of the step happens in the step, before its loop.
            await clock.advance(t0 + step["at_seconds"] - clock.now())
            world.change(step.get("change", {}))
            result = await autoscaler.run_once()
            answer = _at_return(step, result, world, autoscaler)
            world.events = []
            await clock.advance(t0 + end - clock.now())
            answers.append(answer | _until_next(world))
        tasks.cancel_scope.cancel()
    return answers


def _at_return(step: dict[str, Any], result: LoopResult, world: World, autoscaler: Harness) -> dict[str, Any]:
    """Return the answer when the loop has returned."""
    plan = result.scale_up
    planner = autoscaler.state.planner
    answer: dict[str, Any] = {
        "at_seconds": step["at_seconds"],
        "scaleUp": dict(world.increased) or None,
        "scaleUpResult": str(plan.result),
        "podsTriggeredScaleUp": sorted(pod.metadata.name for pod in plan.triggered),
        "noScaleUpReasons": {
            pod.metadata.name: {group: sorted(texts) for group, texts in reasons.items()}
            for pod, reasons in plan.remaining
        },
        "podsAwaitEvaluation": sorted(pod.metadata.name for pod in plan.awaiting),
        "unneeded": planner.unneeded_names(),
        "unremovable": {name: str(why) for name, why in planner.unremovable.reasons.items()},
        "utilization": {
            name: int(used.share * 10_000 + 0.5) / 10_000 for name, used in planner.utilization.items()
        },
        "scaleDownResult": str(result.scale_down),
        "deleted": {"empty": result.empty, "drained": result.drained},
        "taints": world.taints(),
        "unschedulable": sorted(name for name, node in world.nodes.items() if node.spec.unschedulable),
        "events": _events(world.events),
    }
    if world.decreased:
        answer["targetDecreased"] = dict(world.decreased)
    if result.error and plan.result is not ScaleUpResult.ERROR:
        answer["error"] = result.error
    return answer


def _until_next(world: World) -> dict[str, Any]:
    """Return what happened between the loop and the next step."""
    return {
        "evictedPods": sorted(world.evicted),
        "cloudDeleted": sorted(world.cloud_deleted),
        "laterEvents": _events(world.events),
        "taintsBeforeNextStep": world.taints(),
        "targetSizes": dict(world.targets),
    }


def _events(events: Sequence[Event]) -> list[list[str]]:
    rows = []
    for event in events:
        about = "ConfigMap/cluster-autoscaler-status"
        if event.about is not None:
            kind = "Pod" if isinstance(event.about, core.Pod) else "Node"
            about = f"{kind}/{event.about.metadata.name}"
        rows.append([event.type, event.reason, about, _UTILIZATION.sub("", event.message)])
    return sorted(rows)


def expected(case: dict[str, Any], compat: Compat) -> list[list[dict[str, Any]]]:
    """Return the recorded answers of a case; some cases have several."""
    suffix = "_1_35" if compat is Compat.V1_35 and "expect_1_35" in case else ""
    answers: list[list[dict[str, Any]]] = case.get(f"anyOf{suffix}") or [case[f"expect{suffix}"]]
    return answers


def differences(actual: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> list[str]:
    """Return one text for each difference."""
    lines: list[str] = []
    for one, other in zip(actual, recorded, strict=True):
        lines.extend(
            f"at {one['at_seconds']}s {key}:\n"
            f"      actual   {one.get(key, '-')}\n"
            f"      recorded {other.get(key, '-')}"
            for key in sorted(one.keys() | other.keys())
            if key not in one or key not in other or one[key] != other[key]
        )
    return lines
