"""Turn what happens in a cluster into the steps of a scenario. No I/O.

Recorded: objects that clients other than components create, patch and delete; processes that are started,
stopped, paused and restarted, also with another version or other gates; failpoints; faults; links between
etcd members that are cut.

Not recorded: reads, requests that were refused, changes of objects that controllers own, the values of
Secrets, writes of a status over gRPC, changes while the recorder had no connection, the times between steps.
A drain is recorded as a cordon and deletions. Objects that were created over gRPC (`nominee apply`) have no
managedFields: kind and name decide whether a component made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nominee.lab.scenario.format.model import API_VERSION, KIND
from nominee.lab.scenario.format.substitution import escaped
from nominee.lab.scenario.play.evaluation import name_of
from nominee.lab.scenario.record.recorded_links import Link, link_steps
from nominee.lab.scenario.record.written_fields import (
    JsonObject,
    change,
    client_entry,
    is_component,
    is_made_by_component,
    is_tracked,
    without_secrets,
    written,
)
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire.scalars import Json

STEPS_MAX = 500
OBJECTS_MAX = 500
"""Objects that existed when the recording began."""
_BOOTSTRAPPING = "kubernetes.io/bootstrapping"
_AUTO_UPDATED = "apf.kubernetes.io/autoupdate-spec"
_INITIAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "ClusterRole": ("nominee:", "kubeadm:", "cluster-autoscaler"),
    "ClusterRoleBinding": ("nominee:", "kubeadm:", "cluster-autoscaler"),
    "PriorityClass": ("system-",),
}
"""How the names of objects begin that `nominee up` creates."""
_INITIAL_OBJECTS = frozenset({("Namespace", "default"), ("Service", "kubernetes")})
_EVICTED = "DisruptionTarget"
_BY_EVICTION_API = "EvictionByEvictionAPI"


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
        self.dropped = 0
        """Steps beyond STEPS_MAX, and objects beyond OBJECTS_MAX."""
        self._existing: list[dict[str, Json]] = []
        self._accounts: set[str] = set()
        """Namespaces with the ServiceAccount that pods need."""
        self._pods: dict[tuple[str, str], None] = {}
        self._deleted_uids: set[str] = set()
        self._deleted_targets: list[JsonObject] = []
        self._ending: set[str] = set()
        """Namespaces that are being deleted: the controllers delete what is in them."""
        self._cordoned: set[str] = set()
        self._views: dict[str, ProcessView] = {}
        self._links: dict[Link, bool] = {}

    def on_existing(self, document: JsonObject) -> None:
        """Record an object that exists when the recording begins: the scenario creates it first."""
        self._note(document)
        is_terminating = bool(document["metadata"].get("deletionTimestamp"))
        if is_terminating or _is_owned(document) or not _is_of_a_person(document) or _is_initial(document):
            return
        if len(self._existing) == OBJECTS_MAX:
            self.dropped += 1
            return
        if document["kind"] == "Pod":
            self._pods[_key(document)] = None
        self._existing.append(_escaped(written(document)))

    def on_object(self, old: JsonObject | None, new: JsonObject | None) -> list[dict[str, Json]]:
        """Record a change of an object; `old` None is a new object, `new` None a deleted one."""
        if new is None:
            return self._gone(old) if old is not None else []
        self._note(new)
        if _is_owned(new):
            return []
        if old is None:
            return self._created(new)
        if new["metadata"].get("deletionTimestamp") and not old["metadata"].get("deletionTimestamp"):
            return self._deleted(new)
        return self._add(*_update(old, new))

    def _note(self, document: JsonObject) -> None:
        """Keep which nodes are cordoned, which namespaces end, and in which pods can be created."""
        name = document["metadata"]["name"]
        kind = document["kind"]
        if kind == "ServiceAccount" and name == "default":
            self._accounts.add(document["metadata"].get("namespace", ""))
        if kind == "Node":
            change = self._cordoned.add if _is_cordoned(document) else self._cordoned.discard
            change(name)
        elif kind == "Namespace":
            is_ending = bool(document["metadata"].get("deletionTimestamp"))
            (self._ending.add if is_ending else self._ending.discard)(name)

    def _created(self, document: JsonObject) -> list[dict[str, Json]]:
        if not _is_of_a_person(document):
            return []
        target = _target(document)
        steps: list[dict[str, Json]] = []
        if target in self._deleted_targets:
            self._deleted_targets.remove(target)
            steps.append({"wait": {"object": {**target, "exists": False}}})
        if document["kind"] == "Pod":
            self._pods[_key(document)] = None
        return self._add(*steps, {"apply": _escaped(written(document))})

    def _gone(self, document: JsonObject) -> list[dict[str, Json]]:
        """Record a deletion that took place at once: the object was not terminating before."""
        is_terminating = bool(document["metadata"].get("deletionTimestamp"))
        is_pod_of_a_node = document["kind"] == "Pod" and bool(document.get("spec", {}).get("nodeName"))
        return self._deleted(document, grace_seconds=0 if is_pod_of_a_node and not is_terminating else None)

    def _deleted(self, document: JsonObject, grace_seconds: int | None = None) -> list[dict[str, Json]]:
        """Return the step that deleted an object, unless a component did, or it is recorded already."""
        metadata = document["metadata"]
        uid, target = str(metadata.get("uid", "")), _target(document)
        if uid in self._deleted_uids or _is_owned(document) or not _is_of_a_person(document):
            return []
        if metadata.get("namespace", "") in self._ending or self._is_evicted_by_component(document):
            return []
        self._pods.pop(_key(document), None)
        self._deleted_uids.add(uid)
        self._deleted_targets.append(target)
        grace = metadata.get("deletionGracePeriodSeconds", grace_seconds)
        usual = document.get("spec", {}).get("terminationGracePeriodSeconds")
        if document["kind"] == "Pod" and grace is not None and grace != usual:
            target = {**target, "gracePeriodSeconds": grace}
        return self._add({"delete": target})

    def _is_evicted_by_component(self, document: JsonObject) -> bool:
        """Return whether a component evicted a pod; from a cordoned node a person does, by a drain."""
        conditions = document.get("status", {}).get("conditions") or ()
        found = next((each for each in conditions if each.get("type") == _EVICTED), None)
        if found is None:
            return False
        node = document.get("spec", {}).get("nodeName", "")
        return found.get("reason") != _BY_EVICTION_API or node not in self._cordoned

    def on_processes(self, views: Sequence[ProcessView]) -> list[dict[str, Json]]:
        """Record the changes of processes since the last call; the first call records nothing."""
        steps: list[dict[str, Json]] = []
        for view in views:
            before = self._views.get(view.name)
            if before is not None:
                steps += _control(before, view)
                steps += _arming(before, view)
            if view.state in ("ready", "paused", "down", "crashed"):
                # A process that is down has neither version nor gates: those of its last run count.
                last = before if before is not None and not view.emulated_version else view
                self._views[view.name] = replace(
                    view, emulated_version=last.emulated_version, gates=last.gates
                )
        return self._add(*steps)

    def on_links(self, links: Mapping[Link, bool]) -> list[dict[str, Json]]:
        """Record the links between etcd members that were cut or healed since the last call.

        `links` says whether each is cut. The first call records nothing.
        """
        steps = link_steps(self._links, links)
        self._links.update(links)
        return self._add(*steps)

    def _add(self, *steps: dict[str, Json]) -> list[dict[str, Json]]:
        room = STEPS_MAX - len(self.steps)
        self.steps += steps[:room]
        self.dropped += len(steps[room:])
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
            for namespace, pod in self._pods
            if f"{namespace}/{pod}" in phases
        ]
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "title": "recorded"},
            "spec": {"cluster": dict(cluster), "steps": [*self._begin(), *self._with_waits(), *expectations]},
        }

    def _begin(self) -> list[dict[str, Json]]:
        """Return the steps that create what existed: namespaces first, then what pods use, then pods."""
        namespaces = [each for each in self._existing if each["kind"] == "Namespace"]
        pods = [each for each in self._existing if each["kind"] == "Pod"]
        others = [each for each in self._existing if each["kind"] not in ("Namespace", "Pod")]
        steps: list[dict[str, Json]] = []
        if namespaces:
            steps.append({"name": "the namespaces that existed", "apply": namespaces})
            steps += [wait for each in namespaces for wait in self._wait(each)]
        if others or pods:
            steps.append({"name": "the objects that existed", "apply": [*others, *pods]})
        return steps

    def _with_waits(self) -> list[dict[str, Json]]:
        """Return the steps, and after the creation of a namespace a wait until pods can be created in it."""
        return [each for step in self.steps for each in (step, *self._wait(step.get("apply") or {}))]

    def _wait(self, manifest: JsonObject) -> list[dict[str, Json]]:
        if manifest.get("kind") != "Namespace" or manifest["metadata"]["name"] not in self._accounts:
            return []
        account = {"kind": "ServiceAccount", "name": "default", "namespace": manifest["metadata"]["name"]}
        return [{"wait": {"object": account}}]


def _update(old: JsonObject, new: JsonObject) -> list[dict[str, Json]]:
    """Return the patch that made `new` of `old`; none if a component made it."""
    subresource = ""
    if is_tracked(new):
        entry = client_entry(old, new)
        if entry is None:
            return []
        subresource = str(entry.get("subresource", ""))
    elif new["kind"] != "Node" and is_made_by_component(new):
        return []
    patch = change(old, new)
    if not is_tracked(new) and new["kind"] == "Pod" and "spec" in patch:
        subresource = "resize"
    patch = {key: value for key, value in patch.items() if (key == "status") == (subresource == "status")}
    patch = {key: value for key, value in patch.items() if value not in ({}, None)}
    if not patch:
        return []
    step: dict[str, Json] = {**_target(new)}
    if subresource:
        step["subresource"] = subresource
    return [{"patch": {**step, "patch": _escaped(without_secrets(new["kind"], patch))}}]


def _escaped(value: Json) -> Json:
    """Return a value whose texts have no variables of a scenario."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return {escaped(key): _escaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    return value


def _key(document: JsonObject) -> tuple[str, str]:
    return document["metadata"].get("namespace", "default"), document["metadata"]["name"]


def _is_cordoned(document: JsonObject) -> bool:
    return bool(document.get("spec", {}).get("unschedulable"))


def _is_of_a_person(document: JsonObject) -> bool:
    """Return whether another client than a component created an object, as far as it shows."""
    entries = document["metadata"].get("managedFields") or ()
    if entries:
        return not all(is_component(str(entry.get("manager", ""))) for entry in entries)
    return not is_made_by_component(document)


def _is_initial(document: JsonObject) -> bool:
    """Return whether every new cluster has an object."""
    metadata, kind = document["metadata"], document["kind"]
    if _BOOTSTRAPPING in metadata.get("labels", {}) or _AUTO_UPDATED in metadata.get("annotations", {}):
        return True
    return str(metadata["name"]).startswith(_INITIAL_NAMES.get(kind, ())) or (
        (kind, metadata["name"]) in _INITIAL_OBJECTS
    )


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
