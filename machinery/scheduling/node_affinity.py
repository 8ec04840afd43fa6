"""Node selectors and node affinity of pods and volumes.

Terms are ORed, the requirements of a term ANDed; a term without requirements matches nothing. A term that
cannot be understood matches nothing either. Source: component-helpers' nodeaffinity package, 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nominee.machinery.api import names
from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import Operator, Requirement, SelectorError

NAME_FIELD = "metadata.name"

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_FIELD_OPERATORS = {"In": Operator.EQUALS, "NotIn": Operator.NOT_EQUALS}


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One nodeSelectorTerm, read: conditions on labels and on fields, or the errors that it has."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    @classmethod
    def read(cls, term: core.NodeSelectorTerm, path: str = "") -> NodeTerm:
        """Return a term of the API, with the errors of its invalid parts."""
        errors: list[str] = []
        labels, fields = [], []
        for index, expression in enumerate(term.matchExpressions):
            where = f"{path}{'.' if path else ''}matchExpressions[{index}]"
            operator = _OPERATORS.get(expression.operator)
            if operator is None:
                errors.append(names.not_supported(f"{where}.operator", expression.operator, _OPERATORS))
                continue
            try:
                labels.append(Requirement.make(expression.key, operator, expression.values, where))
            except SelectorError as error:
                errors.append(str(error))
        for index, expression in enumerate(term.matchFields):
            where = f"{path}{'.' if path else ''}matchFields[{index}]"
            operator = _FIELD_OPERATORS.get(expression.operator)
            if operator is None:
                errors.append(names.not_supported(f"{where}.operator", expression.operator, _FIELD_OPERATORS))
            elif len(expression.values) != 1:
                shown = list(expression.values)
                errors.append(names.invalid(f"{where}.values", shown, "must have one element"))
            else:
                fields.append(Requirement(expression.key, operator, tuple(expression.values)))
        return cls(tuple(labels), tuple(fields), tuple(errors))

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name matches."""
        if self.errors:
            return False
        if not all(requirement.matches(labels) for requirement in self.labels):
            return False
        # A node without a name (a template) has no fields to compare.
        return not name or all(
            (name if requirement.key == NAME_FIELD else "") == requirement.values[0]
            if requirement.operator is Operator.EQUALS
            else (name if requirement.key == NAME_FIELD else "") != requirement.values[0]
            for requirement in self.fields
        )


def _is_empty(term: core.NodeSelectorTerm) -> bool:
    return not term.matchExpressions and not term.matchFields


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """A `core.NodeSelector`, read once and matched often."""

    terms: tuple[NodeTerm, ...]

    @classmethod
    def read(cls, selector: core.NodeSelector, path: str = "") -> NodeSelector:
        """Return a selector of the API without its empty terms, which match no node."""
        prefix = f"{path}{'.' if path else ''}nodeSelectorTerms"
        return cls(
            tuple(
                NodeTerm.read(term, f"{prefix}[{index}]")
                for index, term in enumerate(selector.nodeSelectorTerms)
                if not _is_empty(term)
            )
        )

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of terms that cannot be read; upstream reports them only when no term matched."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """A pod's `nodeSelector` and required node affinity; both must hold."""

    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None

    @classmethod
    def of(cls, pod: core.Pod) -> RequiredNodeAffinity:
        affinity = pod.spec.affinity.nodeAffinity
        required = None
        if affinity.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
            required = NodeSelector.read(affinity.requiredDuringSchedulingIgnoredDuringExecution)
        return cls(tuple(pod.spec.nodeSelector.items()), required)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if any(labels.get(key) != value for key, value in self.node_selector):
            return False
        return self.affinity is None or self.affinity.matches(labels, name)


@dataclass(frozen=True, slots=True)
class PreferredTerms:
    """Weighted preferences, read once."""

    terms: tuple[tuple[int, NodeTerm], ...]

    @classmethod
    def read(cls, terms: Iterable[core.PreferredSchedulingTerm]) -> PreferredTerms:
        """Return the preferred terms, without those that have no weight or requirements.

        Raises:
            SelectorError: terms cannot be read; has all errors.
        """
        errors: list[str] = []
        found = []
        for index, term in enumerate(terms):
            if term.weight == 0 or _is_empty(term.preference):
                continue
            read = NodeTerm.read(term.preference, f"[{index}]")
            errors += read.errors
            found.append((term.weight, read))
        if errors:
            raise SelectorError(names.aggregate(errors))
        return cls(tuple(found))

    @classmethod
    def of(cls, pod: core.Pod) -> PreferredTerms:
        """Return the pod's preferred node affinity.

        Raises:
            SelectorError: terms cannot be read; has all errors.
        """
        return cls.read(pod.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution)


def matches(pod: core.Pod, node: core.Node) -> bool:
    """Return whether the pod's nodeSelector and required affinity allow the node. Reads both each time."""
    return RequiredNodeAffinity.of(pod).matches(node.metadata.labels, node.metadata.name)
