"""Replace lines of a function that is already imported, for as long as the process lives."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType


class PatchError(Exception):
    """The target of a patch is not there any more; the message names it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in the source of a function: `target` is `module:Class.function`.

    `old` must occur exactly once. Both texts are lines or parts of lines, without the indentation that all
    lines of the function share.
    """

    target: str
    old: str
    new: str


def apply(edit: Edit) -> None:
    """Replace the code of the function, also for those who have imported it by name.

    Raises:
        PatchError: the function or the text is not there.
    """
    function = find_function(edit.target)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(edit.old) != 1:
        raise PatchError(f"{edit.target}: {source.count(edit.old)} times {edit.old!r}; expected once")
    replace_source(function, source.replace(edit.old, edit.new))


def replace_source(function: FunctionType, source: str) -> None:
    """Replace the code of a function by that of its changed source.

    Raises:
        PatchError: the source is not that of such a function.
    """
    code = _code_of(source, function)
    if code.co_freevars != function.__code__.co_freevars:
        raise PatchError(f"{function.__qualname__}: a function with other free variables cannot replace it")
    function.__code__ = code


def find_function(target: str) -> FunctionType:
    """Return the function `module:Class.function`. Raises: PatchError."""
    module_name, _, path = target.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for name in path.split("."):
            found = inspect.getattr_static(found, name)
    except (ImportError, AttributeError) as error:
        raise PatchError(f"{target}: {error}") from None
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    found = inspect.unwrap(found) if callable(found) else found
    if not isinstance(found, FunctionType):
        raise PatchError(f"{target} is no function")
    return found


def _code_of(source: str, function: FunctionType) -> CodeType:
    """Compile a function's changed source, and return the code of that function."""
    lines = source.splitlines(keepends=True)
    while not lines[0].startswith(("def ", "async def ")):
        del lines[0]  # decorators stay as they are
    try:
        whole = compile("".join(lines), f"<mutation of {function.__qualname__}>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PatchError(f"{function.__qualname__}: {error}") from None
    codes = [each for each in whole.co_consts if isinstance(each, CodeType)]
    named = [each for each in codes if each.co_name == function.__name__]
    if len(named) != 1:
        raise PatchError(f"{function.__qualname__}: its source defines something else")
    return named[0]


def applied(edits: tuple[Edit, ...]) -> Callable[[], None]:
    """Apply edits, and return a function that takes them back."""
    former = [(function := find_function(edit.target), function.__code__) for edit in edits]
    for edit in edits:
        apply(edit)

    def undo() -> None:
        for function, code in reversed(former):
            function.__code__ = code

    return undo
