"""Read an emulated usage trace: the usage of the containers of a workload over time."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from nominee.machinery.resources import quantity
from nominee.machinery.wire.values.scalars import parse_duration

COLUMNS = ("at", "container", "cpu", "memory")
SAMPLES_MAX = 100_000
ALL_CONTAINERS = ""
_NANOSECONDS = 1e9


class TraceError(ValueError):
    """The trace is invalid; the message names the sample and the field."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of one container: cpu in milli-units, memory in bytes; None is unchanged by the autoscaler."""

    cpu: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """From `at_seconds` on, a container (or each, for ALL_CONTAINERS) uses this much."""

    at_seconds: float
    container: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Trace:
    """The samples, by time. A sample holds until the next one of the same container."""

    samples: tuple[Sample, ...]

    def usage_at(self, elapsed_seconds: float) -> Mapping[str, Usage]:
        """Return each container's use at a time since the start; one without samples so far is absent."""
        return {
            sample.container: sample.usage for sample in self.samples if sample.at_seconds <= elapsed_seconds
        }


def parse_trace(text: str, *, is_csv: bool) -> Trace:
    """Parse a trace in CSV (with a header line) or YAML (a list of mappings), both with COLUMNS.

    Raises:
        TraceError: a sample is invalid, or the trace has no samples.
    """
    rows = _csv_rows(text) if is_csv else _yaml_rows(text)
    if not rows:
        raise TraceError("the trace has no samples")
    if len(rows) > SAMPLES_MAX:
        raise TraceError(f"the trace has {len(rows)} samples; at most {SAMPLES_MAX} are allowed")
    samples = [_sample(number, row) for number, row in enumerate(rows, 1)]
    return Trace(tuple(sorted(samples, key=lambda sample: sample.at_seconds)))


def _csv_rows(text: str) -> Sequence[Mapping[str, str]]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        rows = [{key: value or "" for key, value in row.items() if key is not None} for row in reader]
    except csv.Error as error:
        raise TraceError(f"line {reader.line_num}: {error}") from None
    return rows


def _yaml_rows(text: str) -> Sequence[Mapping[str, str]]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TraceError(f"the trace is not YAML: {error}") from None
    if not isinstance(document, list):
        raise TraceError(f"the trace is not a list of samples with the fields {', '.join(COLUMNS)}")
    rows: list[Mapping[str, str]] = []
    for number, item in enumerate(document, 1):
        if not isinstance(item, dict):
            raise TraceError(f"sample {number}: not a mapping with the fields {', '.join(COLUMNS)}")
        rows.append({str(key): "" if value is None else str(value) for key, value in item.items()})
    return rows


def _sample(number: int, row: Mapping[str, str]) -> Sample:
    unknown = [key for key in row if key not in COLUMNS]
    if unknown:
        raise TraceError(f"sample {number}: unknown field {unknown[0]!r}; known are {', '.join(COLUMNS)}")
    at_text = row.get("at", "")
    try:
        at_seconds = parse_duration(at_text) / _NANOSECONDS
    except ValueError:
        at_seconds = -1.0
    if at_seconds < 0:
        raise TraceError(f"sample {number}: at: {at_text!r} is not a duration such as 90s or 1m30s")
    usage = Usage(
        cpu=_amount(number, "cpu", row.get("cpu", "")),
        memory=_amount(number, "memory", row.get("memory", "")),
    )
    if usage == Usage():
        raise TraceError(f"sample {number}: needs cpu, memory or both")
    return Sample(at_seconds=at_seconds, container=row.get("container", ALL_CONTAINERS), usage=usage)


def _amount(number: int, field: str, text: str) -> int | None:
    if not text:
        return None
    try:
        parsed = quantity.milli(text) if field == "cpu" else quantity.value(text)
    except ValueError:
        parsed = -1
    if parsed <= 0:
        raise TraceError(f"sample {number}: {field}: {text!r} is not a quantity greater than 0")
    return parsed
