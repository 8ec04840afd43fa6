"""Define the result of a plugin. Source: kube-scheduler 1.36, framework Status and Code."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import EnumType, IntEnum
from typing import NoReturn


class _CodeType(EnumType):
    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(f"there is no Code.{name}; the codes are {', '.join(cls.__members__)}")


class Code(IntEnum, metaclass=_CodeType):
    """Outcome of a plugin; numbers and names are upstream's."""

    Success = 0
    Error = 1
    Unschedulable = 2
    UnschedulableAndUnresolvable = 3
    Wait = 4
    Skip = 5
    Pending = 6

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(
            f"{value!r} is no Code; write one of {', '.join(f'Code.{each.name}' for each in cls)}"
        )


REJECTIONS = frozenset({Code.Unschedulable, Code.UnschedulableAndUnresolvable, Code.Pending})


_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)


def error_text(error: BaseException) -> str:
    """Return the exception's text, with its type where the text alone says little.

    The text can be encoded: surrogates, which stand for bytes that are no text, are escaped.
    """
    text = str(error).encode("utf-8", "backslashreplace").decode()
    return f"{type(error).__name__}: {text}" if isinstance(error, _BUGS) or not text else text


@dataclass(frozen=True, slots=True, init=False)
class Status:
    """The result of a plugin: code, reasons, the plugin that returned it, the error if it is one.

    A single reason may be given as a string, several in any iterable.

    Raises:
        ValueError, TypeError: there is no such code, or a reason is not a string.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = field(default=None, compare=False)

    def __init__(
        self,
        code: Code,
        reasons: str | Iterable[str] = (),
        plugin: str = "",
        error: BaseException | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "code", code if type(code) is Code else Code(code))
        put(self, "reasons", reasons if type(reasons) is tuple else _reasons(reasons))
        put(self, "plugin", plugin)
        put(self, "error", error)

    @staticmethod
    def as_error(error: BaseException, plugin: str = "") -> Status:
        """Return an Error status whose reason is the exception's text."""
        return Status(Code.Error, (error_text(error),), plugin, error)

    def with_plugin(self, plugin: str) -> Status:
        """Return the same status with that plugin's name."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin, self.error)

    @property
    def is_success(self) -> bool:
        return self.code is Code.Success

    @property
    def is_wait(self) -> bool:
        return self.code is Code.Wait

    @property
    def is_skip(self) -> bool:
        return self.code is Code.Skip

    @property
    def is_rejected(self) -> bool:
        """Return whether the code is Unschedulable, UnschedulableAndUnresolvable or Pending."""
        return self.code in REJECTIONS

    def message(self) -> str:
        """Return the reasons in one line."""
        return ", ".join(self.reasons)


def check_answer(answer: object, method: str) -> None:
    """Check a plugin's answer that is not None: annotations do not keep a plugin from returning True.

    Raises: TypeError: the answer of the method is no Status.
    """
    if not isinstance(answer, Status):
        kind = type(answer).__name__
        raise TypeError(f"{method} returned {reprlib.repr(answer)} ({kind}); expected None or a Status")


def is_success(status: Status | None) -> bool:
    """Return whether the status is a success; None is one."""
    return status is None or status.code is Code.Success


def _reasons(given: str | Iterable[str]) -> tuple[str, ...]:
    reasons = (given,) if isinstance(given, str) else tuple(given)
    wrong = [each for each in reasons if not isinstance(each, str)]
    if wrong:
        raise TypeError(f"the reason {wrong[0]!r} of a Status is not a string")
    return reasons
