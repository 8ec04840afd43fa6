"""The scenarios of the study with the drawn trials of all seeds.

A file of `scenarios/` has the steps, with a few example trials as its variants. Here its pods and variants
are replaced by drawn ones. The trials of a round are played at the same time, each on a node of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from nominee.lab.scenario.fields.options import ClusterOptions
from nominee.lab.scenario.format.documents import read_documents
from nominee.lab.scenario.format.model import Scenario as PlayedScenario
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.study.plans import Plan, PlannedPod, draw, draw_four_pods
from nominee.lab.study.settings import (
    FULL,
    NO_CRASH,
    VICTIMS_TERMINATING,
    Scenario,
    Sizes,
)
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking

SETS: Final = 3
"""Sets of nodes, used in turn: the pods of the last round may still be stopping on theirs."""
PODS_STEP: Final = "the pods are created"
_FILES: Final = Path(__file__).with_name("scenarios")
_CLASS = "study-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A scenario that is played once with the trials of all seeds. `point`: where the scheduler is killed."""

    scenario: Scenario
    point: str = ""
    fit: Fit = Fit.SCHEDULER

    @property
    def source(self) -> str:
        """Return the name of the scenario in its file."""
        if self.scenario is Scenario.CRASH:
            return {NO_CRASH: "no-crash", VICTIMS_TERMINATING: "crash-victims-terminating"}.get(
                self.point, "crash"
            )
        return self.scenario.value

    @property
    def name(self) -> str:
        """Return a name that no other round of an option has."""
        if self.scenario is Scenario.FOUR_PODS:
            return f"{self.source}-{self.fit.value}"
        return f"crash-{self.point}" if self.source == "crash" else self.source

    @property
    def file(self) -> Path:
        """Return the file of the scenario."""
        return _FILES / f"{self.scenario.value}.yaml"


def rounds(tracking: Tracking, scenarios: Sequence[Scenario], points: Sequence[str]) -> list[Round]:
    """Return the rounds of an option, in the order of measurement."""
    found = []
    if Scenario.CRASH in scenarios:
        # The status is written where nominatedNodeName is.
        written = tracking is Tracking.NOMINATED_NODE_NAME
        found += [
            Round(scenario=Scenario.CRASH, point=point)
            for point in points
            if written or "status" not in point
        ]
    if Scenario.GRACE in scenarios:
        found.append(Round(scenario=Scenario.GRACE))
    if Scenario.FOUR_PODS in scenarios:
        found += [Round(scenario=Scenario.FOUR_PODS, fit=fit) for fit in (Fit.KUBELET, Fit.SCHEDULER)]
    return found


def plans(one: Round, number: int, seeds: Sequence[int], sizes: Sizes) -> list[Plan]:
    """Return the trials of a round by seed; the names of their pods have the number of the round."""
    if one.scenario is Scenario.FOUR_PODS:
        return [draw_four_pods(seed, f"four{number}-{seed}") for seed in seeds]
    is_crash = one.scenario is Scenario.CRASH
    stop = sizes.crash_stop_seconds if is_crash else sizes.grace_stop_seconds
    return [draw(seed, f"{one.scenario.value}{number}-{seed}", stop) for seed in seeds]


def compose(
    one: Round, number: int, trials: Sequence[Plan], tracking: Tracking, nodes: int
) -> PlayedScenario:
    """Return the scenario of a round, for a cluster with the options of `tracking` and so many nodes."""
    document = _documents(one.file)[one.source]
    spec: Mapping[str, Json] = document["spec"]
    first = (number % SETS) * len(trials)
    names = [f"node-{first + index}" for index in range(len(trials))]
    steps = [
        {**step, "apply": list(_manifests(trials, names))} if step.get("name") == PODS_STEP else step
        for step in spec["steps"]
    ]
    composed = {
        **document,
        "metadata": {**document["metadata"], "name": one.name},
        "spec": {
            **spec,
            "cluster": {**spec["cluster"], "nodes": nodes, "components": _components(tracking)},
            "variants": [
                {**_variables(trial), "TRIALS": len(trials), "POINT": one.point, "FIT": one.fit.value}
                for trial in trials
            ],
            "steps": steps,
        },
    }
    (scenario,) = read_text(json.dumps(composed), str(one.file), folder=_FILES)
    return replace(scenario, file=str(one.file))


def cluster_of(tracking: Tracking, nodes: int) -> ClusterOptions:
    """Return the cluster for a tracking option."""
    one = Round(scenario=Scenario.FOUR_PODS)
    return compose(one, 0, plans(one, 0, [0], FULL), tracking, nodes).cluster


def _components(tracking: Tracking) -> Mapping[str, Json]:
    allow = ["--allow-nominated-node-name-of-deferred-resizes"]
    return {
        "scheduler": {"args": [f"--resize-preemption-tracking={tracking.value}"]},
        **({"apiserver": {"args": allow}} if tracking is Tracking.NOMINATED_NODE_NAME else {}),
    }


@cache
def _documents(file: Path) -> Mapping[str, Json]:
    """Return the documents of a file by the scenario's name."""
    found = read_documents(file.read_text(encoding="utf-8"), str(file))
    return {each.value["metadata"]["name"]: each.value for each in found}


def _variables(trial: Plan) -> Mapping[str, Json]:
    """Return the variables of a trial that the scenarios use."""
    low = trial.candidates
    return {
        "TRIAL": trial.name,
        "DESIRED": f"{trial.resizer.desired_cpu}m",
        "STAYING": len(low) - 1,
        "WANTED": f"{low[0].desired_cpu}m",
    }


def _manifests(trials: Sequence[Plan], nodes: Sequence[str]) -> Iterator[Json]:
    """Yield the pods of all trials, each on the node of its trial, after their priority classes."""
    for priority in sorted({pod.priority for trial in trials for pod in trial.pods}):
        metadata = {"name": f"{_CLASS}{priority}"}
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": metadata,
            "value": priority,
        }
    for trial, node in zip(trials, nodes, strict=True):
        labels = {"trial": trial.name}
        yield _manifest(trial.resizer, node, {**labels, "role": "resizer"})
        for pod in trial.candidates:
            yield _manifest(pod, node, {**labels, "role": "low"})
        for pod, which in zip(trial.fillers, ("first", "second"), strict=False):
            deleted = {"deleted": "while-down"} if trial.changes_while_down and which == "first" else {}
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
