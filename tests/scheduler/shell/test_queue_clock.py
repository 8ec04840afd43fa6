"""The clock of the queue: wall time at the start of the process, and monotonic from then on."""

from __future__ import annotations

from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.shell.loop.deps import QueueClock

START_SECONDS = 1_700_000_000.0


class JumpingClock(FakeClock):
    """A clock whose wall time may jump."""

    jump_seconds = 0.0

    def now(self) -> float:
        return super().now() + self.jump_seconds


def test_times_of_waiting_pods_and_of_released_room_do_not_jump() -> None:
    clock = JumpingClock(START_SECONDS)
    queue_now = QueueClock(clock)
    clock.jump_seconds = -61.5
    clock.set(START_SECONDS + 10.0)
    released = clock.monotonic()
    clock.set(START_SECONDS + 20.0)
    assert queue_now.at(released) == START_SECONDS + 10.0
    assert queue_now() == START_SECONDS + 20.0
