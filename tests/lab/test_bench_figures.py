"""The benchmark's arithmetic."""

from __future__ import annotations

import math

import pytest

from nominee.lab.bench.figures import difference, histogram, per_second, percentile, quantile, sample

METRICS = """
# TYPE attempt_seconds histogram
attempt_seconds_bucket{le="0.001",profile="default-scheduler",result="scheduled"} 10.0
attempt_seconds_bucket{le="0.002",profile="default-scheduler",result="scheduled"} 30.0
attempt_seconds_bucket{le="+Inf",profile="default-scheduler",result="scheduled"} 40.0
attempt_seconds_bucket{le="0.001",profile="default-scheduler",result="unschedulable"} 7.0
attempt_seconds_bucket{le="0.001",profile="other",result="scheduled"} 1.0
attempt_seconds_bucket{le="0.002",profile="other",result="scheduled"} 1.0
attempt_seconds_bucket{le="+Inf",profile="other",result="scheduled"} 1.0
attempt_seconds_count{profile="default-scheduler",result="scheduled"} 40.0
"""


def test_histogram_sums_series_and_selects_by_label() -> None:
    found = histogram(METRICS, "attempt_seconds", {"result": "scheduled"})
    assert found == {0.001: 11.0, 0.002: 31.0, math.inf: 41.0}
    assert difference(found, {0.001: 1.0}) == {0.001: 10.0, 0.002: 31.0, math.inf: 41.0}


@pytest.mark.parametrize(
    ("percent", "wanted"), [(25, 0.001), (50, 0.0015), (75, 0.002), (90, 0.002), (12.5, 0.0005)]
)
def test_quantiles_lie_within_their_bucket(percent: float, wanted: float) -> None:
    buckets = {0.001: 10.0, 0.002: 30.0, math.inf: 40.0}
    assert quantile(buckets, percent) == pytest.approx(wanted)


def test_no_observations_have_no_quantile() -> None:
    assert quantile({}, 50) is None
    assert quantile({0.1: 0.0, math.inf: 0.0}, 50) is None


@pytest.mark.parametrize(("percent", "wanted"), [(50, 5), (90, 9), (95, 10), (99, 10), (100, 10), (1, 1)])
def test_percentiles_are_of_nearest_rank(percent: float, wanted: float) -> None:
    assert percentile([float(n) for n in range(10, 0, -1)], percent) == wanted


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ([10.1, 10.2, 11.5, 12.5], [2.0, 1.0]),  # the last second is not whole
        ([12.0], [0.0, 0.0]),
        ([10.25, 10.5], [4.0]),  # less than a second: its own rate
        ([], []),
    ],
)
def test_samples_are_of_whole_seconds(times: list[float], wanted: list[float]) -> None:
    assert per_second(times, 10.0) == wanted


def test_a_series_without_labels() -> None:
    text = "# HELP a_sum x\na_sum 1.5\na_sum_total 9\na_count 3.0\n"
    assert (sample(text, "a_sum"), sample(text, "a_count"), sample(text, "b")) == (1.5, 3.0, 0.0)
