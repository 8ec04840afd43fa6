"""How a pod's containers behave, by annotations of the pod and by rules among them. Pure.

`nominee.dev/rules` has a rule in each line, such as `index=0,2-4 attempt=0 exit-code=42 run-duration=1s`. The
first rule that applies overrides the annotations of these names. The index is that of an Indexed Job or of a
StatefulSet; the attempt counts restarts of the containers and, with backoffLimitPerIndex, the failures of the
index. A value or rule that cannot be read does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import parse_int64
from nominee.machinery.resources.pod_resources import CPU, amount
from nominee.machinery.wire.values.scalars import parse_seconds

T = TypeVar("T")
PREFIX: Final = "nominee.dev/"
_RULES: Final = "rules"
_EXIT_CODE_DIGITS: Final = 9
"""More are no int32."""
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_OF_SET: Final = "apps.kubernetes.io/pod-index"
_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"


class Span(NamedTuple):
    """A part of a container's run, in seconds since its start."""

    begin: float
    end: float = math.inf


def of(pod: core.Pod, restarts: int = 0) -> Mapping[str, str]:
    """Return the values that hold for a run of the pod's containers, by name without the prefix."""
    own = pod.metadata.annotations
    if not any(name.startswith(PREFIX) for name in own):
        return {}
    values = {name.removeprefix(PREFIX): text for name, text in own.items() if name.startswith(PREFIX)}
    if _RULES in values:
        index = _number(own.get(_INDEX) or pod.metadata.labels.get(_INDEX_OF_SET, ""))
        attempt = restarts + (_number(own.get(_FAILURES, "")) or 0)
        for rule in _parse(values.pop(_RULES))[0]:
            if rule.applies(index, attempt):
                return {**values, **rule.values}
    return values


def problems(pod: core.Pod) -> Iterator[str]:
    """Return a sentence for each annotation, or line of its rules, that cannot be read."""
    for key, text in pod.metadata.annotations.items():
        name = key.removeprefix(PREFIX)
        if key == PREFIX + _RULES:
            yield from (f"annotation {key}: {problem}" for problem in _parse(text)[1])
        elif name != key and name in _READERS:
            try:
                _READERS[name](text)
            except ValueError:
                yield f'annotation {key}: "{text}" cannot be read'


def seconds(values: Mapping[str, str], name: str, default: float) -> float:
    """Return a duration."""
    return _read(values, name, _seconds, default)


def exit_code(values: Mapping[str, str]) -> int:
    """Return the exit code that the containers exit with after their run duration."""
    return _read(values, "exit-code", _exit_code, 0)


def run_duration(values: Mapping[str, str]) -> float | None:
    """Return after how many seconds of running the containers exit, or None.

    The restartPolicy decides whether they start again, as for any container that exits.
    """
    return _read(values, "run-duration", _seconds, None)


def image_pull(values: Mapping[str, str]) -> float:
    """Return how long after the pod's start its images cannot be pulled; infinity for `never`."""
    return _read(values, "image-pull", _seconds_or_never, 0.0)


def probes(values: Mapping[str, str]) -> Mapping[str, Span]:
    """Return, for the probes that have an annotation, when in a container's run they succeed."""
    found = {name: _read(values, f"{name}-probe", _span, None) for name in PROBES}
    return {name: span for name, span in found.items() if span is not None}


PROBES: Final = ("startup", "liveness", "readiness")


def _read(values: Mapping[str, str], name: str, reader: Callable[[str], T], default: T) -> T:
    text = values.get(name)
    if text is None:
        return default
    try:
        return reader(text)
    except ValueError:
        return default


def _number(text: str) -> int | None:
    number = parse_int64(text)
    return number if number is not None and number >= 0 else None


def _seconds(text: str) -> float:
    return max(parse_seconds(text), 0.0)


def _seconds_or_never(text: str) -> float:
    return math.inf if text == "never" else _seconds(text)


def _span(text: str) -> Span:
    begin, dash, end = text.partition("-")
    span = Span(_seconds_or_never(begin), _seconds(end) if dash else math.inf)
    if span.end < span.begin:
        raise ValueError(text)
    return span


def _exit_code(text: str) -> int:
    number = _number(text)
    if number is None or len(text) > _EXIT_CODE_DIGITS:
        raise ValueError(text)
    return number


def _usage(text: str) -> int:
    return amount(CPU, text)


_DURATIONS: Final = ("start-delay", "ready-delay", "stop-delay", "actuation-delay", "run-duration")
_BY_RULE: Final[Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(_DURATIONS, _seconds),
    "exit-code": _exit_code,
    "image-pull": _seconds_or_never,
    **{f"{name}-probe": _span for name in PROBES},
}
_READERS: Final = {**_BY_RULE, "cpu-usage": _usage, "memory-usage": _usage}
_Ranges = tuple[range, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of the rules; without an index or attempt it applies to all."""

    values: Mapping[str, str]
    index: _Ranges | None = None
    attempt: _Ranges | None = None

    def applies(self, index: int | None, attempt: int) -> bool:
        """Return whether the rule is about this run; a pod without index has only rules without one."""
        return (self.index is None or (index is not None and any(index in each for each in self.index))) and (
            self.attempt is None or any(attempt in each for each in self.attempt)
        )


@lru_cache(maxsize=256)
def _parse(text: str) -> tuple[tuple[_Rule, ...], tuple[str, ...]]:
    """Return the rules, and a problem for each line that cannot be read."""
    rules, found = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rules.append(_rule(line))
        except ValueError as error:
            found.append(f"line {number}: {error}")
    return tuple(rules), tuple(found)


def _rule(line: str) -> _Rule:
    values: dict[str, str] = {}
    selected: dict[str, _Ranges] = {}
    for word in line.split():
        name, _, value = word.partition("=")
        try:
            if name in ("index", "attempt"):
                selected[name] = _ranges(value)
            else:
                _BY_RULE[name](value)
                values[name] = value
        except (KeyError, ValueError):
            raise ValueError(f'"{word}" cannot be read') from None
    return _Rule(values, **selected)


def _ranges(text: str) -> _Ranges:
    """Return the numbers of `0,2-4` and, without an end, of `2-`."""
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        end = 2**31 if dash and not last else int(last if dash else first) + 1
        found.append(range(int(first), end))
    if not all(found):
        raise ValueError(text)  # in reverse order
    return tuple(found)
