"""The scenarios of the study with drawn trials.

A file of `scenarios/` has the steps, with example trials as its variants. Here its pods and variant are
replaced by those that are drawn from a seed, and the cluster gets one node and the options of the setup.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from nominee.lab.scenario.fields.options import ClusterOptions
from nominee.lab.scenario.format.documents import read_documents
from nominee.lab.scenario.format.model import Scenario as PlayedScenario
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.study.plans import Plan, PlannedPod, draw, draw_four_pods
from nominee.lab.study.settings import (
    AFTER_POLICY,
    CRASH_POINTS,
    CRASH_STOP_SECONDS,
    GRACE_STOP_SECONDS,
    LATER,
    LIVE_READ,
    NEW_KUBELET,
    SHIPPED,
    VICTIMS_TERMINATING,
    Scenario,
    Setup,
)
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.framework.resize_preemption import Flavour, Tracking

PODS_STEP: Final = "the pods are created"
AT_ONCE_SECONDS: Final = 0.0001
_FILES: Final = Path(__file__).with_name("scenarios")
_CLASS = "study-"
_PLUGIN = "LivePolicyPreemption"
_VERSION, _OLD_VERSION = "1.37", "1.34"
_GATE = "InPlacePodVerticalScalingSchedulerPreemption"


def plan_of(setup: Setup, seed: int) -> Plan | None:
    """Return the drawn pods of a trial; None where the pods are those of the file."""
    match setup.scenario:
        case Scenario.FOUR_PODS:
            return draw_four_pods(seed, "x")
        case Scenario.CRASH:
            return draw(seed, "x", CRASH_STOP_SECONDS)
        case Scenario.GRACE | Scenario.KUBELET:
            return draw(seed, "x", GRACE_STOP_SECONDS)
        case _:
            return None


def drawn(setup: Setup, seed: int) -> Mapping[str, Json]:
    """Return the other drawn values of a seed: the point of a crash, the time of a second event."""
    rng = random.Random(seed)
    match setup.scenario:
        case Scenario.CRASH:
            return {"point": rng.choice(CRASH_POINTS)}
        case Scenario.RACES:
            stop = rng.randrange(500, 2000)
            # Half of the requests come while the victim terminates, half at about its end.
            early = rng.random() < 0.5
            after = rng.uniform(0.05, stop / 1000 - 0.1) if early else stop / 1000 + rng.uniform(-0.01, 0.01)
            return {"stop": stop, "delay": round(after, 4)}
        case Scenario.KUBELET:
            return {"delay": round(rng.uniform(0.05, 1.5), 3)}
        case Scenario.POLICY_LAG:
            return {"delay": LATER.get(setup.variant, AT_ONCE_SECONDS)}
        case _:
            return {}


def compose(setup: Setup, seed: int) -> PlayedScenario:
    """Return the scenario of a trial, for a cluster with the options of its setup."""
    plan, also = plan_of(setup, seed), drawn(setup, seed)
    file = _FILES / f"{setup.scenario.value}.yaml"
    document = _documents(file)[_source(setup, str(also.get("point", "")))]
    spec: Mapping[str, Json] = document["spec"]
    variables: dict[str, Json] = {"DELAY": also.get("delay", 0), "STOP": f"{also.get('stop', 0)}ms"}
    steps = spec["steps"]
    if plan is not None:
        variables |= _variables(plan) | {"POINT": also.get("point", ""), "FIT": setup.fit.value}
        manifests = list(_manifests(plan, "node-0", is_critical=setup.scenario is Scenario.KUBELET))
        steps = [{**step, "apply": manifests} if step.get("name") == PODS_STEP else step for step in steps]
    composed = {
        **document,
        "spec": {
            **spec,
            "cluster": {**spec["cluster"], "nodes": 1, **_options(setup)},
            "variants": [variables],
            "steps": steps,
        },
    }
    (scenario,) = read_text(json.dumps(composed), str(file), folder=_FILES)
    return replace(scenario, file=str(file))


@cache
def cluster_of(setup: Setup, nodes: int = 1) -> ClusterOptions:
    """Return the cluster of a setup."""
    like = setup if setup.scenario is not Scenario.THROUGHPUT else replace(setup, scenario=Scenario.GRACE)
    return replace(compose(like, 0).cluster, nodes=nodes)


def _source(setup: Setup, point: str) -> str:
    """Return the name of the scenario in its file."""
    if point == VICTIMS_TERMINATING:
        return "crash-victims-terminating"
    if setup.scenario is Scenario.KUBELET:
        return "kubelet-after-policy" if setup.variant == AFTER_POLICY else "kubelet-at-once"
    return setup.scenario.value


def _options(setup: Setup) -> Mapping[str, Json]:
    """Return the fields of `spec.cluster` that a setup adds."""
    flavour = Flavour.V1_37 if setup.variant == SHIPPED else Flavour.KEP
    scheduler: dict[str, Json] = {
        "args": [
            f"--resize-preemption-tracking={setup.tracking.value}",
            f"--resize-preemption-flavour={flavour.value}",
        ]
    }
    components: dict[str, Json] = {"scheduler": scheduler, "kubelet": {"args": ["--node-cpu=8000m"]}}
    if setup.tracking is Tracking.NOMINATED_NODE_NAME:
        components["apiserver"] = {"args": ["--allow-nominated-node-name-of-deferred-resizes"]}
    if setup.scenario is not Scenario.POLICY_LAG:
        return {"components": components}
    knowing = ["apiserver", "scheduler"]
    if setup.variant == NEW_KUBELET:
        knowing.append("kubelet")
    else:
        components["kubelet"]["emulatedVersion"] = _OLD_VERSION
    for each in knowing:
        components.setdefault(each, {})["featureGates"] = {_GATE: True}
    if setup.variant == LIVE_READ:
        scheduler["args"] += [f"--plugin=nominee.lab.study.live_policy:{_PLUGIN}"]
        enabled, disabled = [{"name": _PLUGIN}], [{"name": "DefaultPreemption"}]
        points = {"multiPoint": {"enabled": enabled, "disabled": disabled}}
        scheduler["config"] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": points}],
        }
    return {"components": components, "emulatedVersion": _VERSION, "featureGates": {}}


@cache
def _documents(file: Path) -> Mapping[str, Json]:
    """Return the documents of a file by the scenario's name."""
    found = read_documents(file.read_text(encoding="utf-8"), str(file))
    return {each.value["metadata"]["name"]: each.value for each in found}


def _variables(plan: Plan) -> dict[str, Json]:
    """Return the variables of a trial that the scenarios use."""
    low = plan.candidates
    return {
        "TRIAL": plan.name,
        "NODE": "node-0",
        "TRIALS": 1,
        "DESIRED": f"{plan.resizer.desired_cpu}m",
        "STAYING": len(low) - 1,
        "WANTED": f"{low[0].desired_cpu}m",
        "DELETED": "first" if plan.changes_while_down else "none",
    }


def _manifests(plan: Plan, node: str, *, is_critical: bool) -> Iterator[Json]:
    """Yield the pods of a trial, after their priority classes."""
    for priority in sorted({pod.priority for pod in plan.pods}):
        metadata = {"name": f"{_CLASS}{priority}"}
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata,
            "value": priority,
        }
    labels = {"trial": plan.name}
    resizer = _manifest(plan.resizer, node, {**labels, "role": "resizer"})
    if is_critical:
        resizer["spec"]["priorityClassName"] = "system-node-critical"
    yield resizer
    for pod in plan.candidates:
        yield _manifest(pod, node, {**labels, "role": "low"})
    for pod, which in zip(plan.fillers, ("first", "second"), strict=False):
        deleted = {"deleted": "while-down"} if plan.changes_while_down and which == "first" else {}
        yield _manifest(pod, node, {**labels, "role": "filler", "filler": which, **deleted})


def _manifest(pod: PlannedPod, node: str, labels: Mapping[str, str]) -> Json:
    stop = {"nominee.dev/stop-delay": f"{round(pod.stop_seconds * 1000)}ms"}
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": f"{pod.cpu}m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "labels": labels, "annotations": stop},
        "spec": {
            "nodeName": node,
            "priorityClassName": f"{_CLASS}{pod.priority}",
            "terminationGracePeriodSeconds": int(pod.stop_seconds) + 2,
            "containers": [container],
        },
    }
