"""Conditions on an object for `Cluster.wait`: an expression of CEL, or a condition of scenarios. No I/O."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from nominee.lab.scenario.conditions.combined import AllOf
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields.comparison import shown
from nominee.lab.scenario.format import schema
from nominee.lab.scenario.format.documents import Document as YamlDocument
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.cel.errors import compile_text, evaluation_text
from nominee.machinery.wire.values.scalars import Json

Document = Mapping[str, Json]
_FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status", "data")
"""The fields of an object that an expression names; the whole object is `object`."""
_PATH: Final = re.compile(r"\b(?:object\.)?((?:metadata|spec|status|data)(?:\.\w+)+)\b(?!\()")
_ABSENT: Final = "there is no such object"


class Condition(ABC):
    """A condition on one object, which need not exist."""

    @abstractmethod
    def evaluate(self, document: Document | None) -> tuple[bool, str]:
        """Return whether it holds, and the values that it looked at."""


class Expression(Condition):
    """An expression of CEL over the fields of an object, `status.phase == 'Running'`.

    It does not hold while the object or a field that it reads does not exist.

    Raises:
        ValueError: the expression is wrong; at its evaluation: its value is not true or false.
    """

    def __init__(self, text: str) -> None:
        from cel_expr_python import cel  # loads with the first expression

        variables = dict.fromkeys((*_FIELDS, "object"), cel.Type.DYN)
        try:
            self._program = cel.NewEnv(variables=variables).compile(text)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{text!r} is no condition: {compile_text(str(error))}") from None
        self._text, self._error = text, cel.Type.ERROR
        self._paths = list(dict.fromkeys(_PATH.findall(text)))

    def __str__(self) -> str:
        return self._text

    def evaluate(self, document: Document | None) -> tuple[bool, str]:
        if document is None:
            return False, _ABSENT
        fields = {name: document.get(name, {}) for name in _FIELDS}
        observed = "; ".join(f"{path} = {_value(document, path)}" for path in self._paths)
        try:
            result = self._program.eval(data={**fields, "object": dict(document)})
        except RuntimeError as error:
            return False, observed or evaluation_text(str(error))
        if result.type() == self._error:
            return False, observed or evaluation_text(str(result.value()))
        if not isinstance(result.value(), bool):
            raise ValueError(f"{self._text!r} is no condition: its value is {shown(result.value())}")
        return result.value(), observed


class ScenarioCondition(Condition):
    """The properties of an `object` condition of scenarios, as `{"condition": "Ready=True"}`.

    Raises:
        ValueError: it is no such condition.
    """

    def __init__(self, properties: Document, kind: AnyKind, name: str, namespace: str) -> None:
        where = {"namespace": namespace} if kind.namespaced else {}
        value = {**properties, "kind": kind.group_resource, "name": name, **where}
        found = schema.check(YamlDocument("condition", value, {}), definition="objectCondition")
        problems = [f"{each.field}: {each.message}".removeprefix(": ") for each in found]
        if not problems:
            parser = ConditionParser(CONDITIONS, otherwise=AllOf(conditions=()))
            self._condition = parser.condition((), {ObjectCondition.key: value})
            problems = [message for _, message in parser.faults]
        if problems:
            raise ValueError(f"{dict(properties)} is no condition: {'; '.join(problems)}")

    def __str__(self) -> str:
        return self._condition.describe()

    def evaluate(self, document: Document | None) -> tuple[bool, str]:
        assert isinstance(self._condition, ObjectCondition)
        observed = self._condition.evaluated([] if document is None else [document])
        return observed.holds, observed.text


def condition_on(condition: str | Document, kind: AnyKind, name: str, namespace: str) -> Condition:
    """Return a condition on an object. Raises: ValueError: it is wrong."""
    if not condition or not isinstance(condition, str | Mapping):
        example = "\"status.phase == 'Running'\" and {'exists': True} are some"
        raise ValueError(f"{condition!r} is no condition; {example}")
    if isinstance(condition, str):
        return Expression(condition)
    return ScenarioCondition(condition, kind, name, namespace)


def _value(document: Document, path: str) -> str:
    value: Json = document
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return "unset"
        value = value[part]
    return shown(value)
