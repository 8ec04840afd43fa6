"""Which mutations a run of the unmutated program reaches: it would do something else with them.

A simulation is deterministic: one in which nothing that a mutation changes is executed, or in which the
changed condition or value is the same, is the same with the mutation, and finds nothing. The marks ask that
at each changed statement.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import find_function, replace_source

_marked: Final = set[str]()
_HERE: Final = "__import__('tests.mutations.standard.reached', fromlist=['mark'])"
_READING: Final = {
    *(
        "HasField",
        "Preconditions",
        "allocated",
        "bool",
        "condition_is",
        "count",
        "differs",
        "enabled",
        "float",
    ),
    *("get", "isinstance", "items", "keys", "len", "list", "max", "metadata_of", "min", "monotonic"),
    *("resource_version_of", "str", "sum", "values", "allocations_version", "service_of"),
}
"""Functions, beside those named `is_...`, that may be called once more."""
_Place: TypeAlias = tuple[list[ast.stmt], int, str]
"""A block, the number of a statement, and the mark to put before it."""


def mark(name: str) -> None:
    """Record that a mutation was reached; the changed functions call it."""
    _marked.add(name)


def compare(name: str, old: Callable[[], object], new: Callable[[], object], *, as_truth: bool) -> None:
    """Record that a mutation was reached if a value differs with it, or cannot be computed."""
    try:
        differs = bool(old()) is not bool(new()) if as_truth else bool(old() != new())
    except Exception:  # noqa: BLE001 - whatever the mutation would raise, it would do something else
        differs = True
    if differs:
        mark(name)


def take() -> list[str]:
    """Return the names of the mutations that were reached since the last call."""
    names = sorted(_marked)
    _marked.clear()
    return names


def watch(mutations: Iterable[Mutation]) -> None:
    """Mark each mutation from now on when it is reached.

    Raises:
        PatchError: a function or a text is not there.
    """
    changes: dict[str, list[tuple[str, str, str]]] = {}
    for mutation in mutations:
        for edit in mutation.edits:
            changes.setdefault(edit.target, []).append((mutation.name, edit.old, edit.new))
    for target, found in changes.items():
        function = find_function(target)
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
        places: list[_Place] = []
        for name, old, new in found:
            changed = ast.parse(source.replace(old, new))
            places += _places(name, tree.body, changed.body)
        for block, number, text in sorted(places, key=lambda each: -each[1]):
            block.insert(number, ast.parse(text).body[0])
        replace_source(function, ast.unparse(tree))


def _places(name: str, old: list[ast.stmt], new: Sequence[ast.stmt]) -> Iterator[_Place]:
    """Yield the places at which two blocks differ."""
    for number, one in enumerate(old):
        other = new[number] if number < len(new) else None
        if other is not None and ast.dump(one) == ast.dump(other):
            continue
        inner = _inner(one, other)
        if inner and other is not None:
            for mine, its in inner:
                yield from _places(name, mine, its)
            return
        yield old, number, _mark(name, one, other)
        return
    if len(new) > len(old):
        yield old, len(old) - 1, f"{_HERE}.mark({name!r})"


def _inner(one: ast.stmt, other: ast.stmt | None) -> list[tuple[list[ast.stmt], list[ast.stmt]]]:
    """Return the blocks of two statements that differ in their blocks only; of a function always."""
    if type(one) is not type(other) or not (hasattr(one, "body") or isinstance(one, ast.Match)):
        return []
    pairs = [
        (mine, its)
        for field in ("body", "orelse", "finalbody")
        if (mine := getattr(one, field, [])) and (its := getattr(other, field, []))
    ]
    for field in ("handlers", "cases"):
        of_one, of_other = getattr(one, field, []), getattr(other, field, [])
        pairs += [(mine.body, its.body) for mine, its in zip(of_one, of_other, strict=False)]
    differ = [(mine, its) for mine, its in pairs if list(map(ast.dump, mine)) != list(map(ast.dump, its))]
    heads = [ast.dump(each.test) for each in (one, other) if isinstance(each, ast.If | ast.While)]
    return differ if len(set(heads)) <= 1 else []


def _mark(name: str, one: ast.stmt, other: ast.stmt | None) -> str:
    """Return the mark of a statement: a comparison of its condition or value where that is possible."""
    if isinstance(one, ast.If) and isinstance(other, ast.If):
        same = ast.dump(ast.Module(one.body + one.orelse, [])) == ast.dump(
            ast.Module(other.body + other.orelse, [])
        )
        old, new, as_truth = one.test, other.test, True
    elif isinstance(one, ast.Assign | ast.Return) and isinstance(other, ast.Assign | ast.Return):
        same = one.value is not None and other.value is not None
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign):
            same = list(map(ast.dump, one.targets)) == list(map(ast.dump, other.targets))
        old, new, as_truth = one.value or ast.Constant(0), other.value or ast.Constant(0), False
    elif isinstance(one, ast.For) and isinstance(other, ast.For):
        same = list(map(ast.dump, one.body)) == list(map(ast.dump, other.body))
        old, new, as_truth = one.iter, other.iter, False
    elif isinstance(other, ast.If) and ast.dump(one) in map(ast.dump, other.body):
        same, old, new, as_truth = True, ast.Constant(True), other.test, True
    else:
        return f"{_HERE}.mark({name!r})"
    old, new = copy.deepcopy(old), copy.deepcopy(new)
    if isinstance(old, ast.BoolOp) and isinstance(new, ast.BoolOp):
        # What both wait for matters only if the rest differs.
        common = {ast.dump(each) for each in old.values if not _is_pure(each)}
        for each in (old, new):
            each.values = [value for value in each.values if ast.dump(value) not in common] or [
                each.values[0]
            ]
    if not same or not (_is_pure(old) and _is_pure(new)):
        return f"{_HERE}.mark({name!r})"
    values = f"lambda: ({ast.unparse(old)}), lambda: ({ast.unparse(new)})"
    return f"{_HERE}.compare({name!r}, {values}, as_truth={as_truth})"


def _is_pure(value: ast.expr) -> bool:
    """Report whether an expression may be computed once more."""
    for node in ast.walk(value):
        if isinstance(node, ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if (name := name.lstrip("_")) not in _READING and not name.startswith("is_"):
                return False
    return True
