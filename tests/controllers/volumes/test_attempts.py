"""The attempts of the provisioner."""

from __future__ import annotations

from nominee.controllers.volumes.attempts import Attempts
from nominee.machinery.api.objects import ObjectKey

KEY = ObjectKey("default", "data")


def test_an_attempt_runs_for_the_delay() -> None:
    attempts = Attempts()
    attempt = attempts.of(KEY, "a")
    assert attempt.began is None
    attempt.began = 100.0
    assert attempts.of(KEY, "a").remaining_seconds(5.0, 103.0) == 2.0
    attempts.end(KEY, "a")
    assert not attempts


def test_attempts_fail_as_often_as_the_class_requires() -> None:
    attempt = Attempts().of(KEY, "a")
    numbers = []
    for _ in range(3):
        attempt.began = 0.0
        numbers.append(attempt.fail(2))
    assert numbers == [1, 2, None]
    assert attempt.began is not None, "the third attempt goes on"


def test_failures_are_counted_when_an_attempt_is_dropped() -> None:
    attempts = Attempts()
    attempts.of(KEY, "a").began = 0.0
    assert attempts.of(KEY, "a").fail(2) == 1
    attempts.of(KEY, "a").began = 0.0
    attempts.end(KEY, "a")
    assert (attempts.of(KEY, "a").began, attempts.of(KEY, "a").failures) == (None, 1)
    attempts.forget(KEY)
    assert not attempts


def test_a_claim_that_is_created_again_has_no_attempts() -> None:
    attempts = Attempts()
    attempts.of(KEY, "a").began = 0.0
    assert attempts.of(KEY, "b").began is None
    assert len(attempts) == 1
