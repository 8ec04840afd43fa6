"""The scenario of a cell: the row's document with versions, gates, restarts and the checks that apply.

The result is a complete scenario file: `nominee scenario run` plays the cell again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from nominee.lab.reports.records import Record
from nominee.lab.scenario.fields.substitution import with_texts
from nominee.lab.scenario.format.model import TIMEOUT_SECONDS
from nominee.lab.skew.matrix.model import VERSIONED, Case, Cell, Gates, JsonObject, Setting, Stage, holds
from nominee.localcluster.components import find_process
from nominee.machinery.features import gates as features
from nominee.machinery.wire.values.scalars import Json

RESTART_SECONDS_MAX = 30.0
"""What each restart of a path adds to the limit of the scenario."""
_STAGE = "${STAGE}"


class CompositionError(ValueError):
    """A row that does not fit its scenario; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Record):
    """An observation by a user of the cell at a stage, if its checks hold."""

    stage: int
    label: str
    case: str
    see: str


def slug(name: str) -> str:
    """Return a cell's name as the name of a file and of a scenario: `row.apiserver-1.34`."""
    text = re.sub(r"[^a-z0-9. ,=]+", "-", name.lower())
    return re.sub(r"-*\.-*", ".", re.sub(r"[ ,=]+", "-", text)).strip("-.")


def compose(cell: Cell) -> JsonObject:
    """Return the scenario document of a cell.

    Raises:
        CompositionError: the scenario has no step of the name that `after` gives.
    """
    document = cell.row.document
    spec: Mapping[str, Json] = document["spec"]
    steps: list[Json] = list(spec.get("steps", ()))
    at = _position(steps, cell.after)
    added = list(_stage_steps(cell))
    case = _applicable(cell.row.cases, cell.stages[-1].setting)
    later = [*steps[at:], *(case.steps if case else ())]
    steps = [*steps[:at], *added, *(_as_last_stage(step, cell) for step in later)]
    limit = float(spec.get("timeoutSeconds", TIMEOUT_SECONDS)) + RESTART_SECONDS_MAX * (len(cell.stages) - 1)
    return {
        **document,
        "metadata": {
            "name": slug(cell.name),
            "title": cell.row.title or document["metadata"].get("title", ""),
            "section": cell.row.section or document["metadata"].get("section", ""),
        },
        "spec": {
            **spec,
            "timeoutSeconds": limit,
            "cluster": _cluster(spec.get("cluster", {}), cell.stages[0].setting),
            "steps": steps,
        },
    }


def seen(cell: Cell) -> tuple[Seen, ...]:
    """Return the cases that apply to a cell, in the order of their checks."""
    found = []
    for number, stage in enumerate(cell.stages):
        case = _applicable(cell.row.probe.cases, stage.setting)
        if case is not None:
            found.append(Seen(stage=number, label=stage.label, case=case.name, see=case.see))
    last = _applicable(cell.row.cases, cell.stages[-1].setting)
    if last is not None:
        number = len(cell.stages) - 1
        found.append(Seen(stage=number, label="end" if number else "start", case=last.name, see=last.see))
    return tuple(found)


def _applicable(cases: Sequence[Case], setting: Setting) -> Case | None:
    return next((case for case in cases if holds(case.when, setting)), None)


def _position(steps: Sequence[Mapping[str, Json]], after: str) -> int:
    if not after:
        return len(steps)
    for index, step in enumerate(steps):
        if step.get("name") == after:
            return index + 1
    names = ", ".join(step["name"] for step in steps if "name" in step) or "none"
    raise CompositionError(f"the scenario has no step named {after!r}; its steps are: {names}")


def _stage_steps(cell: Cell) -> Iterator[Json]:
    """Yield the probe at the start, and each restart with the probe after it."""
    gates = _gates_of_all(cell.stages)
    for number, stage in enumerate(cell.stages):
        if number:
            yield _restart(stage, gates.get(stage.restarted, ()))
        probe = cell.row.probe
        case = _applicable(probe.cases, stage.setting)
        for step in (*probe.steps, *(case.steps if case else ())):
            yield with_texts(step, partial(_numbered, str(number)))


def _gates_of_all(stages: Iterable[Stage]) -> Mapping[str, Sequence[str]]:
    found: dict[str, dict[str, None]] = {}
    for stage in stages:
        for component, gates in stage.setting.gates.items():
            found.setdefault(component, {}).update(dict.fromkeys(gates))
    return {component: tuple(names) for component, names in found.items()}


def _restart(stage: Stage, gates: Sequence[str]) -> Json:
    """Return the step of a restart; gates of earlier stages get the values of this one."""
    component, setting = stage.restarted, stage.setting
    version = setting.version(component)
    effective = setting.effective(component)
    known = [name for name in gates if _exists(name, version)]
    options: dict[str, Json] = {"component": component, "emulatedVersion": str(version)}
    if known:
        options["featureGates"] = {name: effective.enabled(name) for name in known}
    words = [f"{name} {'on' if effective.enabled(name) else 'off'}" for name in known]
    return {"name": " ".join([f"restart {component} as {version}", *words]), "restart": options}


def _as_last_stage(step: Json, cell: Cell) -> Json:
    """Return a step after the path: what it restarts without a version keeps that of the last stage."""
    verb = next((verb for verb in ("start", "restart") if verb in step), "")
    if not verb or len(cell.stages) == 1:
        return step
    given: Mapping[str, Json] = {"component": step[verb]} if isinstance(step[verb], str) else step[verb]
    component = find_process(given["component"])[0].name
    if component not in {stage.restarted for stage in cell.stages} or "emulatedVersion" in given:
        return step
    last = Stage(setting=cell.stages[-1].setting, restarted=component)
    options = _restart(last, _gates_of_all(cell.stages).get(component, ()))["restart"]
    gates = {**options.get("featureGates", {}), **given.get("featureGates", {})}
    merged = {**options, **given} | ({"featureGates": gates} if gates else {})
    return {**step, verb: merged}


def _exists(name: str, version: features.Version) -> bool:
    gate = features.gates().get(features.aliases().get(name, name))
    return gate is not None and gate.exists_at(version) and gate.at(version) is not None


def _numbered(stage: str, text: str) -> str:
    return text.replace(_STAGE, stage)


def _cluster(cluster: Mapping[str, Json], setting: Setting) -> Json:
    """Return the cluster with the version and gates of every component that has them."""
    components: dict[str, Json] = dict(cluster.get("components", {}))
    shared: Gates = cluster.get("featureGates", {})
    for name in VERSIONED:
        own: Mapping[str, Json] = components.get(name, {})
        if name in cluster.get("without", ()) or "command" in own:
            continue
        gates = {key: on for key, on in setting.gates.get(name, {}).items() if shared.get(key) != on}
        # Another program has its own version (`adapt` puts it into the component's place).
        version = {} if name in setting.programs else {"emulatedVersion": str(setting.version(name))}
        components[name] = {**own, **version}
        if gates:
            components[name]["featureGates"] = {**own.get("featureGates", {}), **gates}
    for name in setting.processes:
        components[name] = {**components.get(name, {}), "emulatedVersion": str(setting.version(name))}
    kept = {key: value for key, value in cluster.items() if key != "emulatedVersion"}
    return {**kept, "components": components}
