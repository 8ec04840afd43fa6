"""`nominee bench watch`: what it counts, and (slow) a small run of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from nominee.lab.bench.watches.watchers import Marks, Seen, _figures
from tests.support.patience import PATIENCE_SECONDS


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 1000])
def test_marks_are_found_however_they_are_cut(size: int) -> None:
    text = b"".join(b'{"x":"sent=%d.500000;","y":"sent=","z":";"}\r\n' % number for number in range(50))
    marks = Marks()
    found = [
        moment for start in range(0, len(text), size) for moment in marks.feed(text[start : start + size])
    ]
    assert found == [number + 0.5 for number in range(50)]


def test_figures_tell_who_missed_something() -> None:
    one, other = Seen(), Seen(ended="the server hung up")
    one.delays.extend([0.001] * 98 + [0.5, 2.0])
    other.delays.extend([0.001])
    figures = _figures([one, other])
    assert (figures["events"], figures["fewest"], figures["ended"]) == (101, 1, ["the server hung up"])
    assert figures["delayMilliseconds"] == {"p50": 1.0, "p90": 1.0, "p99": 500.0, "p100": 2000.0}
    assert _figures([Seen()])["delayMilliseconds"]["p50"] is None


@pytest.mark.slow
def test_a_small_run() -> None:
    sizes = ["--watchers", "3", "--rate", "20", "--pods", "30", "--seconds", "1", "--slow", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "nominee.cli", "bench", "watch", *sizes, "-o", "json"],
        capture_output=True,
        timeout=3 * PATIENCE_SECONDS,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report["lists"]) == {"JSON", "JSON, gzip", "protobuf", "Table"}
    for form, found in report["watches"].items():
        assert (found["events"], found["expected"], found["ended"]) == (60, 60, []), form
        assert found["slow"] == [{"events": 20, "status": {}}]
