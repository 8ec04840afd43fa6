"""Which branches of the program a run takes, by marks in the modules that are imported from now on.

A mark is at the start of each function and each branch, at both truths of each condition, and where two sides
of a comparison are equal: a mistake in one of them can be seen in no run that does not come there.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import operator
import re
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Final, TypeVar

MARKS_MAX: Final = 400_000
_marks: Final = bytearray(MARKS_MAX)
_PROGRAM: Final = tuple(
    f"nominee.{name}."
    for name in ("apiserver", "autoscaler", "controllers", "kubelet", "machinery", "scheduler")
)
_WITHOUT: Final = ("nominee.machinery.wire.", "nominee.machinery.api.pb")
"""Of these almost every run takes the same branches, many times."""
_MARKS, _TRUTH, _ORDER = "_branch_marks", "_branch_truth", "_branch_order"
_ORDERS: Final[dict[type[ast.cmpop], Callable[..., object]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ORDER_TYPES: Final = tuple(_ORDERS)


def clear() -> None:
    """Forget the branches that were taken."""
    _marks[:] = bytes(MARKS_MAX)


def collect() -> Sequence[int]:
    """Return the numbers of the branches that were taken since the last call of `clear`."""
    return [found.start() for found in re.finditer(b"\1", _marks)]


def watch() -> None:
    """Put marks into the modules of the components and of `machinery` that are not imported yet."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the program with a loader that marks them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the specification of a module of the program, None of others."""
        if not fullname.startswith(_PROGRAM) or fullname.startswith(_WITHOUT):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from its source, with marks."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the source; bytecode that Python keeps has no marks."""
        path = self.get_filename(fullname)
        tree = _Marking().visit(ast.parse(self.get_data(path), path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the names that its marks use."""
        vars(module).update({_MARKS: _marks, _TRUTH: _truth, _ORDER: _order})
        super().exec_module(module)


_Value = TypeVar("_Value")
_numbers: Final = iter(range(MARKS_MAX))


def _truth(number: int, value: _Value) -> _Value:
    _marks[number + bool(value)] = 1
    return value


def _order(number: int, one: object, other: object, order: int) -> object:
    if (one == other) is True:  # and not an array of truths
        _marks[number] = 1
    return _ORDERS[_ORDER_TYPES[order]](one, other)


class _Marking(ast.NodeTransformer):
    """Puts marks into the functions of a module."""

    def __init__(self) -> None:
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Mark the start of a function, after its docstring."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Mark the start of a function, after its docstring."""
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._depth += 1
        node.body = [self.visit(each) for each in node.body]
        self._depth -= 1
        has_text = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        node.body.insert(int(has_text), _mark())
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Mark the blocks of statements, and conditions."""
        super().generic_visit(node)
        if not self._depth:
            return node
        match node:
            case ast.If():
                node.body.insert(0, _mark())
                node.orelse.insert(0, _mark())
            case ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.match_case():
                node.body.insert(0, _mark())
            case ast.IfExp():
                node.test = _of_truth(node.test)
            case ast.BoolOp():
                node.values[:-1] = map(_of_truth, node.values[:-1])
            case ast.comprehension():
                node.ifs = [_of_truth(each) for each in node.ifs]
            case ast.Compare(ops=[op]) if isinstance(op, _ORDER_TYPES):
                arguments = [node.left, node.comparators[0], ast.Constant(_ORDER_TYPES.index(type(op)))]
                return _call(_ORDER, next(_numbers), *arguments)
        return node


def _mark() -> ast.stmt:
    return ast.parse(f"{_MARKS}[{next(_numbers)}] = 1").body[0]


def _of_truth(value: ast.expr) -> ast.expr:
    number = next(_numbers)
    next(_numbers)
    return _call(_TRUTH, number, value)


def _call(name: str, number: int, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), *arguments], [])
