"""Metrics of flow control, with upstream's names (kube-apiserver 1.36, util/flowcontrol/metrics)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from nominee.apiserver.flow_control.controller import FlowControl

_PREFIX = "apiserver_flowcontrol_"
_BOTH = ["priority_level", "flow_schema"]
_LEVEL = ["priority_level"]
_KINDS = {True: "readOnly", False: "mutating"}


def collect(control: FlowControl) -> Iterator[Metric]:
    """Yield the current metrics of a server."""
    yield from _gauges(control)
    yield from _by_schema(control)
    yield from _histograms(control)
    yield from _by_level(control)


def _gauges(control: FlowControl) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    running = GaugeMetricFamily(
        "apiserver_current_inflight_requests", "Requests under way.", labels=["request_kind"]
    )
    waiting = GaugeMetricFamily(
        "apiserver_current_inqueue_requests", "Requests that wait.", labels=["request_kind"]
    )
    dropped = CounterMetricFamily(
        "apiserver_dropped_requests", "Requests refused with 429.", labels=["request_kind"]
    )
    for reads, kind in _KINDS.items():
        running.add_metric([kind], control.in_flight[reads])
        waiting.add_metric([kind], control.in_queue[reads])
        dropped.add_metric([kind], control.dropped[reads])
    yield running
    yield waiting
    yield dropped


def _by_schema(control: FlowControl) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    dispatched = CounterMetricFamily(f"{_PREFIX}dispatched_requests", "Requests begun.", labels=_BOTH)
    refused = CounterMetricFamily(f"{_PREFIX}rejected_requests", "Refused.", labels=[*_BOTH, "reason"])
    running = GaugeMetricFamily(f"{_PREFIX}current_executing_requests", "Requests under way.", labels=_BOTH)
    seats = GaugeMetricFamily(f"{_PREFIX}current_executing_seats", "Seats taken.", labels=_BOTH)
    waiting = GaugeMetricFamily(f"{_PREFIX}current_inqueue_requests", "Requests that wait.", labels=_BOTH)
    wanted = GaugeMetricFamily(f"{_PREFIX}current_inqueue_seats", "Seats waited for.", labels=_BOTH)
    for level, state in control.levels.items():
        for schema, counts in state.counts.items():
            labels = [level, schema]
            dispatched.add_metric(labels, counts.dispatched)
            running.add_metric(labels, counts.executing)
            seats.add_metric(labels, counts.seats)
            waiting.add_metric(labels, counts.in_queue)
            wanted.add_metric(labels, counts.seats_in_queue)
            for reason, count in counts.refused.items():
                refused.add_metric([*labels, reason], count)
    yield from (dispatched, refused, running, seats, waiting, wanted)


def _histograms(control: FlowControl) -> Iterator[Metric]:
    from prometheus_client.core import HistogramMetricFamily

    waited = HistogramMetricFamily(
        f"{_PREFIX}request_wait_duration_seconds", "Time in a queue.", labels=[*_BOTH, "execute"]
    )
    ran = HistogramMetricFamily(
        f"{_PREFIX}request_execution_seconds", "Time under way.", labels=[*_BOTH, "type"]
    )
    lengths = HistogramMetricFamily(
        f"{_PREFIX}request_queue_length_after_enqueue", "As each new request finds its queue.", labels=_BOTH
    )
    asked = HistogramMetricFamily(f"{_PREFIX}work_estimated_seats", "Seats asked for.", labels=_BOTH)
    for level, state in control.levels.items():
        for schema, counts in state.counts.items():
            for family, labels, found in (
                (waited, [level, schema, "true"], counts.waited),
                (waited, [level, schema, "false"], counts.waited_in_vain),
                (ran, [level, schema, "regular"], counts.ran),
                (ran, [level, schema, "watch"], counts.watched),
                (lengths, [level, schema], counts.lengths),
                (asked, [level, schema], counts.seats_asked),
            ):
                if any(found.counts):
                    family.add_metric(labels, found.rows(), found.total)
    yield from (waited, ran, lengths, asked)


def _by_level(control: FlowControl) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    rows: dict[str, dict[str, float]] = {}
    for level, state in control.levels.items():
        for name, value in (
            ("nominal_limit_seats", state.bounds.nominal),
            ("lower_limit_seats", state.bounds.lower),
            ("upper_limit_seats", state.bounds.upper),
            ("current_limit_seats", state.queues.limit),
            ("demand_seats_smoothed", state.smoothed),
        ):
            rows.setdefault(name, {})[level] = value
    for name, by_level in rows.items():
        family = GaugeMetricFamily(f"{_PREFIX}{name}", "Seats of a level.", labels=_LEVEL)
        for level, number in by_level.items():
            family.add_metric([level], number)
        yield family
