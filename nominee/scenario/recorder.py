"""Turn what happens in a cluster into the steps of a scenario. No I/O.

Recorded: objects that clients other than components create, patch and delete; processes that are started,
stopped, paused and restarted, also with another version or other gates; failpoints; faults.

Not recorded: reads, requests that were refused, which pods a drain evicted (they are deletions), writes of a
status over gRPC, changes while the recorder had no connection, and the times between steps. Objects that were
created over gRPC (`nominee apply`) have no managedFields: kind and name decide whether a component made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from machinery.features.gates import Gates, Version
from machinery.wire.scalars import Json
from nominee.scenario.evaluation import name_of
from nominee.scenario.model import API_VERSION, KIND
from nominee.scenario.written_fields import (
    JsonObject,
    change,
    is_component,
    is_made_by_component,
    is_tracked,
    newest_entry,
    written,
)

STEPS_MAX = 500
_EVICTED = "DisruptionTarget"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One process: the supervisor's state, and what it runs with. `failpoints` are the armed ones."""

    name: str
    state: str
    pid: int
    last_exit: str = ""
    emulated_version: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    failpoints: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[tuple[str, str, str, str]] = ()


class Recorder:
    """Collects steps; `on_object` and `on_processes` return those that are new."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Json]] = []
        self._pods: dict[str, str] = {}
        self._views: dict[str, ProcessView] = {}

    def on_object(self, old: JsonObject | None, new: JsonObject | None) -> list[dict[str, Json]]:
        """Record a change of an object; `old` None is a new object, `new` None a deleted one."""
        if new is None:
            return self._add(*self._deleted(old)) if old is not None else []
        if _is_owned(new):
            return []
        if old is None:
            if not _is_of_a_person(new):
                return []
            if new["kind"] == "Pod":
                self._pods[new["metadata"]["name"]] = new["metadata"].get("namespace", "default")
            return self._add({"apply": written(new)})
        return self._add(*self._updated(old, new))

    def _updated(self, old: JsonObject, new: JsonObject) -> list[dict[str, Json]]:
        if new["metadata"].get("deletionTimestamp") and not old["metadata"].get("deletionTimestamp"):
            return self._deleted(new)
        before, after = newest_entry(old), newest_entry(new) or {}
        if is_tracked(new) and (after == before or is_component(str(after.get("manager", "")))):
            return []
        patch = change(old, new)
        subresource = after.get("subresource", "")
        if not is_tracked(new) and new["kind"] == "Pod" and "spec" in patch:
            subresource = "resize"
        patch = {key: value for key, value in patch.items() if (key == "status") == (subresource == "status")}
        patch = {key: value for key, value in patch.items() if value not in ({}, None)}
        if not patch:
            return []
        step: dict[str, Json] = {**_target(new)}
        if subresource:
            step["subresource"] = subresource
        return [{"patch": {**step, "patch": patch}}]

    def _deleted(self, document: JsonObject) -> list[dict[str, Json]]:
        """Return the step that deleted an object, unless a component did, or it is terminating already."""
        conditions = document.get("status", {}).get("conditions") or ()
        evicted = any(each.get("type") == _EVICTED for each in conditions)
        by_component = evicted or not _is_of_a_person(document)
        recorded = any(step.get("delete") == _target(document) for step in self.steps[-20:])
        if by_component or recorded or _is_owned(document) or document["kind"] in ("Event", "Lease"):
            return []
        self._pods.pop(document["metadata"]["name"], None)
        return [{"delete": _target(document)}]

    def on_processes(self, views: Sequence[ProcessView]) -> list[dict[str, Json]]:
        """Record the changes of processes since the last call; the first call records nothing."""
        steps: list[dict[str, Json]] = []
        for view in views:
            before = self._views.get(view.name)
            if before is not None:
                steps += _control(before, view)
                steps += _arming(before, view)
            if view.state in ("ready", "paused", "down", "crashed"):
                self._views[view.name] = view
        return self._add(*steps)

    def _add(self, *steps: dict[str, Json]) -> list[dict[str, Json]]:
        room = STEPS_MAX - len(self.steps)
        self.steps += steps[:room]
        return list(steps[:room])

    def document(self, name: str, cluster: JsonObject, phases: Mapping[str, str]) -> dict[str, Json]:
        """Return the scenario. `phases` are the phases of pods now, which it expects in the end."""
        expectations: list[dict[str, Json]] = [
            {
                "expect": {
                    "eventually": {
                        "object": {
                            "kind": "Pod",
                            "name": pod,
                            **({"namespace": namespace} if namespace != "default" else {}),
                            "jsonPath": {".status.phase": phases[f"{namespace}/{pod}"]},
                        }
                    }
                }
            }
            for pod, namespace in self._pods.items()
            if f"{namespace}/{pod}" in phases
        ]
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "title": "recorded"},
            "spec": {"cluster": dict(cluster), "steps": [*self.steps, *expectations]},
        }


def _is_of_a_person(document: JsonObject) -> bool:
    """Return whether another client than a component created an object, as far as it shows."""
    entries = document["metadata"].get("managedFields") or ()
    if entries:
        return not all(is_component(str(entry.get("manager", ""))) for entry in entries)
    return not is_made_by_component(document)


def _is_owned(document: JsonObject) -> bool:
    return bool(document["metadata"].get("ownerReferences"))


def _target(document: JsonObject) -> dict[str, Json]:
    metadata = document["metadata"]
    target = {"kind": document["kind"], "name": metadata["name"]}
    namespace = metadata.get("namespace", "")
    return target | ({"namespace": namespace} if namespace not in ("", "default") else {})


def _control(before: ProcessView, now: ProcessView) -> list[dict[str, Json]]:
    """Return the step that led from one state of a process to another."""
    options: dict[str, Json] = {}
    if now.emulated_version != before.emulated_version and now.emulated_version:
        options["emulatedVersion"] = now.emulated_version
    # Another version has other defaults.
    usual = _defaults(now.name, now.emulated_version) if "emulatedVersion" in options else before.gates
    gates = {gate: value for gate, value in now.gates.items() if usual.get(gate, value) != value}
    if gates:
        options["featureGates"] = gates
    target: Json = {"component": now.name, **options} if options else now.name
    match before.state, now.state:
        case ("ready", "paused"):
            return [{"pause": now.name}]
        case ("paused", "ready") if before.pid == now.pid:
            return [{"resume": now.name}]
        case (_, "down") if before.state != "down":
            return [{"kill" if now.last_exit == "SIGKILL" else "stop": now.name}]
        case ("down" | "crashed", "ready"):
            return [{"start": target}]
        case (_, "ready") if before.pid != now.pid:
            # A crash that a failpoint caused comes again by itself.
            if any(action.endswith("crash") for action in before.failpoints.values()):
                return []
            killed = now.last_exit == "SIGKILL"
            return [{"restart": {"component": now.name, "kill": True, **options} if killed else target}]
    return []


def _defaults(process: str, version: str) -> Mapping[str, bool]:
    """Return the gates of a process at a version, without overrides."""
    return Gates(process.rpartition("-")[0] or process, Version.parse(version)).all()


def _arming(before: ProcessView, now: ProcessView) -> list[dict[str, Json]]:
    """Return the steps that armed or disarmed failpoints and faults of a process that runs on."""
    if before.pid != now.pid or now.state != "ready":
        before = ProcessView(name=now.name, state=now.state, pid=now.pid)
    steps: list[dict[str, Json]] = []
    for point in sorted({*before.failpoints, *now.failpoints}):
        action = now.failpoints.get(point, "off")
        if action != before.failpoints.get(point, "off"):
            steps.append({"failpoint": {"component": now.name, "name": point, "action": action}})
    rules = [*[rule for rule in now.faults if rule not in before.faults]]
    gone = {rule[:3] for rule in before.faults} - {rule[:3] for rule in now.faults}
    for to, method, kind, action in [*rules, *((*rule, "off") for rule in sorted(gone))]:
        names = {"to": to, "method": method, "kind": kind}
        chosen = {key: value for key, value in names.items() if value != "*"}
        steps.append({"fault": {"component": now.name, **chosen, "action": action}})
    return steps


def described(step: JsonObject) -> str:
    """Return a step as a line of output."""
    verb, value = next(iter(step.items()))
    if isinstance(value, str):
        return f"{verb} {value}"
    if verb == "apply":
        return f"apply {name_of(value)}"
    return f"{verb} {value.get('component') or value.get('kind', '')} {value.get('name', '')}".rstrip()
