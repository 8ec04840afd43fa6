"""Find public definitions without a docstring, and docstrings whose first line has the wrong form.

The rule is pydocstyle's where it has one (D400, D401), written here for public definitions alone: ruff's D401
also reads private functions, and does not know that `Whether`, `How` and `What` are no verbs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.style.findings import Finding

BODY_LINES_MAX = 5
"""A public function or class with a longer body needs a docstring."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_OTHER_WORDS = """
a all also an and another any are as at because before both but by each either every everything for from her
here his how if in into is it its many more most much neither no not nothing of on one only or other our same
several so some such than that the their them then there these they this those to two under upon was we what
whatever when where whether which while who whom whose why with without you your
"""
_NOT_VERBS = frozenset(_OTHER_WORDS.split())
_THIRD_PERSON = re.compile(r"^(?!.*(?:ss|us|is|as)$)[a-z]{3,}s$")
_VERBS_ENDING_IN_S = frozenset(
    {"bias", "canvas", "focus", "process", "pass", "access", "compress", "discuss"}
)
_IGNORED_CLASS_OPENINGS = frozenset(
    {"what", "whatever", "where", "who", "whom", "whose", "why", "how", "when", "whether"}
)


def find_docstring_faults(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield a finding for each public definition whose docstring is absent or does not follow the form."""
    for node, may_inherit in _public_definitions(tree):
        docstring = ast.get_docstring(node)
        if docstring is None:
            if not may_inherit and _body_lines(node) > BODY_LINES_MAX:
                yield Finding(path, node.lineno, "docstring", f"{node.name} has none")
        elif fault := _fault(node, docstring):
            yield Finding(path, node.lineno, "docstring", f"{node.name}: {fault}")


def _public_definitions(
    parent: ast.Module | ast.ClassDef, *, has_base: bool = False
) -> Iterator[tuple[Definition, bool]]:
    """Yield the public functions, classes and methods below a module or class; nested functions are private.

    The flag says whether it may be documented in a base class: a method of a class with bases.
    """
    for node in parent.body:
        if isinstance(node, Definition) and not node.name.startswith(("_", "test_")):
            yield node, has_base and not isinstance(node, ast.ClassDef)
            if isinstance(node, ast.ClassDef):
                yield from _public_definitions(node, has_base=bool(node.bases))


def _body_lines(node: Definition) -> int:
    return (node.end_lineno or node.lineno) - node.body[0].lineno + 1


def _fault(node: Definition, docstring: str) -> str:
    """Return the fault of a docstring's first line, or ""."""
    summary = docstring.split("\n\n")[0]
    first_line = docstring.split("\n")[0]
    if "\n" in summary:
        return "the first line is a whole sentence of its own; an empty line follows it"
    if not first_line.endswith((".", "?", ":")):
        return "the first line ends with a period"
    word = re.split(r"[^\w`'-]", first_line, maxsplit=1)[0].lower()
    if isinstance(node, ast.ClassDef):
        return f"name the object first, not `{word}`" if word in _IGNORED_CLASS_OPENINGS else ""
    if _is_property(node):
        return ""
    if word in _NOT_VERBS or (_THIRD_PERSON.fullmatch(word) and word not in _VERBS_ENDING_IN_S):
        return f"begin with a verb in the imperative, not `{word}`"
    return ""


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [ast.unparse(each).split(".")[-1].split("(")[0] for each in node.decorator_list]
    return any(name in ("property", "cached_property") for name in names)
