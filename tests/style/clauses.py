"""Find docstrings whose first line has a relative clause in place of a noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.style.findings import Finding

_WHAT = re.compile(r"\bwhat\b(?!-if)", re.IGNORECASE)


def find_what_clauses(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield a finding for each docstring of a module, class or function, also of private ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            if _WHAT.search(docstring.split("\n")[0]):
                line = node.body[0].lineno
                yield Finding(path, line, "clause", "name the object instead of a clause with `what`")
