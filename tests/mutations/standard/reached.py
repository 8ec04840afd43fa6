"""Which mutations a run of the unmutated program reaches: it executes the statement that they change.

A simulated command that reaches no statement of a mutation runs the same with it, and finds nothing.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import find_function, replace_source

_marked: Final = set[str]()
_MARK: Final = "__import__('tests.mutations.standard.reached', fromlist=['mark']).mark({name!r})"


def mark(name: str) -> None:
    """Record that a mutation was reached; the changed functions call it."""
    _marked.add(name)


def take() -> list[str]:
    """Return the names of the mutations that were reached since the last call."""
    names = sorted(_marked)
    _marked.clear()
    return names


def watch(mutations: Iterable[Mutation]) -> None:
    """Mark each mutation from now on when a statement that it would change is executed.

    Raises:
        PatchError: a function or a text is not there.
    """
    changes: dict[str, list[tuple[str, str]]] = {}
    for mutation in mutations:
        for edit in mutation.edits:
            changes.setdefault(edit.target, []).append((mutation.name, edit.old))
    for target, found in changes.items():
        function = find_function(target)
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
        for name, old in found:
            _insert(tree, source[: source.index(old)].count("\n") + 1, name)
        replace_source(function, ast.unparse(tree))


def _insert(tree: ast.Module, line: int, name: str) -> None:
    """Insert a mark before the innermost statement of a line; of a function, as its first one."""
    mark_statement = ast.parse(_MARK.format(name=name)).body[0]
    mark_statement.lineno = 0  # of no line, so that another mark is not put before it
    best: tuple[int, list[ast.stmt], int] = (0, tree.body, 0)
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if node is tree or not isinstance(block, list):
                continue
            for number, statement in enumerate(block):
                if best[0] < statement.lineno <= line <= (statement.end_lineno or 0):
                    best = statement.lineno, block, number
    if not best[0]:
        (definition,) = tree.body
        assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        best = 1, definition.body, 0
    best[1].insert(best[2], mark_statement)
