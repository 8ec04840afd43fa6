"""The errors of an expression, worded as the API server and the scheduler word them."""

from __future__ import annotations

import re


class CompileError(ValueError):
    """The expression is not valid; the text begins with `compilation failed: ` or names the required type."""


class CostError(CompileError):
    """Evaluating could take too much."""


class EvaluationError(RuntimeError):
    """The expression could not be evaluated for one device: `no such key: model`."""


_STATUS = re.compile(r"^[A-Z_]+: ")
_CODE_AT_END = re.compile(r" \[[A-Z_]+\]$")
_MISSING_KEY = re.compile(r'^Key not found in map : "?(.*?)"?$')
_UNDECLARED_FIELD = re.compile(r"undeclared reference to 'device\.(\w+)' \(in container ''\)")
_EXCEEDED = ("Iteration budget exceeded", "recursion limit exceeded")


def compile_text(text: str) -> str:
    """Return the compiler's issues as cel-go prints them: `ERROR: <input>:1:7: undefined field 'x'` ..."""
    text = _CODE_AT_END.sub("", _STATUS.sub("", text.strip(), count=1))
    return _UNDECLARED_FIELD.sub(r"undefined field '\1'", text)


def evaluation_text(text: str) -> str:
    """Return the evaluator's error as cel-go words it."""
    text = _CODE_AT_END.sub("", _STATUS.sub("", text.strip(), count=1))
    if missing := _MISSING_KEY.match(text):
        return f"no such key: {missing[1]}"
    if text.startswith("No matching overloads found"):
        return "no such overload"
    if any(part in text for part in _EXCEEDED):
        return "operation cancelled: actual cost limit exceeded"
    return text
