"""The machinery: a leader whose renewal gets no answer."""

from __future__ import annotations

import random

import anyio
import pytest

from nominee.machinery.api.pb import coordination
from nominee.machinery.client.leader_election import LeaderElector, LeadershipLostError, Timing
from nominee.machinery.runtime.clock import SystemClock
from tests.support.leases import LeaseServer


async def test_a_leader_does_not_wait_for_an_answer_beyond_its_deadline() -> None:
    """In real time, since it is the call that hangs, not the clock."""

    class Hanging(LeaseServer):
        """Grants the lease, and never answers a renewal."""

        async def update(self, lease: coordination.Lease) -> coordination.Lease:
            await anyio.sleep_forever()
            raise AssertionError

    timing = Timing(lease_seconds=60.0, renew_deadline_seconds=0.4, retry_seconds=0.1)
    elector = LeaderElector(
        Hanging().client, name="s", identity="a", clock=SystemClock(), rng=random.Random(1), timing=timing
    )
    with anyio.fail_after(timing.lease_seconds / 2), pytest.raises(LeadershipLostError):
        await elector.run(anyio.sleep_forever)
