"""Find public names that are only a participle: `found` does not name the objects that it holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.style.findings import Finding

_IRREGULAR_WORDS = """
begun bought built chosen done drawn fed felt forgotten found frozen given gone held kept known left lost made
meant met paid said seen sent shown sought spent spoken taken thought thrown understood woken written
"""
_IRREGULAR = frozenset(_IRREGULAR_WORDS.split())
_REGULAR = re.compile(r"[a-z]{2,}ed")
_NOT_PARTICIPLES = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"})
_TERMS = frozenset({"allocated", "desired", "requested"})
"""Words that the API itself uses for a state: the desired replicas, the allocated resources."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_participle_names(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield a finding for each public function, attribute or variable of a module or class with such a name.

    A truth value may be a participle: `bound: bool`, `def is_set(self) -> bool`.
    """
    scopes: list[ast.Module | ast.ClassDef] = [tree]
    scopes += [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for scope in scopes:
        for name, line in sorted(set(_public_names(scope))):
            if _is_participle(name):
                text = f"`{name}` is a participle: use a noun, or a verb for a function"
                yield Finding(path, line, "name", text)


def _is_participle(name: str) -> bool:
    return name in _IRREGULAR or (
        _REGULAR.fullmatch(name) is not None and name not in _NOT_PARTICIPLES | _TERMS
    )


def _public_names(scope: ast.Module | ast.ClassDef) -> Iterator[tuple[str, int]]:
    for node in scope.body:
        if isinstance(node, _Function):
            if not _is_bool(node.returns):
                yield node.name, node.lineno
            if isinstance(scope, ast.ClassDef):
                yield from _attributes_of_self(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not _is_bool(node.annotation):
                yield node.target.id, node.lineno
        elif isinstance(node, ast.Assign) and not _is_truth_value(node.value):
            yield from ((each.id, node.lineno) for each in node.targets if isinstance(each, ast.Name))


def _attributes_of_self(function: _Function) -> Iterator[tuple[str, int]]:
    """Yield the attributes that a method assigns; a truth value is a literal, or annotated."""
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.AnnAssign) and not _is_bool(node.annotation):
            targets = [node.target]
        elif isinstance(node, ast.Assign) and not _is_truth_value(node.value):
            for target in node.targets:
                targets += target.elts if isinstance(target, ast.Tuple) else [target]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr, target.lineno


def _is_truth_value(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def _is_bool(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).split(" | ")[0] in ("bool", "TypeGuard")
