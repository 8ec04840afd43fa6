"""Turn the changes in a cluster into the steps of a scenario. No I/O.

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
from dataclasses import replace

from nominee.lab.scenario.acting.base import ProcessView
from nominee.lab.scenario.acting.written_fields import (
    JsonObject,
    is_component,
    is_made_by_component,
    target_of,
)
from nominee.lab.scenario.conditions.object import name_of
from nominee.lab.scenario.format.model import API_VERSION, KIND
from nominee.lab.scenario.steps.expect import Expect
from nominee.lab.scenario.steps.faults.fault import InjectFault, Link
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.objects.delete import Delete
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.table import VERBS
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.wire.values.scalars import Json

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


class Recorder:
    """Collects steps; `on_object` and `on_processes` return those that are new."""

    def __init__(self) -> None:
        self.steps: list[JsonObject] = []
        self.dropped = 0
        """Steps beyond STEPS_MAX, and objects beyond OBJECTS_MAX."""
        self._existing: list[JsonObject] = []
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
        self._existing.append(Apply.manifest_of(document))

    def on_object(self, old: JsonObject | None, new: JsonObject | None) -> list[JsonObject]:
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
        return self._add(*Patch.of_change(old, new))

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

    def _created(self, document: JsonObject) -> list[JsonObject]:
        if not _is_of_a_person(document):
            return []
        target = target_of(document)
        steps: list[JsonObject] = []
        if target in self._deleted_targets:
            self._deleted_targets.remove(target)
            steps.append(Wait.for_object({**target, "exists": False}))
        if document["kind"] == "Pod":
            self._pods[_key(document)] = None
        return self._add(*steps, Apply.of_object(document))

    def _gone(self, document: JsonObject) -> list[JsonObject]:
        """Record a deletion that took place at once: the object was not terminating before."""
        is_terminating = bool(document["metadata"].get("deletionTimestamp"))
        is_pod_of_a_node = document["kind"] == "Pod" and bool(document.get("spec", {}).get("nodeName"))
        return self._deleted(document, grace_seconds=0 if is_pod_of_a_node and not is_terminating else None)

    def _deleted(self, document: JsonObject, grace_seconds: int | None = None) -> list[JsonObject]:
        """Return the step that deleted an object, unless a component did, or it is recorded already."""
        metadata = document["metadata"]
        uid = str(metadata.get("uid", ""))
        if uid in self._deleted_uids or _is_owned(document) or not _is_of_a_person(document):
            return []
        if metadata.get("namespace", "") in self._ending or self._is_evicted_by_component(document):
            return []
        self._pods.pop(_key(document), None)
        self._deleted_uids.add(uid)
        self._deleted_targets.append(target_of(document))
        return self._add(Delete.of_object(document, grace_seconds))

    def _is_evicted_by_component(self, document: JsonObject) -> bool:
        """Return whether a component evicted a pod; from a cordoned node a person does, by a drain."""
        conditions = document.get("status", {}).get("conditions") or ()
        found = next((each for each in conditions if each.get("type") == _EVICTED), None)
        if found is None:
            return False
        node = document.get("spec", {}).get("nodeName", "")
        return found.get("reason") != _BY_EVICTION_API or node not in self._cordoned

    def on_processes(self, views: Sequence[ProcessView]) -> list[JsonObject]:
        """Record the changes of processes since the last call; the first call records nothing."""
        steps: list[JsonObject] = []
        for view in views:
            before = self._views.get(view.name)
            if before is not None:
                steps += [step for verb in VERBS.values() for step in verb.record(before, view)]
            if view.state in ("ready", "paused", "down", "crashed"):
                # A process that is down has neither version nor gates: those of its last run count.
                last = before if before is not None and not view.emulated_version else view
                self._views[view.name] = replace(
                    view, emulated_version=last.emulated_version, gates=last.gates
                )
        return self._add(*steps)

    def on_links(self, links: Mapping[Link, bool]) -> list[JsonObject]:
        """Record the links between etcd members that were cut or healed since the last call.

        `links` says whether each is cut. The first call records nothing.
        """
        steps = InjectFault.of_links(self._links, links)
        self._links.update(links)
        return self._add(*steps)

    def _add(self, *steps: JsonObject) -> list[JsonObject]:
        room = STEPS_MAX - len(self.steps)
        self.steps += steps[:room]
        self.dropped += len(steps[room:])
        return list(steps[:room])

    def document(self, name: str, cluster: JsonObject, phases: Mapping[str, str]) -> dict[str, Json]:
        """Return the scenario. `phases` are the phases of pods now, which it expects in the end."""
        expectations = [
            Expect.of_object(
                {
                    "kind": "Pod",
                    "name": pod,
                    **({"namespace": namespace} if namespace != "default" else {}),
                    "jsonPath": {".status.phase": phases[f"{namespace}/{pod}"]},
                }
            )
            for namespace, pod in self._pods
            if f"{namespace}/{pod}" in phases
        ]
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "title": "recorded"},
            "spec": {"cluster": dict(cluster), "steps": [*self._begin(), *self._with_waits(), *expectations]},
        }

    def _begin(self) -> list[JsonObject]:
        """Return the steps that create the first objects: namespaces, then those that pods use, then pods."""
        namespaces = [each for each in self._existing if each["kind"] == "Namespace"]
        pods = [each for each in self._existing if each["kind"] == "Pod"]
        others = [each for each in self._existing if each["kind"] not in ("Namespace", "Pod")]
        steps: list[JsonObject] = []
        if namespaces:
            steps.append(Apply.of_manifests("the namespaces that existed", namespaces))
            steps += [wait for each in namespaces for wait in self._wait(each)]
        if others or pods:
            steps.append(Apply.of_manifests("the objects that existed", [*others, *pods]))
        return steps

    def _with_waits(self) -> list[JsonObject]:
        """Return the steps, and after the creation of a namespace a wait until pods can be created in it."""
        return [each for step in self.steps for each in (step, *self._wait(step.get(Apply.verb) or {}))]

    def _wait(self, manifest: JsonObject) -> list[JsonObject]:
        if manifest.get("kind") != "Namespace" or manifest["metadata"]["name"] not in self._accounts:
            return []
        account = {"kind": "ServiceAccount", "name": "default", "namespace": manifest["metadata"]["name"]}
        return [Wait.for_object(account)]


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


def described(step: JsonObject) -> str:
    """Return a step as a line of output."""
    verb, value = next(iter(step.items()))
    if isinstance(value, str):
        return f"{verb} {value}"
    if "metadata" in value:
        return f"apply {name_of(value)}"
    return f"{verb} {value.get('component') or value.get('kind', '')} {value.get('name', '')}".rstrip()
