"""How long a pod waits."""

from __future__ import annotations

import pytest

from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.queue.backoff import Backoff
from tests.scheduler.builders import pod


def failed(at: float, *, rejections: int = 0, errors: int = 0) -> QueuedPodInfo:
    return QueuedPodInfo(pod("p"), at, unschedulable_count=rejections, consecutive_errors_count=errors)


@pytest.mark.parametrize(("count", "want"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (5000, 10)])
def test_durations_double_up_to_the_maximum(count: int, want: float) -> None:
    assert Backoff().delay(count) == want


@pytest.mark.parametrize(("now", "want"), [(100.6, True), (101.0, True), (101.999, True), (102.0, False)])
def test_the_window_in_which_it_ends_still_counts(now: float, want: bool) -> None:
    assert Backoff().is_backing_off(failed(100.5, rejections=1), now) is want


@pytest.mark.parametrize(("now", "want"), [(101.49, True), (101.5, True), (101.51, False)])
def test_without_windows_the_moment_counts(now: float, want: bool) -> None:
    assert Backoff(windowed=False).is_backing_off(failed(100.5, rejections=1), now) is want


def test_errors_count_for_themselves() -> None:
    assert Backoff().expiry(failed(0.0, rejections=4, errors=1)) == 1.0
    assert Backoff().expiry(failed(0.0, rejections=4)) == 8.0
    assert Backoff().expiry(failed(0.0)) is None
