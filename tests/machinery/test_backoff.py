"""Back-offs double up to a maximum."""

from __future__ import annotations

import random

import pytest

from nominee.machinery.runtime.queues.backoff import ExponentialBackoff, Retries


@pytest.mark.parametrize(
    ("failures", "want"), [(-1, 0.0), (0, 0.0), (1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (10**6, 1.0)]
)
def test_a_delay_doubles_up_to_the_maximum(failures: int, want: float) -> None:
    assert ExponentialBackoff(0.1, 1.0).delay(failures) == want


def test_delays_grow_with_jitter_and_start_again_after_a_success() -> None:
    retries = Retries(ExponentialBackoff(0.1, 1.0), jitter=0.5, rng=random.Random(3))
    delays = [retries.next_delay() for _ in range(6)]
    assert all(
        low <= delay <= 1.5 * low for low, delay in zip([0.1, 0.2, 0.4, 0.8, 1, 1], delays, strict=True)
    )
    assert len(set(delays)) == 6
    assert retries.failures == 6
    retries.reset()
    assert retries.next_delay() <= 0.15


def test_jitter_needs_a_random_generator() -> None:
    with pytest.raises(ValueError, match="random generator"):
        Retries(ExponentialBackoff(0.1, 1.0), jitter=0.5)
