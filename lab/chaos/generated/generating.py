"""A scenario that is drawn from a seed: a small cluster, and steps of several subjects in turn. No I/O.

The subjects are in `scenarios/generated.yml`. The expectations are those of any correct cluster: the rules of
rest and the invariants.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Final

from nominee.lab.scenario.format.model import API_VERSION, KIND
from nominee.machinery.wire.values.scalars import Json

Document = dict[str, Json]
SUBJECTS_PER_SCENARIO: Final = (2, 4)
CHANGES_PER_SUBJECT: Final = (2, 5)
ONE_OF: Final = "oneOf"
_VARIANTS: Final = ({"NODE": "node-0"}, {"NODE": "node-1"})


def generate(seed: int, source: Document) -> Document:
    """Return the document of the scenario of a seed; the source is that of the subjects."""
    rng = random.Random(seed)
    subjects = _subjects(source["subjects"], rng)
    rows = [_steps(subject, rng) for subject in subjects]
    ends = [step for subject in subjects for step in subject.get("end", ())]
    steps = draw(source["start"] + _in_turns(rows, rng) + ends, rng)
    spec: Document = {"cluster": _cluster(source, subjects, rng), "stepsMayFail": True}
    if "${NODE}" in str(steps):
        spec["variants"] = [*_VARIANTS]
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": f"generated-{seed}"},
        "spec": {**spec, "chaos": {"acceptedFindings": source["acceptedFindings"]}, "steps": steps},
    }
    return copy_of(document)


def _subjects(subjects: Sequence[Document], rng: random.Random) -> list[Document]:
    """Return different subjects that one cluster can have."""
    count = rng.randint(*SUBJECTS_PER_SCENARIO)
    chosen: list[Document] = []
    while len(chosen) < count:
        (subject,) = rng.choices(subjects, [each.get("weight", 1) for each in subjects])
        together = [*chosen, subject]
        fields = {field for each in together for field in each}
        if subject not in chosen and not fields >= {"gate", "hasVersions"}:
            chosen.append(subject)
    return chosen


def _steps(subject: Document, rng: random.Random) -> list[Json]:
    """Return the steps that begin a subject, and those of some of its changes."""
    changes = subject["changes"]
    count = min(rng.randint(*subject.get("take", CHANGES_PER_SUBJECT)), len(changes))
    return [*subject["begin"], *(step for change in rng.sample(changes, count) for step in change)]


def _in_turns(rows: Sequence[Sequence[Json]], rng: random.Random) -> list[Json]:
    """Return the steps of all rows, each row in its order."""
    turns = [number for number, row in enumerate(rows) for _ in row]
    rng.shuffle(turns)
    left = [iter(row) for row in rows]
    return [next(left[number]) for number in turns]


def draw(value: Json, rng: random.Random) -> Json:
    """Return the value with one alternative of each `oneOf`; a mapping is merged into the one around it."""
    if isinstance(value, list):
        return [draw(each, rng) for each in value]
    if not isinstance(value, dict):
        return value
    fixed = {key: draw(each, rng) for key, each in value.items() if key != ONE_OF}
    if ONE_OF not in value:
        return fixed
    one = draw(rng.choice(value[ONE_OF]), rng)
    return {**fixed, **one} if fixed else one


def _cluster(source: Document, subjects: Sequence[Document], rng: random.Random) -> Document:
    cluster: Document = draw(source["cluster"], rng)
    if any("hasVersions" in each for each in subjects):
        cluster["components"] = {}
    cluster["components"] = {**source["components"], **cluster["components"]}
    if gates := {each["gate"]: True for each in subjects if "gate" in each}:
        cluster["featureGates"] = gates
    if any("scales" in each for each in subjects):
        cluster["nodeGroups"] = source["scaling"]["nodeGroups"]
        cluster["components"] = {**cluster["components"], "autoscaler": source["scaling"]["autoscaler"]}
    else:
        cluster["without"] = ["autoscaler", "cloud"]
    return cluster


def copy_of(document: Document) -> Document:
    """Return a copy in which no two values are the same object."""
    copy: Document = json.loads(json.dumps(document))
    return copy
