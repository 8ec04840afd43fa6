"""One leader among several processes, by a Lease.

A candidate never compares clocks with another machine: it remembers when *it* saw the lease change, and takes
it over once nothing changed for a whole lease duration. A leader that cannot renew within the renew deadline
stops leading. Source: client-go 1.36, tools/leaderelection (defaults of kube-scheduler: 15 s, 10 s, 2 s).
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_conflict, is_not_found
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import coordination
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.runtime.clock import Clock, SystemClock, to_micro_time

JITTER = 1.2
RELEASE_SECONDS_MAX = 5.0
UNRENEWED_SECONDS_MAX = 20.0
"""For how long after its lease's end a leader that does not renew it counts as healthy."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of an election in seconds: the lease, a leader's attempts to renew it, the retries."""

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_seconds <= self.renew_deadline_seconds:
            raise ValueError("leaderElection.leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_seconds <= JITTER * self.retry_seconds:
            raise ValueError("leaderElection.renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.retry_seconds <= 0:
            raise ValueError("leaderElection.retryPeriod must be greater than zero")


class LeadershipLostError(Exception):
    """The lease could not be renewed in time, or another candidate has it."""


class LeaderElector:
    """Runs a function while, and only while, this process leads.

    `identity` must differ between candidates. `leading` is whether it leads now.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespace: str = "kube-system",
        identity: str,
        timing: Timing | None = None,
        clock: Clock | None = None,
        rng: random.Random,
        on_new_leader: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._timing = timing or Timing()
        self._clock = clock or SystemClock()
        self._rng = rng
        self._on_new_leader = on_new_leader or (lambda _: None)
        self._observed: coordination.Lease | None = None
        self._observed_at = 0.0
        self._reported = ""
        self._renewed_at = 0.0
        self.leading = False

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then await `lead()`; release the lease when that ends or is cancelled.

        Raises:
            LeadershipLostError: the lease was lost while leading (`lead` is cancelled before).
        """
        while not await self._try_acquire():
            await self._clock.sleep(self._timing.retry_seconds * (1 + self._rng.random() * JITTER))
        self.leading = True
        lost = False
        try:
            async with anyio.create_task_group() as tasks:

                async def renew() -> None:
                    nonlocal lost
                    await self._renew_until_lost()
                    lost = True
                    tasks.cancel_scope.cancel()

                tasks.start_soon(renew)
                await lead()
                tasks.cancel_scope.cancel()
        finally:
            self.leading = False
            if not lost:
                with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS_MAX):
                    await self._release()
        if lost:
            raise LeadershipLostError(f"lease {self._namespace}/{self._name} lost by {self._identity}")

    def check_renewed(self) -> None:
        """Raise RuntimeError for a leader that has not renewed its lease for long (upstream's WatchDog)."""
        tolerated = self._timing.lease_seconds + UNRENEWED_SECONDS_MAX
        if self.leading and self._clock.monotonic() - self._renewed_at > tolerated:
            raise RuntimeError(f"failed election to renew leadership on lease {self._name}")

    async def _renew_until_lost(self) -> None:
        """Return as soon as this process may no longer lead, also where the API server does not answer."""
        while (left := self._seconds_left()) > 0:
            await self._clock.sleep(min(self._timing.retry_seconds, left))
            # A call's own deadline may be later than the lease's end.
            with anyio.move_on_after(max(self._seconds_left(), 0.0)):
                await self._try_acquire()
            if self._observed is not None and self._observed.spec.holderIdentity != self._identity:
                return

    def _seconds_left(self) -> float:
        return self._renewed_at + self._timing.renew_deadline_seconds - self._clock.monotonic()

    async def _try_acquire(self) -> bool:
        """Take or renew the lease; False where another holds it or the API server did not answer."""
        try:
            return await self._acquire()
        except StatusError:
            return False

    async def _acquire(self) -> bool:
        if self.leading and self._observed is not None:
            with ignoring(is_conflict, is_not_found):
                await self._write(self._observed)
                return True
        lease = await get_if_exists(self._client, kinds.LEASE, self._name, self._namespace)
        if lease is None:
            lease = coordination.Lease()
            lease.metadata.name, lease.metadata.namespace = self._name, self._namespace
            await self._write(lease)
            return True
        if self._observed is None or lease.spec != self._observed.spec:
            self._observe(lease)
        holder = lease.spec.holderIdentity
        duration = float(lease.spec.leaseDurationSeconds or self._timing.lease_seconds)
        expired = self._clock.monotonic() - self._observed_at >= duration
        if holder and holder != self._identity and not expired:
            return False
        await self._write(lease)
        return True

    async def _write(self, lease: coordination.Lease) -> None:
        """Take or renew the lease as it was read (without a resourceVersion: make it)."""
        new = copy_of(lease)
        spec, now = new.spec, to_micro_time(self._clock.now())
        if spec.holderIdentity != self._identity:
            spec.acquireTime.CopyFrom(now)
            spec.leaseTransitions = spec.leaseTransitions + 1 if lease.metadata.resourceVersion else 0
        spec.holderIdentity = self._identity
        spec.leaseDurationSeconds = math.ceil(self._timing.lease_seconds)
        spec.renewTime.CopyFrom(now)
        # Others count from when they see this, which is later.
        asked_at = self._clock.monotonic()
        exists = bool(lease.metadata.resourceVersion)
        self._observe(await (self._client.update(new) if exists else self._client.create(new)))
        self._renewed_at = asked_at

    def _observe(self, lease: coordination.Lease) -> None:
        self._observed = lease
        self._observed_at = self._clock.monotonic()
        if lease.spec.holderIdentity != self._reported:
            self._reported = lease.spec.holderIdentity
            self._on_new_leader(self._reported)

    async def _release(self) -> None:
        """Give the lease back, so that the next leader need not wait for it to run out."""
        lease = self._observed
        try:
            if lease is None or not await self._give_back(lease):
                # A renewal that was cancelled may have been carried out: the lease is newer than is known.
                await self._give_back(await self._client.get(kinds.LEASE, self._name, self._namespace))
        except StatusError:
            return  # it runs out by itself

    async def _give_back(self, lease: coordination.Lease) -> bool:
        """Return whether the lease was as given; it is free then, or another's."""
        if lease.spec.holderIdentity != self._identity:
            return True
        new = copy_of(lease)
        new.spec.holderIdentity = ""
        new.spec.leaseDurationSeconds = 1
        new.spec.renewTime.CopyFrom(to_micro_time(self._clock.now()))
        new.spec.acquireTime.CopyFrom(to_micro_time(self._clock.now()))
        with ignoring(is_conflict):
            await self._client.update(new)
            return True
        return False
