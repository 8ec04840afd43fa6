"""The checks of fields that a JSON Schema cannot express: names, JSON paths, comparisons, options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from nominee.lab.scenario.fields import gate_checks, names, paths
from nominee.lab.scenario.fields.comparison import Comparison
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.localcluster.components import BY_NAME
from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.values.scalars import Json


class Parser:
    """Collects the mistakes of a document, which the schema accepts, while it is made into a scenario."""

    def __init__(self) -> None:
        self.faults: list[tuple[FieldPath, str]] = []
        self.programs: set[str] = set()
        """Processes of the cluster that are no components of Nominee's."""
        self.cluster = ClusterOptions()

    def fault(self, path: FieldPath, message: str) -> None:
        """Record a mistake at a value."""
        self.faults.append((path, message))

    @contextmanager
    def checking(self, path: FieldPath) -> Iterator[None]:
        """Record the mistake that a check inside the block raises."""
        try:
            yield
        except (names.NameProblem, paths.PathError, QuantityError, re.error) as error:
            self.fault(path, str(error))

    # Names

    def component(self, path: FieldPath, text: str, *, serves: bool = False) -> str:
        """Return the name of a component's process; `serves`: the process must have a serving port."""
        if text in self.programs and serves:
            self.fault(path, f"{text} is not Nominee's: it has no such port")
        if "${" in text or text in self.programs:
            return text
        with self.checking(path):
            component, name = names.process(text, also=self.programs)
            if serves and component.name == "etcd":
                self.fault(path, "etcd has no serving port")
            return name
        return text

    def failpoint_name(self, path: FieldPath, component: str, name: str, action: str = "") -> None:
        """Check a failpoint of a component, if the component's name is correct."""
        if "${" in component + name:
            return
        try:
            found, _ = names.process(component)
        except names.NameProblem:
            return
        with self.checking(path):
            names.failpoint(found, name, action)

    def one_target(self, path: FieldPath, value: Mapping[str, Json], *, may_be_all: bool = False) -> None:
        """Check that a name or a selector is given."""
        if "name" in value and "selector" in value:
            self.fault((*path, "selector"), "give a name or a selector, not both")
        if not may_be_all and "name" not in value and "selector" not in value:
            self.fault(path, "give a name or a selector")
        if "selector" in value and "${" not in value["selector"]:
            with self.checking((*path, "selector")):
                names.selector(value["selector"])

    # Comparisons

    def json_path(self, path: FieldPath, value: Mapping[str, Json]) -> Mapping[str, Comparison]:
        """Return comparisons by JSON path."""
        found = {}
        for text, comparison in value.items():
            with self.checking((*path, text)):
                if "${" not in text:
                    paths.compiled(text)
            found[text] = self.comparison((*path, text), comparison)
        return found

    def comparison(self, path: FieldPath, value: Json) -> Comparison:
        """Return a comparison: a value, or operators."""
        if not isinstance(value, Mapping):
            return Comparison(equal=value, has_equal=True)
        if "matches" in value:
            with self.checking((*path, "matches")):
                re.compile(value["matches"])
        if "quantity" in value and "${" not in value["quantity"]:
            with self.checking((*path, "quantity")):
                Quantity.parse(value["quantity"])
        return Comparison(
            unequal=value.get("not"),
            has_unequal="not" in value,
            contains=value.get("contains", ""),
            matches=value.get("matches", ""),
            one_of=tuple(value.get("in", ())),
            quantity=value.get("quantity", ""),
            at_least=value.get("atLeast"),
            at_most=value.get("atMost"),
            present=value.get("present"),
        )

    # Options of components

    def gates(self, path: FieldPath, value: Mapping[str, bool]) -> Mapping[str, bool]:
        """Return feature gates after a check of their names."""
        for name in value:
            with self.checking((*path, name)):
                names.gate(name)
        return dict(value)

    def component_options(self, path: FieldPath, value: Mapping[str, Json], process: str) -> ComponentOptions:
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
