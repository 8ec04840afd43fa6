"""The attempts of the provisioner."""

from __future__ import annotations

from nominee.controllers.volumes.attempts import Attempts


def test_an_attempt_runs_for_the_delay() -> None:
    attempts = Attempts()
    assert not attempts.is_running("a")
    attempts.begin("a", 100.0)
    assert attempts.is_running("a")
    assert attempts.remaining_seconds("a", 5.0, 103.0) == 2.0
    attempts.end("a")
    assert attempts.is_empty()


def test_attempts_fail_as_often_as_the_class_requires() -> None:
    attempts = Attempts()
    numbers = []
    for _ in range(3):
        attempts.begin("a", 0.0)
        numbers.append(attempts.fail("a", 2))
    assert numbers == [1, 2, None]
    assert attempts.is_running("a"), "the third attempt goes on"


def test_the_attempts_of_deleted_claims_are_dropped() -> None:
    attempts = Attempts()
    attempts.begin("a", 0.0)
    attempts.begin("b", 0.0)
    attempts.fail("b", 1)
    attempts.keep_only({"a"})
    assert attempts.is_running("a")
    assert attempts.fail("b", 1) == 1, "the count begins again"
    attempts.keep_only(())
    assert attempts.is_empty()
