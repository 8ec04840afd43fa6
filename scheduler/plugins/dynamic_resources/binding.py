"""What is written when a pod is bound, or sent back: the only part of the plugin that does I/O.

Source: kube-scheduler 1.36, DynamicResources.bindClaim. Every write is repeated while the API server cannot
be reached, and a few times on a conflict with somebody else's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from anyio import CancelScope

from machinery import kinds
from machinery.client import Client, retry_unavailable
from machinery.clock import Clock, to_time
from machinery.errors import StatusError
from machinery.pb import core, devices
from scheduler.framework.scheduling_groups import group_of
from scheduler.plugins.device_allocation.results import FINALIZER
from scheduler.plugins.dynamic_resources.pod_claims import Claim, ClaimError, is_allocated, is_reserved_for

ATTEMPTS_MAX = 5  # writes of one claim that may meet a conflict
CONFLICT_PAUSE_SECONDS = 0.01
OUTCOME_ATTEMPTS_MAX = 1000  # every two seconds: half an hour
NOT_FOUND, CONFLICT = 404, 409


class ClaimWriter:
    def __init__(self, client: Client, clock: Clock, *, timestamps: bool) -> None:
        """`timestamps`: an allocation says when it was made, for binding conditions."""
        self._client = client
        self._clock = clock
        self._timestamps = timestamps

    async def bind(self, claim: Claim, pod: core.Pod, allocation: devices.AllocationResult | None) -> Claim:
        """Stores the allocation (if it was decided here) and the reservation; what is stored then.

        Raises StatusError, or ClaimError when somebody else was faster.
        """

        async def once(current: Claim) -> Claim:
            if current.metadata.uid != claim.metadata.uid:  # there is another of that name now
                raise ClaimError(f"claim {_key(claim)} got deleted in the meantime")
            return await self._bind_once(current, pod, allocation)

        return await self._unless_conflict(claim, once)

    async def _bind_once(
        self, current: Claim, pod: core.Pod, allocation: devices.AllocationResult | None
    ) -> Claim:
        uid = pod.metadata.uid
        if current.metadata.HasField("deletionTimestamp"):
            raise ClaimError(f"claim {_key(current)} got deleted in the meantime")
        if is_reserved_for(current, uid):
            return current  # the answer to an earlier try was lost
        claim = _copy(current)
        if allocation is not None and group_of(pod) is not None and _is_same(claim, allocation):
            allocation = None  # another pod of the gang has written it
        if allocation is not None:
            if is_allocated(claim):
                raise ClaimError(f"claim {_key(claim)} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                claim.metadata.finalizers.append(FINALIZER)
                claim = await self._call(lambda: self._client.update(claim), "add finalizer to claim", claim)
                claim = _copy(claim)
            claim.status.allocation.CopyFrom(allocation)
        elif not is_allocated(claim):
            # A reservation (or, worse, a time of allocation) alone would pass for an allocation of nothing.
            raise ClaimError(f"claim {_key(claim)} got deallocated in the meantime")
        claim.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=uid)
        # Of one older than the gate, too, though the API server takes no change of an allocation: pods that
        # come later to a shared claim fail until it is free once (upstream's mistake, 1.36).
        if self._timestamps and not claim.status.allocation.HasField("allocationTimestamp"):
            claim.status.allocation.allocationTimestamp.CopyFrom(to_time(self._clock.now()))
        what = "add allocation and reservation to claim" if allocation else "add reservation to claim"
        return await self._call(lambda: self._client.update(claim, subresource="status"), what, claim)

    async def create(self, claim: Claim) -> Claim:
        """The claim for extended resources; without what only this process knows."""
        new = _copy(claim)
        new.ClearField("status")
        new.metadata.ClearField("name")
        new.metadata.ClearField("uid")
        return await self._client.create(new)

    async def outcome(self, claim: Claim) -> Claim | None:
        """The claim as the API server has it; None when it is gone. Waits long for a server that is away."""
        name, namespace = claim.metadata.name, claim.metadata.namespace
        try:
            found = await retry_unavailable(
                lambda: self._client.get(kinds.RESOURCE_CLAIM, name, namespace),
                clock=self._clock,
                attempts_max=OUTCOME_ATTEMPTS_MAX,
            )
        except StatusError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        return found if found.metadata.uid == claim.metadata.uid else None

    async def tell_pod(self, pod: core.Pod, patch: object) -> None:
        """Patches the pod's status."""
        await retry_unavailable(
            lambda: self._client.patch(
                kinds.POD, pod.metadata.name, pod.metadata.namespace, patch, subresource="status"
            ),
            clock=self._clock,
        )

    async def unreserve(self, claim: Claim, pod_uid: str) -> Claim:
        """Takes the pod out of those the claim is reserved for; others' entries stay as they are."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod_uid}]},
        }
        return await retry_unavailable(
            lambda: self._client.patch(
                kinds.RESOURCE_CLAIM,
                claim.metadata.name,
                claim.metadata.namespace,
                patch,
                subresource="status",
            ),
            clock=self._clock,
        )

    async def deallocate(self, claim: Claim) -> Claim:
        """Frees the devices of a claim that nobody (else) uses."""
        new = _copy(claim)
        for name in ("reservedFor", "allocation", "devices"):
            new.status.ClearField(name)
        return await self._client.update(new, subresource="status")

    async def delete(self, claim: Claim) -> None:
        """Deletes a claim of ours, finalizer and all; it may be gone already."""

        async def once(current: Claim) -> Claim:
            if FINALIZER not in current.metadata.finalizers:
                return current
            new = _copy(current)
            new.metadata.finalizers.remove(FINALIZER)
            return await self._client.update(new)

        try:
            await self._unless_conflict(claim, once)
            await self._client.delete(kinds.RESOURCE_CLAIM, claim.metadata.name, claim.metadata.namespace)
        except StatusError as error:
            if error.code != NOT_FOUND:
                raise

    async def _unless_conflict(self, claim: Claim, once: Callable[[Claim], Awaitable[Claim]]) -> Claim:
        """Again with the newest claim when somebody else wrote it meanwhile, a few times."""
        for attempt in range(ATTEMPTS_MAX):
            try:
                return await once(claim)
            except StatusError as error:
                if error.code != CONFLICT or attempt == ATTEMPTS_MAX - 1:
                    raise
            await self._clock.sleep(CONFLICT_PAUSE_SECONDS)
            name, namespace = claim.metadata.name, claim.metadata.namespace
            claim = await retry_unavailable(
                lambda: self._client.get(kinds.RESOURCE_CLAIM, name, namespace),  # noqa: B023  # awaited here
                clock=self._clock,
            )
        raise AssertionError("the last attempt raises")

    async def _call(self, call: Callable[[], Awaitable[Claim]], what: str, claim: Claim) -> Claim:
        async def once() -> Claim:
            # What was sent is answered, or late by the client's own limit: of a binding that is stopped
            # meanwhile nobody would know what has become.
            with CancelScope(shield=True):
                answer = await call()
            return answer

        try:
            return await retry_unavailable(once, clock=self._clock)
        except StatusError as error:
            text = f"{what} {_key(claim)}: {error.message}"
            raise StatusError(error.code, error.reason, text, details=error.details) from error


def _is_same(claim: Claim, allocation: devices.AllocationResult) -> bool:
    return is_allocated(claim) and claim.status.allocation.devices == allocation.devices


def _copy(claim: Claim) -> Claim:
    copy = Claim()
    copy.CopyFrom(claim)
    return copy


def _key(claim: Claim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
