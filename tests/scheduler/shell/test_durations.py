"""Histograms as Prometheus reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from nominee.scheduler.shell.metrics.durations import Durations


def test_buckets_are_cumulative_and_their_ends_belong_to_them() -> None:
    registry = CollectorRegistry()
    durations = Durations("waiting_seconds", "[ALPHA] Waiting.", ("queue", "event"), (0.5, 1.0), registry)
    series = durations.of("active", "NodeAdd")
    for seconds in (0.25, 0.5, 0.75):
        series.observe(seconds)
    series.observe(2.0, times=3)
    assert durations.of("active", "NodeAdd") is series
    lines = [line for line in generate_latest(registry).decode().splitlines() if line[:1] != "#"]
    labels = 'event="NodeAdd",'
    assert sorted(lines) == sorted(
        [
            f'waiting_seconds_bucket{{{labels}le="0.5",queue="active"}} 2.0',
            f'waiting_seconds_bucket{{{labels}le="1.0",queue="active"}} 3.0',
            f'waiting_seconds_bucket{{{labels}le="+Inf",queue="active"}} 6.0',
            f'waiting_seconds_count{{{labels}queue="active"}} 6.0',
            f'waiting_seconds_sum{{{labels}queue="active"}} 7.5',
        ]
    )
