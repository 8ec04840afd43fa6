"""A scenario that is drawn from a seed: a small cluster, and steps of several subjects in turn. No I/O.

Its expectations are those of any correct cluster: the rules of rest and the invariants.
"""

from __future__ import annotations

import random
from typing import Final

from nominee.lab.chaos.generated.accepted import ACCEPTED
from nominee.lab.chaos.generated.manifests import Document, apply, manifest, pod_spec, wait, workload
from nominee.lab.chaos.generated.subjects import POOL, SUBJECTS, Draw, Steps, Subject
from nominee.lab.scenario.format.model import API_VERSION, KIND

SUBJECTS_PER_SCENARIO = (2, 4)
_CLASSES: Final = {"low": 10, "high": 1000}
_ELECTION: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {
        "leaderElect": True,
        "leaseDuration": "3s",
        "renewDeadline": "2s",
        "retryPeriod": "500ms",
    },
}
_SCALING: Final = (
    "--scan-interval=1s",
    "--scale-down-unneeded-time=2s",
    "--scale-down-delay-after-add=1s",
    "--scale-down-delay-after-failure=1s",
    "--unremovable-node-recheck-timeout=2s",
    "--max-node-provision-time=10s",
    "--initial-node-group-backoff-duration=1s",
    "--max-node-group-backoff-duration=2s",
)
_MACHINE: Final = {"cpu": "4", "memory": "16Gi", "pods": 110}
_GROUP: Final = {
    "name": POOL,
    "min": 0,
    "max": 2,
    "target": 0,
    "provisioningDelay": "500ms",
    "template": _MACHINE,
}


def generate(seed: int) -> Document:
    """Return the document of the scenario of a seed."""
    rng = random.Random(seed)
    subjects = _subjects(rng)
    nodes = rng.choice((2, 2, 3))
    draw = Draw(rng, [f"node-{number}" for number in range(nodes)])
    base = nodes * 2 - rng.randint(0, 2)
    start: Steps = [
        apply(
            *(manifest("PriorityClass", name, value=value) for name, value in _CLASSES.items()),
            workload("ReplicaSet", "base", base, pod_spec("1500m", priorityClassName="low")),
        ),
        wait(5, "Pod", selector="app=base", condition="Ready=True", count=base),
    ]
    steps = start + _in_turns([subject.draw(draw) for subject in subjects], rng)
    spec: Document = {"cluster": _cluster(subjects, nodes, rng), "stepsMayFail": True}
    if "${NODE}" in str(steps):
        spec["variants"] = [{"NODE": node} for node in draw.nodes[:2]]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": f"generated-{seed}"},
        "spec": {**spec, "chaos": {"acceptedFindings": [*ACCEPTED]}, "steps": steps},
    }


def _subjects(rng: random.Random) -> list[Subject]:
    """Return different subjects that one cluster can have."""
    count = rng.randint(*SUBJECTS_PER_SCENARIO)
    chosen: list[Subject] = []
    while len(chosen) < count:
        (subject,) = rng.choices(SUBJECTS, [each.weight for each in SUBJECTS])
        has_versions = subject.has_versions or any(each.has_versions for each in chosen)
        has_gates = subject.gate or any(each.gate for each in chosen)
        if subject not in chosen and not (has_versions and has_gates):
            chosen.append(subject)
    return chosen


def _in_turns(rows: list[Steps], rng: random.Random) -> Steps:
    """Return the steps of all rows, each row in its order."""
    turns = [number for number, row in enumerate(rows) for _ in row]
    rng.shuffle(turns)
    rows = [[*row] for row in rows]
    return [rows[number].pop(0) for number in turns]


def _cluster(subjects: list[Subject], nodes: int, rng: random.Random) -> Document:
    cluster: Document = {"nodes": nodes, "kubelets": rng.randint(1, 2)}
    components: Document = {}
    if gates := {each.gate: True for each in subjects if each.gate}:
        cluster["featureGates"] = gates
    if any(each.scales for each in subjects):
        cluster["nodeGroups"] = [_GROUP]
        components["autoscaler"] = {"args": [*_SCALING]}
    else:
        cluster["without"] = ["autoscaler", "cloud"]
    if rng.random() < 0.2 and not any(each.has_versions for each in subjects):
        components["scheduler"] = {"replicas": 2, "config": _ELECTION}
    if components:
        cluster["components"] = components
    return cluster
