"""Selectors over labels, and over the fields by which objects may be listed.

`LabelSelector` covers the text form (`a=b,c in (d,e),!f,g>3`), `meta.LabelSelector` and the requirements of
node selectors (In, NotIn, Exists, DoesNotExist, Gt, Lt). Texts of errors are the API server's (1.36).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from nominee.machinery.api import names
from nominee.machinery.api.pb import meta


class SelectorError(ValueError):
    """The selector cannot be understood."""


class Operator(Enum):
    """The comparison of a requirement; the value is the word or sign of the text form."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_BINARY = "in, notin, =, ==, !=, gt, lt"
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_ONE_OF = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NONE_OF = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_ORDERED = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})


def parse_int64(text: str) -> int | None:
    """Return a decimal number as Go's ParseInt(text, 10, 64) reads it, or None."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. `make` checks it; the constructor does not."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @classmethod
    def make(cls, key: str, operator: Operator, values: Iterable[str], path: str = "") -> Requirement:
        """Return a checked requirement.

        Raises:
            SelectorError: the requirement is not valid; names the field below `path`.
        """
        values = tuple(values)
        problems = _requirement_problems(key, operator, values, path)
        if problems:
            raise SelectorError(names.aggregate(problems))
        return cls(key, operator, values)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels fulfills the requirement."""
        value = labels.get(self.key)
        operator = self.operator
        if operator in _ONE_OF:
            return value is not None and value in self.values
        if operator in _NONE_OF:
            return value is None or value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        if value is None or len(self.values) != 1:
            return False
        mine, bound = parse_int64(value), parse_int64(self.values[0])
        if mine is None or bound is None:
            return False
        return mine > bound if operator is Operator.GREATER_THAN else mine < bound

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in (Operator.IN, Operator.NOT_IN):
            return f"{self.key} {self.operator.value} ({values})"
        sign = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}.get(self.operator, self.operator.value)
        return f"{self.key}{sign}{values}"


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _requirement_problems(key: str, operator: Operator, values: tuple[str, ...], path: str) -> list[str]:
    problems = []
    key_problems = names.qualified_name_problems(key)
    if key_problems:
        problems.append(names.invalid(_child(path, "key"), key, "; ".join(key_problems)))
    where = _child(path, "values")
    shown = list(values)
    if operator in (Operator.IN, Operator.NOT_IN):
        if not values:
            problems.append(
                names.invalid(where, shown, "for 'in', 'notin' operators, values set can't be empty")
            )
    elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        if values:
            problems.append(
                names.invalid(where, shown, "values set must be empty for exists and does not exist")
            )
    elif operator in _ORDERED:
        if len(values) != 1:
            detail = "for 'Gt', 'Lt' operators, exactly one value is required"
            problems.append(names.invalid(where, shown, detail))
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems += [
            names.invalid(f"{where}[{index}]", value, detail)
            for index, value in enumerate(values)
            if parse_int64(value) is None
        ]
    elif len(values) != 1:
        problems.append(names.invalid(where, shown, "exact-match compatibility requires one single value"))
    for index, value in enumerate(values):
        value_problems = names.label_value_problems(value)
        if value_problems:
            problems.append(names.invalid(f"{where}[{index}][{key}]", value, "; ".join(value_problems)))
    return problems


_MESSAGE_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; none at all selects everything, unless `nothing`."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    @classmethod
    def everything(cls) -> LabelSelector:
        return _EVERYTHING

    @classmethod
    def nothing(cls) -> LabelSelector:
        return _NOTHING

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse the text form; requirements are sorted by key.

        Raises:
            SelectorError: the text is not a selector.
        """
        return cls(tuple(sorted(_Parser(text).parse(), key=lambda each: each.key)))

    @classmethod
    def from_map(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Exactly these labels, unchecked."""
        return cls(tuple(Requirement(key, Operator.EQUALS, (labels[key],)) for key in sorted(labels)))

    @classmethod
    def from_message(cls, message: meta.LabelSelector | None) -> LabelSelector:
        """None (an unset pointer) selects nothing, an empty message everything; SelectorError."""
        if message is None:
            return _NOTHING
        requirements = [
            Requirement.make(key, Operator.EQUALS, (message.matchLabels[key],))
            for key in sorted(message.matchLabels)
        ]
        for expression in message.matchExpressions:
            operator = _MESSAGE_OPERATORS.get(expression.operator)
            if operator is None:
                quoted = names.go_quote(expression.operator)
                raise SelectorError(f"{quoted} is not a valid label selector operator")
            requirements.append(Requirement.make(expression.key, operator, expression.values))
        return cls(tuple(sorted(requirements, key=lambda each: each.key)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.selects_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.selects_nothing

    def adding(self, *requirements: Requirement) -> LabelSelector:
        """Return this selector with more requirements; a selector that matches nothing stays one."""
        if self.selects_nothing:
            return self
        return LabelSelector(tuple(sorted((*self.requirements, *requirements), key=lambda each: each.key)))

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


_EVERYTHING: Final = LabelSelector()
_NOTHING: Final = LabelSelector(selects_nothing=True)


# The parser of the text form. Tokens are (kind, literal); kinds are the signs themselves, `word`, `end`.

_SIGNS = frozenset("=!(),><")
_TOKENS = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_BLANKS = " \t\r\n"
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    text = text.partition("\0")[0]
    at = 0
    while at < len(text):
        char = text[at]
        if char in _BLANKS:
            at += 1
            continue
        end = at + 1
        if char in _SIGNS:
            if text[at : at + 2] in _TOKENS:
                end = at + 2
            tokens.append((text[at:end], text[at:end]))
        else:
            while end < len(text) and text[end] not in _SIGNS and text[end] not in _BLANKS:
                end += 1
            tokens.append(("word", text[at:end]))
        at = end
    tokens.append(("end", ""))
    return tokens


class _Parser:
    """Recursive descent over the tokens. `in` and `notin` are words except where an operator may stand."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self.peek()
            if kind == "end":
                return requirements
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, literal = self.take()
            if kind == "end":
                return requirements
            if kind != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self.peek()
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        kind, literal = self.take()
        absent = kind == "!"
        if absent:
            kind, literal = self.take()
        if kind != "word":
            raise SelectorError(f"found '{literal}', expected: identifier")
        key = literal
        problems = names.qualified_name_problems(key)
        if problems:
            raise SelectorError(names.invalid("", key, "; ".join(problems)))
        if absent:
            return Requirement.make(key, Operator.DOES_NOT_EXIST, ())
        if self.peek()[0] in ("end", ","):
            return Requirement.make(key, Operator.EXISTS, ())
        kind, literal = self.take()
        operator = _OPERATORS.get(literal)
        if operator is None:
            raise SelectorError(f"found '{literal}', expected: {_BINARY}")
        values = self.value_list() if operator in (Operator.IN, Operator.NOT_IN) else [self.exact_value()]
        return Requirement.make(key, operator, sorted(set(values)))

    def exact_value(self) -> str:
        if self.peek()[0] in ("end", ","):
            return ""
        kind, literal = self.take()
        if kind != "word":
            raise SelectorError(f"found '{literal}', expected: identifier")
        return literal

    def value_list(self) -> list[str]:
        kind, literal = self.take()
        if kind != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        kind, literal = self.peek()
        if kind == ")":
            self.take()
            return [""]
        if kind not in ("word", ","):
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        values = self.identifiers()
        self.take()  # identifiers ends before ")" only
        return values

    def identifiers(self) -> list[str]:
        """Return the words between commas; an empty place is the empty value."""
        values: list[str] = []
        while True:
            kind, literal = self.take()
            if kind == "word":
                values.append(literal)
                following, found = self.peek()
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{found}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.append("")
                following = self.peek()[0]
                if following == ")":
                    return [*values, ""]
                if following == ",":
                    self.take()
                    values.append("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """`field=value` or, negated, `field!=value`. An object without the field has the value ""."""

    field: str
    value: str
    negated: bool = False

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All terms must hold; none selects everything. Which fields a kind has is not checked here."""

    terms: tuple[FieldTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """`a=b,c!=d`, with `\\` before a comma, equals sign or backslash in a value; SelectorError."""
        terms = []
        for part in sorted(_split_terms(text)):
            if not part:
                continue
            match = re.search(r"!=|==|=", part)
            if not match:
                raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
            value = _unescape(part[match.end() :])
            terms.append(FieldTerm(part[: match.start()], value, match[0] == "!="))
        return cls(tuple(terms))

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(term.matches(fields) for term in self.terms)

    @property
    def empty(self) -> bool:
        return not self.terms

    def transformed(self, convert: Callable[[str, str], tuple[str, str]]) -> FieldSelector:
        """Return the selector with each field and value converted.

        `convert` raises for a field that the kind does not have.
        """
        return FieldSelector(
            tuple(FieldTerm(*convert(term.field, term.value), term.negated) for term in self.terms)
        )

    def __str__(self) -> str:
        return ",".join(str(term) for term in self.terms)


def _split_terms(text: str) -> list[str]:
    """Split at commas that no backslash escapes."""
    terms, start, escaped = [], 0, False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:index])
            start = index + 1
    return [*terms, text[start:]]


def _unescape(value: str) -> str:
    parts, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            parts.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            parts.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(parts)


def shown_label_selector(message: meta.LabelSelector) -> str:
    """Return a selector for people, also where it is not valid (apimachinery, FormatLabelSelector)."""
    try:
        return str(LabelSelector.from_message(message)) or "<none>"
    except SelectorError:
        return "<error>"


def go_text(message: meta.LabelSelector) -> str:
    """Return a selector as Go prints it."""
    labels = "".join(f"{name}: {value}," for name, value in sorted(message.matchLabels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{row.key},Operator:{row.operator},Values:[{' '.join(row.values)}],}},"
        for row in message.matchExpressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
