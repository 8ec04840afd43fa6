"""The results of benchmarks as text and as a page."""

from __future__ import annotations

from typing import Any

from nominee.lab.bench.report import page, text

MACHINE = {
    "cores": 2, "processor": "<b>x</b>", "memoryMiB": 100, "kernel": "6", "python": "3.13",
    "busyElsewhere": 0.1,
}  # fmt: skip
PERCENTILES = {"p50": 1.5, "p90": 2.5, "p95": 3.5, "p99": 4.5}
SCHEDULING: dict[str, Any] = {
    "benchmark": "scheduling",
    "settings": {"workload": "SchedulingBasic", "pods": 30, "nodes": 5, "init_pods": 2},
    "throughput": {"average": 10.0, "seconds": 3.0, **PERCENTILES, "samples": [5, 20, 5]},
    "reference": {"real": {"lowest": 24.0, "highest": 35.0}},
    "attemptLatencyMilliseconds": PERCENTILES,
    "schedulingAlgorithm": {"attemptsPerSecond": 9.0, "meanMilliseconds": 0.5},
    "created": {"podsPerSecond": 11.0},
    "cpuMillisecondsPerPod": {"scheduler": 1.0},
    "memory": {"pssMiB": {"scheduler": 50.0}, "sumMiB": 50.0},
    "machine": MACHINE,
}
WATCH: dict[str, Any] = {
    "benchmark": "watch",
    "settings": {"pods": 10, "watchers": 2, "rate": 3, "slow": 1},
    "lists": {
        "JSON": {
            "megabytes": 1.0, "firstByteMilliseconds": 2.0, "wholeMilliseconds": 3.0,
            "chunksOf500Milliseconds": None, "memoryMiB": [4, 5],
        }
    },
    "watches": {
        "grpc": {
            "changesPerSecond": 3.0, "delayMilliseconds": {"p50": 1.0, "p99": 2.0, "p100": 3.0},
            "expected": 9, "events": 8,
            "cpuMicrosecondsPerEvent": 7.0, "memoryMiB": {"before": 1, "after": 2},
        }
    },
    "machine": MACHINE,
}  # fmt: skip


def test_the_page_has_the_lines_of_the_text_and_the_samples() -> None:
    lines = list(text(SCHEDULING))
    assert lines[:2] == [
        "SchedulingBasic: 30 pods on 5 nodes (2 pods before): 10.0 pods/s in 3.0 s",
        "real at this size on two cores: 24 to 35 pods/s",
    ]
    shown = page(SCHEDULING, ["nominee", "bench", "scheduling", "--html", "a b.html"])
    assert all(line in shown for line in lines[:2])
    assert "<td>scheduling attempt (ms)</td><td>1.5</td>" in shown
    assert shown.count("<rect ") == 3
    assert 'y="0.0" width="34.0" height="120.0"><title>second 2: 20</title>' in shown
    assert "nominee bench scheduling --html &#x27;a b.html&#x27;" in shown
    assert "<b>x" not in shown


def test_the_page_of_watches_has_both_tables() -> None:
    lines = list(text(WATCH))
    assert [line.split() for line in lines if line.startswith(("JSON", "grpc"))] == [
        ["JSON", "1.0", "2.0", "3.0", "4", "to", "5"],
        ["grpc", "3.0", "1.0", "2.0", "3.0", "1", "7.0", "1", "to", "2"],
    ]
    shown = page(WATCH, ["nominee"])
    assert "<td>4 to 5</td>" in shown
    assert "<title>grpc: 2</title>" in shown
