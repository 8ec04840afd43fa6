"""Conditions from JSON that the schema accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from nominee.lab.scenario.format import names, paths
from nominee.lab.scenario.format.condition import (
    DEFAULT_NAMESPACE,
    AllOf,
    AnyOf,
    Comparison,
    ComponentCondition,
    Condition,
    DebugCondition,
    EventCondition,
    FailpointCondition,
    MetricCondition,
    ObjectCondition,
    QueueCondition,
)
from nominee.lab.scenario.format.documents import Document, Path, Problem
from nominee.lab.scenario.format.schema import fields_of
from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.scalars import Json

_STATUS_CONDITION = re.compile(r"!\w+|\w+=(?:True|False|Unknown)(?:/\w+)?|\$\{.*")
_NO_CONDITION = AllOf(conditions=())
ANY_OBJECT = Comparison(at_least=1)


class Parser:
    """Collects the mistakes of a document while it is made into a scenario."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.programs: set[str] = set()
        """Processes of the cluster that are no components of Nominee's."""

    def fault(self, path: Path, message: str) -> None:
        """Record a mistake at a value."""
        self.problems.append(self.document.problem(path, message))

    @contextmanager
    def checking(self, path: Path) -> Iterator[None]:
        """Record the mistake that a check inside the block raises."""
        try:
            yield
        except (names.NameProblem, paths.PathError, QuantityError, re.error) as error:
            self.fault(path, str(error))

    def component(self, path: Path, text: str, *, serves: bool = False) -> str:
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

    # Conditions

    def condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return the one condition of a mapping; other keys, such as `seconds`, are the caller's."""
        given = [key for key in fields_of("condition") if key in value]
        if len(given) != 1:
            listed = ", ".join(fields_of("condition"))
            found = f"got {' and '.join(given)}" if given else "got none of them"
            self.fault(path, f"give exactly one of {listed}; {found}")
            return _NO_CONDITION
        parse = _PARSERS[given[0]]
        return parse(self, (*path, given[0]), value[given[0]])

    def object_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on objects."""
        kind, namespaced = value["kind"], True
        with self.checking((*path, "kind")):
            namespaced = names.kind(kind).namespaced
        self.one_target(path, value, may_be_all=True)
        conditions = value.get("condition", ())
        conditions = (conditions,) if isinstance(conditions, str) else tuple(conditions)
        for text in conditions:
            if not _STATUS_CONDITION.fullmatch(text):
                self.fault(
                    (*path, "condition"),
                    f"{text!r} is not TYPE=STATUS, TYPE=STATUS/REASON or !TYPE, as PodScheduled=True",
                )
        count = self.count((*path, "count"), value["count"]) if "count" in value else None
        if "exists" in value:
            if count is not None:
                self.fault((*path, "exists"), "give exists or count, not both")
            count = ANY_OBJECT if value["exists"] else Comparison(equal=0, has_equal=True)
        return ObjectCondition(
            kind=kind,
            name=value.get("name", ""),
            namespace=value.get("namespace", DEFAULT_NAMESPACE) if namespaced else "",
            selector=value.get("selector", ""),
            conditions=conditions,
            json_path=self.json_path((*path, "jsonPath"), value.get("jsonPath", {})),
            count=count,
        )

    def one_target(self, path: Path, value: Mapping[str, Json], *, may_be_all: bool = False) -> None:
        """Check that a name or a selector is given."""
        if "name" in value and "selector" in value:
            self.fault((*path, "selector"), "give a name or a selector, not both")
        if not may_be_all and "name" not in value and "selector" not in value:
            self.fault(path, "give a name or a selector")
        if "selector" in value and "${" not in value["selector"]:
            with self.checking((*path, "selector")):
                names.selector(value["selector"])

    def json_path(self, path: Path, value: Mapping[str, Json]) -> Mapping[str, Comparison]:
        """Return comparisons by JSON path."""
        found = {}
        for text, comparison in value.items():
            with self.checking((*path, text)):
                if "${" not in text:
                    paths.compiled(text)
            found[text] = self.comparison((*path, text), comparison)
        return found

    def comparison(self, path: Path, value: Json) -> Comparison:
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

    def count(self, path: Path, value: Json) -> Comparison:
        """Return the comparison of a number."""
        return self.comparison(path, value)

    def _counts(self, path: Path, value: Mapping[str, Json], *keys: str) -> dict[str, Comparison | None]:
        return {key: self.count((*path, key), value[key]) if key in value else None for key in keys}

    def event_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on events."""
        kind = value.get("kind", "")
        if kind:
            with self.checking((*path, "kind")):
                kind = names.kind(kind).kind
        message = value.get("message")
        return EventCondition(
            reason=value.get("reason", ""),
            type=value.get("type", ""),
            kind=kind,
            name=value.get("name", ""),
            namespace=value.get("namespace", ""),
            component=value.get("component", ""),
            message=self.comparison((*path, "message"), message) if message is not None else None,
            **self._counts(path, value, "count"),
        )

    def metric_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on a metric."""
        return MetricCondition(
            component=self.component((*path, "component"), value["component"], serves=True),
            name=value["name"],
            labels=dict(value.get("labels", {})),
            value=self.comparison((*path, "value"), value["value"]),
        )

    def queue_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on the scheduler's queues."""
        queue = value["queue"]
        if queue == "none" and "pod" not in value:
            self.fault(path, "queue none needs a pod")
        if "pod" in value and "count" in value:
            self.fault((*path, "count"), "give a pod or a count, not both")
        if "pod" not in value and "count" not in value:
            self.fault(path, "give a pod or a count")
        return QueueCondition(
            queue="" if queue == "none" else queue,
            pod=value.get("pod", ""),
            namespace=value.get("namespace", DEFAULT_NAMESPACE),
            component=self.component((*path, "component"), value.get("component", "scheduler")),
            **self._counts(path, value, "count"),
        )

    def failpoint_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on a failpoint."""
        component = self.component((*path, "component"), value["component"], serves=True)
        self.failpoint_name((*path, "name"), component, value["name"])
        counts = self._counts(path, value, "waiting", "hits", "fired")
        if all(count is None for count in counts.values()):
            self.fault(path, "give waiting, hits or fired")
        return FailpointCondition(component=component, name=value["name"], **counts)

    def failpoint_name(self, path: Path, component: str, name: str, action: str = "") -> None:
        """Check a failpoint of a component, if the component's name is correct."""
        if "${" in component + name:
            return
        try:
            found, _ = names.process(component)
        except names.NameProblem:
            return
        with self.checking(path):
            names.failpoint(found, name, action)

    def component_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on a process."""
        if "state" not in value and "restarts" not in value:
            self.fault(path, "give state or restarts")
        return ComponentCondition(
            name=self.component((*path, "name"), value["name"]),
            state=value.get("state", ""),
            **self._counts(path, value, "restarts"),
        )

    def debug_condition(self, path: Path, value: Mapping[str, Json]) -> Condition:
        """Return a condition on the JSON that a process serves."""
        return DebugCondition(
            component=self.component((*path, "component"), value["component"], serves=True),
            path=value["path"],
            json_path=self.json_path((*path, "jsonPath"), value["jsonPath"]),
        )

    def all_of(self, path: Path, value: list[Mapping[str, Json]]) -> Condition:
        """Return a condition of which every part must hold."""
        return AllOf(conditions=[self.condition((*path, i), part) for i, part in enumerate(value)])

    def any_of(self, path: Path, value: list[Mapping[str, Json]]) -> Condition:
        """Return a condition of which one part must hold."""
        return AnyOf(conditions=[self.condition((*path, i), part) for i, part in enumerate(value)])


_PARSERS: Mapping[str, Callable[[Parser, Path, Json], Condition]] = {
    "object": Parser.object_condition,
    "event": Parser.event_condition,
    "metric": Parser.metric_condition,
    "queue": Parser.queue_condition,
    "failpoint": Parser.failpoint_condition,
    "component": Parser.component_condition,
    "debug": Parser.debug_condition,
    "all": Parser.all_of,
    "any": Parser.any_of,
}
