"""The decisions of a loop, for its line of the log."""

from __future__ import annotations

from nominee.autoscaler.planning.scale_up.plan import ScaleUpPlan, ScaleUpResult
from nominee.autoscaler.result import LoopResult, ScaleDownResult
from nominee.machinery.runtime.clock import Moment
from tests.scheduler.builders import pod


def test_decisions_name_groups_pods_and_reasons() -> None:
    plan = ScaleUpPlan(
        result=ScaleUpResult.NO_OPTIONS,
        skipped={"small": ("max node group size reached",)},
        remaining=[(pod(name).pod, {"big": ("Insufficient cpu",)}) for name in ("a", "b")],
    )
    result = LoopResult(at=Moment(0.0, 0.0), scale_up=plan, scale_down=ScaleDownResult.NO_CANDIDATES)
    result.unschedulable_pods = 2
    assert result.decisions() == {
        "scaleUp": "ScaleUpNoOptionsAvailable",
        "skippedGroups": "small: max node group size reached",
        "noFit": "big: Insufficient cpu (2 pods)",
        "scaleDown": "ScaleDownNoCandidates",
        "unschedulablePods": "2",
    }
