"""A scenario from a JSON document that the schema accepts, with the checks that a schema cannot express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from nominee.lab.scenario.format import gate_checks, names, paths, substitution
from nominee.lab.scenario.format.condition import ObjectCondition
from nominee.lab.scenario.format.condition_parsing import Parser
from nominee.lab.scenario.format.documents import Document, InvalidScenarioError, Path
from nominee.lab.scenario.format.model import (
    TIMEOUT_SECONDS,
    WAIT_SECONDS,
    Action,
    Apply,
    ArmFailpoint,
    Background,
    ClusterOptions,
    ComponentOptions,
    Control,
    Cordon,
    DamageCheckpoint,
    Delete,
    Drain,
    Expect,
    InjectFault,
    InvariantException,
    Mode,
    Patch,
    ResizeGroup,
    Scenario,
    ShiftClock,
    Step,
    Verb,
    Wait,
)
from nominee.lab.scenario.format.schema import fields_of, near
from nominee.localcluster.components import BY_NAME
from nominee.localcluster.etcd import links as etcd_links
from nominee.machinery.api import kinds
from nominee.machinery.wire.manifests import parse_object
from nominee.machinery.wire.scalars import DecodeError, Json

_NOT_ACTIONS = ("name", "save", "rejected")
_REJECTED = ("apply", "patch", "start", "restart")
"""Steps that may be expected to fail."""


def parse(document: Document) -> Scenario:
    """Return the scenario of a document.

    Raises:
        InvalidScenarioError: it has mistakes; all that were found.
    """
    parser = ScenarioParser(document)
    scenario = parser.scenario(document.value)
    if parser.problems:
        problems = sorted(set(parser.problems), key=lambda problem: (problem.line, problem.field))
        raise InvalidScenarioError(problems)
    return scenario


class ScenarioParser(Parser):
    """Makes a scenario of a document."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._saved: set[str] = set()
        self._cluster = ClusterOptions()

    def scenario(self, value: Mapping[str, Json]) -> Scenario:
        """Return the scenario; mistakes are in `problems`."""
        metadata, spec = value["metadata"], value["spec"]
        exceptions = spec.get("invariants", {}).get("except", ())
        for index, each in enumerate(exceptions):
            with self.checking(("spec", "invariants", "except", index, "name")):
                names.invariant(each["name"])
        return Scenario(
            name=metadata["name"],
            title=metadata.get("title", ""),
            section=metadata.get("section", ""),
            file=self.document.file,
            timeout_seconds=float(spec.get("timeoutSeconds", TIMEOUT_SECONDS)),
            cluster=self.cluster(("spec", "cluster"), spec.get("cluster", {})),
            steps=tuple(self.step(("spec", "steps", i), step) for i, step in enumerate(spec["steps"])),
            background=tuple(
                self.background(("spec", "expect", i), each) for i, each in enumerate(spec.get("expect", ()))
            ),
            except_invariants=tuple(
                InvariantException(name=each["name"], reason=each["reason"]) for each in exceptions
            ),
            document=value,
        )

    # The cluster

    def cluster(self, path: Path, value: Mapping[str, Json]) -> ClusterOptions:
        """Return the cluster's options."""
        version = value.get("emulatedVersion", "")
        self.programs = {name for name, own in value.get("components", {}).items() if "command" in own}
        with self.checking((*path, "emulatedVersion")):
            names.version(version)
        shared = self.gates((*path, "featureGates"), value.get("featureGates", {}))
        without = tuple(
            self.whole_component((*path, "without", i), name)
            for i, name in enumerate(value.get("without", ()))
        )
        components = {}
        for name, options in value.get("components", {}).items():
            where = (*path, "components", name)
            process = self.component(where, name)
            if process in without:
                self.fault(where, f"{process} is in spec.cluster.without")
            parsed = self.component_options(where, options, process)
            components[process] = parsed
        cluster = ClusterOptions(
            emulated_version=version,
            feature_gates=shared,
            nodes=value.get("nodes", 0),
            kubelets=value.get("kubelets", 1),
            node_groups=tuple(value.get("nodeGroups", ())),
            components=components,
            without=without,
            restart=value.get("restart", "always") == "always",
            insecure=value.get("insecure", False),
        )
        self._cluster = cluster
        if not self.problems:
            for below, message in gate_checks.of_cluster(cluster, self.programs):
                self.fault((*path, *below), message)
        return cluster

    def gates(self, path: Path, value: Mapping[str, bool]) -> Mapping[str, bool]:
        """Return feature gates after a check of their names."""
        for name in value:
            with self.checking((*path, name)):
                names.gate(name)
        return dict(value)

    def whole_component(self, path: Path, text: str) -> str:
        """Return the name of a component, of which a process is no part."""
        name = self.component(path, text)
        if name not in BY_NAME and not self.problems:
            self.fault(path, f"{text} is one process of a component")
        return name

    def component_options(self, path: Path, value: Mapping[str, Json], process: str) -> ComponentOptions:
        """Return the options of a process."""
        with self.checking((*path, "emulatedVersion")):
            names.version(value.get("emulatedVersion", ""))
        for name, action in value.get("failpoints", {}).items():
            self.failpoint_name((*path, "failpoints", name), process, name, action)
        for key in ("emulatedVersion", "featureGates"):
            if key in value and process not in self.programs and not gate_checks.is_versioned(process):
                self.fault((*path, key), f"{process} has no emulated version and no feature gates")
        if "config" in value and process != "scheduler":
            self.fault((*path, "config"), "only the scheduler has a configuration")
        if "command" in value:
            used = [
                key
                for key in ("config", "emulatedVersion", "featureGates", "failpoints", "args", "replicas")
                if key in value
            ]
            for key in used:
                self.fault((*path, key), "another program (command) does not take it")
            if process in ("etcd", "apiserver", "kubelet", "cloud"):
                self.fault((*path, "command"), f"{process} cannot be another program")
        replicas = value.get("replicas", 1)
        most = BY_NAME[process].replicas_max if process in BY_NAME else 1
        if replicas > most:
            several = ", ".join(name for name, each in BY_NAME.items() if each.replicas_max > 1)
            self.fault((*path, "replicas"), f"at most {most} for {process}; there may be several {several}")
        return ComponentOptions(
            emulated_version=value.get("emulatedVersion", ""),
            feature_gates=self.gates((*path, "featureGates"), value.get("featureGates", {})),
            arguments=tuple(value.get("args", ())),
            failpoints=dict(value.get("failpoints", {})),
            config=value.get("config"),
            command=tuple(value.get("command", ())),
            replicas=replicas,
            stopped=value.get("stopped", False),
        )

    # Steps

    def step(self, path: Path, value: Mapping[str, Json]) -> Step:
        """Return one step."""
        actions = [key for key in fields_of("step") if key in value and key not in _NOT_ACTIONS]
        if len(actions) != 1:
            known = ", ".join(key for key in fields_of("step") if key not in _NOT_ACTIONS)
            found = f"got {' and '.join(actions)}" if actions else "got none of them"
            self.fault(path, f"a step has exactly one of {known}; {found}")
            return Step(action=Cordon(node=""), verb="", line=0)
        verb = actions[0]
        for name in _used_variables(value[verb]):
            if name not in self._saved:
                saved = ", ".join(sorted(self._saved)) or "no variable"
                self.fault((*path, verb), f"${{{name}}} is not saved by an earlier step; saved: {saved}")
        rejected = value.get("rejected", "")
        if rejected and verb not in _REJECTED:
            self.fault((*path, "rejected"), f"only {', '.join(_REJECTED)} can be rejected")
        action = _ACTIONS[verb](self, (*path, verb), value[verb], rejected)
        self._check_save(path, value.get("save", {}), action)
        return Step(
            action=action,
            verb=verb,
            line=self.document.line((*path, verb)),
            name=value.get("name", ""),
            save=dict(value.get("save", {})),
        )

    def _check_save(self, path: Path, save: Mapping[str, str], action: Action) -> None:
        for name, text in save.items():
            with self.checking((*path, "save", name)):
                paths.compiled(text)
            self._saved.add(name)
        if not save:
            return
        if not (isinstance(action, Wait | Expect) and isinstance(action.condition, ObjectCondition)):
            self.fault((*path, "save"), "only a wait or expect for an object can save values")

    def background(self, path: Path, value: Mapping[str, Json]) -> Background:
        """Return an expectation over the whole run."""
        modes = [key for key in ("always", "never") if key in value]
        if len(modes) != 1:
            self.fault(path, "give exactly one of always and never")
            return Background(mode=Mode.NEVER, condition=ObjectCondition(kind="Pod"), name="", line=0)
        condition = self.condition((*path, modes[0]), value[modes[0]])
        return Background(
            mode=Mode(modes[0]),
            condition=condition,
            name=value.get("name", ""),
            line=self.document.line(path),
        )

    # Actions

    def apply(self, path: Path, value: Json, rejected: str) -> Action:
        """Return the step that applies manifests, after a check of their fields."""
        manifests = value if isinstance(value, list) else [value]
        for index, manifest in enumerate(manifests):
            where = (*path, index) if isinstance(value, list) else path
            if rejected or any(_used_variables(manifest)):
                continue
            try:
                parse_object(manifest, strict=True)
            except DecodeError as error:
                below = tuple(part for part in re.split(r"[.\[\]]+", error.path) if part)
                place = tuple(map(_index, below))
                message = error.message
                if message == "unknown field":
                    message += near(str(place[-1]), _fields_at(manifest, place[:-1]))
                self.fault((*where, *place), message)
        return Apply(manifests=tuple(manifests), rejected=rejected)

    def patch(self, path: Path, value: Mapping[str, Json], rejected: str) -> Action:
        """Return the step that patches objects."""
        with self.checking((*path, "kind")):
            kind = names.kind(value["kind"])
            subresource = value.get("subresource", "")
            if subresource and subresource not in kind.subresources:
                known = ", ".join(sorted(kind.subresources))
                self.fault((*path, "subresource"), f"{kind.kind} has no {subresource}; it has {known}")
        self.one_target(path, value)
        patch_type = value.get("type", "strategic")
        if patch_type == "apply" and "fieldManager" not in value:
            self.fault(path, "a patch of type apply needs a fieldManager")
        if (patch_type == "json") != isinstance(value["patch"], list):
            self.fault((*path, "patch"), "a patch of type json is a list of operations, any other an object")
        return Patch(
            kind=value["kind"],
            name=value.get("name", ""),
            namespace=value.get("namespace", "default"),
            selector=value.get("selector", ""),
            subresource=value.get("subresource", ""),
            type=patch_type,
            patch=value["patch"],
            field_manager=value.get("fieldManager", ""),
            force=value.get("force", False),
            rejected=rejected,
        )

    def delete(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that deletes objects."""
        with self.checking((*path, "kind")):
            names.kind(value["kind"])
        self.one_target(path, value)
        return Delete(
            kind=value["kind"],
            name=value.get("name", ""),
            namespace=value.get("namespace", "default"),
            selector=value.get("selector", ""),
            grace_period_seconds=value.get("gracePeriodSeconds"),
        )

    def wait(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that waits for a condition."""
        return Wait(condition=self.condition(path, value), seconds=float(value.get("seconds", WAIT_SECONDS)))

    def expect(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return a check."""
        modes = [mode.value for mode in Mode if mode.value in value]
        if len(modes) != 1:
            self.fault(path, f"give exactly one of {', '.join(mode.value for mode in Mode)}")
            return Expect(mode=Mode.NOW, condition=ObjectCondition(kind="Pod"))
        mode = Mode(modes[0])
        if mode in (Mode.ALWAYS, Mode.NEVER) and "seconds" not in value:
            self.fault(path, f"{mode.value} needs seconds")
        if mode is Mode.NOW and "seconds" in value:
            self.fault((*path, "seconds"), "now takes no time; write eventually")
        condition = self.condition((*path, mode.value), value[mode.value])
        return Expect(mode=mode, condition=condition, seconds=float(value.get("seconds", WAIT_SECONDS)))

    def control(self, path: Path, value: Json, rejected: str) -> Action:
        """Return a step that starts, stops, kills, pauses, resumes or restarts a process."""
        fields: Mapping[str, Json] = {"component": value} if isinstance(value, str) else value
        where = path if isinstance(value, str) else (*path, "component")
        process = self.component(where, fields["component"])
        options = self.component_options(path, fields, process)
        if not self.problems and process not in self.programs:
            for below, message in gate_checks.of_step(self._cluster, process, options):
                self.fault((*path, *below), message)
        return Control(
            verb=Verb(path[-1]),
            component=process,
            options=options,
            kill=fields.get("kill", False),
            rejected=rejected,
        )

    def failpoint(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that arms a failpoint."""
        component = self.component((*path, "component"), value["component"], serves=True)
        self.failpoint_name((*path, "name"), component, value["name"], value["action"])
        return ArmFailpoint(component=component, name=value["name"], action=value["action"])

    def fault_step(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that sets or removes faults."""
        with self.checking((*path, "action")):
            names.fault_action(value["action"])
        if value["component"].partition("-")[0] == "etcd":
            return self._link(path, value)
        if value.get("kind", "*") != "*":
            with self.checking((*path, "kind")):
                names.kind(value["kind"])
        to = value.get("to", "*")
        return InjectFault(
            component=self.component((*path, "component"), value["component"], serves=True),
            action=value["action"],
            to=to if to == "*" else self.component((*path, "to"), to),
            method=value.get("method", "*"),
            kind=value.get("kind", "*"),
        )

    def _link(self, path: Path, value: Mapping[str, Json]) -> Action:
        """Return the step that cuts or heals links between etcd members."""
        if value["action"] not in (etcd_links.CUT, etcd_links.OFF):
            self.fault((*path, "action"), "links between etcd members can be cut, or healed by off")
        if "method" in value or "kind" in value:
            self.fault(path, "a link between etcd members is cut as a whole, without method and kind")
        component, to = value["component"], value.get("to", "*")
        if component != etcd_links.LEADER:
            component = self.component((*path, "component"), component)
        if to != "*":
            to = self.component((*path, "to"), to)
        return InjectFault(component=component, action=value["action"], to=to)

    def clock(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that shifts a clock."""
        component = self.component((*path, "component"), value["component"], serves=True)
        return ShiftClock(component=component, offset_seconds=float(value["offsetSeconds"]))

    def drain(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that drains a node."""
        return Drain(node=value["node"], seconds=float(value.get("seconds", WAIT_SECONDS)))

    def cordon(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that makes a node unschedulable or schedulable."""
        return Cordon(node=value["node"], unschedulable=path[-1] == "cordon")

    def node_group(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that changes a node group."""
        if ("increase" in value) == value.get("delete", False):
            self.fault(path, "give increase, or delete: true")
        groups = {group["name"] for group in self._node_groups()}
        if value["name"] not in groups:
            known = ", ".join(sorted(groups)) or "none"
            self.fault(
                (*path, "name"), f"no node group {value['name']!r} in spec.cluster.nodeGroups: {known}"
            )
        return ResizeGroup(
            group=value["name"],
            increase=value.get("increase", 0),
            delete=value.get("delete", False),
            wait=value.get("wait", True),
            seconds=float(value.get("seconds", WAIT_SECONDS)),
        )

    def _node_groups(self) -> list[Mapping[str, Json]]:
        return list(self.document.value["spec"].get("cluster", {}).get("nodeGroups", ()))

    def checkpoint(self, path: Path, value: Mapping[str, Json], _: str) -> Action:
        """Return the step that damages a checkpoint."""
        return DamageCheckpoint(node=value["node"], how=value["damage"])


def _index(part: str) -> str | int:
    return int(part) if part.isdigit() else part


def _fields_at(manifest: Mapping[str, Json], place: Path) -> tuple[str, ...]:
    """Return the fields of a kind's message at a place in a manifest; none if the place is in a map."""
    kind = kinds.by_kind(manifest["apiVersion"], manifest["kind"])
    descriptor = kind.message.DESCRIPTOR if kind is not None else None
    for part in place:
        if isinstance(part, int) or descriptor is None:
            continue
        field = descriptor.fields_by_name.get(part)
        descriptor = field.message_type if field is not None else None
    return tuple(descriptor.fields_by_name) if descriptor is not None else ()


def _used_variables(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield from substitution.used(value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _used_variables(key)
            yield from _used_variables(each)
    elif isinstance(value, list):
        for each in value:
            yield from _used_variables(each)


_ACTIONS: Mapping[str, Callable[[ScenarioParser, Path, Json, str], Action]] = {
    "apply": ScenarioParser.apply,
    "patch": ScenarioParser.patch,
    "delete": ScenarioParser.delete,
    "wait": ScenarioParser.wait,
    "expect": ScenarioParser.expect,
    **{verb.value: ScenarioParser.control for verb in Verb},
    "failpoint": ScenarioParser.failpoint,
    "fault": ScenarioParser.fault_step,
    "clock": ScenarioParser.clock,
    "drain": ScenarioParser.drain,
    "cordon": ScenarioParser.cordon,
    "uncordon": ScenarioParser.cordon,
    "nodeGroup": ScenarioParser.node_group,
    "checkpoint": ScenarioParser.checkpoint,
}
