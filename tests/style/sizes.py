"""Find files and functions that are too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.style.findings import Finding

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 80


def find_long_file(path: str, text: str) -> Iterator[Finding]:
    """Yield a finding for a file of more than FILE_LINES_MAX lines."""
    lines = len(text.splitlines())
    if lines > FILE_LINES_MAX:
        yield Finding(path, 1, "size", f"{lines} lines, at most {FILE_LINES_MAX}: split the file by concept")


def find_long_functions(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield a finding for each function of more than FUNCTION_LINES_MAX lines, its docstring included."""
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                text = f"{node.name} has {lines} lines, at most {FUNCTION_LINES_MAX}: split it"
                yield Finding(path, node.lineno, "size", text)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement of a module. A walk through its expressions too would take four times as long."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, field, None)
            if isinstance(below, list):
                waiting += below
