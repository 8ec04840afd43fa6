"""Chains of actions as in etcd's gofail: `[P%][N*]ACTION[(ARGUMENT)]->...`, for failpoints and call faults.

The first term that still has counts left (`N*`) and whose draw succeeds (`P%`) acts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Argument = Literal["none", "milliseconds", "error"]
MILLISECONDS_MAX = 3_600_000
_TERM = re.compile(
    r"\s*(?:(?P<percent>\d+(?:\.\d+)?)%)?\s*(?:(?P<count>\d+)\*)?\s*(?P<action>[a-z]+(?:-[a-z]+)*)"
    r"\s*(?:\(\s*(?P<argument>\"(?:[^\"\\]|\\.)*\"|[^()\"]*?)\s*\))?\s*"
)


class ActionError(ValueError):
    """An action that cannot be read, or a point that does not exist; the text names the remedy."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a chain: `percent` 0 to 100, `count` None for no limit, `argument` without quotes."""

    action: str
    argument: str = ""
    quoted: bool = False
    percent: float = 100.0
    count: int | None = None


def parse(text: str, actions: Mapping[str, Argument]) -> tuple[Term, ...]:
    """Return the terms of a chain of these actions, each with the argument it takes.

    Raises:
        ActionError: the text is not such a chain.
    """
    terms: list[Term] = []
    at = 0
    while True:
        match = _TERM.match(text, at)
        if match is None:
            raise ActionError(f"{text!r}: expected [P%][N*]{'|'.join(actions)}[(...)] at {text[at:]!r}")
        terms.append(_term(match, actions))
        at = match.end()
        if at == len(text):
            return tuple(terms)
        if not text.startswith("->", at):
            raise ActionError(f"{text!r}: expected -> at {text[at:]!r}")
        at += 2


def _term(match: re.Match[str], actions: Mapping[str, Argument]) -> Term:
    action, argument = match["action"], match["argument"] or ""
    quoted = argument.startswith('"')
    if quoted:
        argument = re.sub(r"\\(.)", r"\1", argument[1:-1])
    percent = float(match["percent"]) if match["percent"] else 100.0
    count = int(match["count"]) if match["count"] else None
    if percent > 100:
        raise ActionError(f"{percent:g}%: at most 100%")
    match actions.get(action):
        case "none":
            if argument:
                raise ActionError(f"{action} takes no argument")
            return Term(action, percent=percent, count=count)
        case "milliseconds":
            if not argument.isdecimal() or int(argument) > MILLISECONDS_MAX:
                raise ActionError(
                    f"{action} takes whole milliseconds up to {MILLISECONDS_MAX}, as in {action}(250)"
                )
            return Term(action, argument, percent=percent, count=count)
        case "error":
            if not quoted and argument and not (argument.isdecimal() and 400 <= int(argument) <= 599):
                raise ActionError(
                    f'{action} takes a text or an HTTP code, as in {action}("boom") or {action}(503)'
                )
            return Term(action, argument, quoted, percent, count)
        case _:
            *others, last = actions
            raise ActionError(f"{action}: expected {', '.join(others)} or {last}")


class Chain:
    """The terms of one chain with the counts that are left."""

    __slots__ = ("_counts", "terms")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self._counts = [term.count for term in terms]

    def choose(self, rng: random.Random) -> Term | None:
        """Return the term that acts now and count it, or None."""
        for index, term in enumerate(self.terms):
            left = self._counts[index]
            if left == 0:
                continue
            if term.percent < 100 and rng.random() * 100 >= term.percent:
                continue
            if left is not None:
                self._counts[index] = left - 1
            return term
        return None
