"""Return the writes of DynamicResources as data, for a pod that is bound or sent back.

Source: kube-scheduler 1.36, DynamicResources.bindClaim and deleteClaim. Every write is repeated while the API
server cannot be reached, and a few times on a conflict with another writer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, devices
from nominee.machinery.runtime.clock import Clock, to_time
from nominee.scheduler.framework.api.io_steps import (
    RETRIED,
    Create,
    Delete,
    Get,
    IoSteps,
    Patch,
    Sleep,
    Update,
)
from nominee.scheduler.framework.cluster.scheduling_groups import group_of
from nominee.scheduler.plugins.dynamic_resources.device_allocation.results import FINALIZER
from nominee.scheduler.plugins.dynamic_resources.pod_claims import (
    Claim,
    ClaimError,
    is_allocated,
    is_reserved_for,
)

CONFLICTS_MAX: Final = 5  # writes of one claim that may meet a conflict
CONFLICT_PAUSE_SECONDS: Final = 0.01
OUTCOME_ATTEMPTS_MAX: Final = 1000  # every two seconds: half an hour
NOT_FOUND, CONFLICT = 404, 409


class ClaimWriter:
    """Makes the steps that write ResourceClaims."""

    def __init__(self, clock: Clock, *, timestamps: bool) -> None:
        """Take the clock and the names; `timestamps`: an allocation has its time, for binding conditions."""
        self._clock = clock
        self._timestamps = timestamps

    def bind(
        self, claim: Claim, pod: core.Pod, allocation: devices.AllocationResult | None
    ) -> IoSteps[Claim]:
        """Store the allocation (if it was decided here) and the reservation; return the stored claim.

        Raises:
            StatusError: a write was refused.
            ClaimError: another writer was faster.
        """

        def once(current: Claim) -> IoSteps[Claim]:
            if current.metadata.uid != claim.metadata.uid:  # there is another of that name now
                raise ClaimError(f"claim {_key(claim)} got deleted in the meantime")
            return (yield from self._bind_once(current, pod, allocation))

        looking = f"get updated claim {_key(claim)} after conflict"
        return (yield from _unless_conflict(claim, once, looking))

    def _bind_once(
        self, current: Claim, pod: core.Pod, allocation: devices.AllocationResult | None
    ) -> IoSteps[Claim]:
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
                claim = _copy((yield from _update(claim, "", "add finalizer to claim")))
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
        return (yield from _update(claim, "status", what))

    def create(self, claim: Claim) -> IoSteps[Claim]:
        """Create the claim for extended resources, without the parts that only this process has."""
        new = _copy(claim)
        new.ClearField("status")
        new.metadata.ClearField("name")
        new.metadata.ClearField("uid")
        with _named(f"create claim for extended resources {_key(new)}"):
            created: Claim = yield Create(new)
        return created

    def outcome(self, claim: Claim) -> IoSteps[Claim | None]:
        """Return the claim as the API server has it, None when it is gone; wait long for the server."""
        name, namespace = claim.metadata.name, claim.metadata.namespace
        try:
            found: Claim = yield Get(kinds.RESOURCE_CLAIM, name, namespace, attempts=OUTCOME_ATTEMPTS_MAX)
        except StatusError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        return found if found.metadata.uid == claim.metadata.uid else None

    def patch_pod_status(self, pod: core.Pod, patch: object) -> IoSteps[None]:
        """Patch the pod's status: which claim its extended resources come from."""
        name, namespace = pod.metadata.name, pod.metadata.namespace
        with _named(f"update pod {namespace}/{name} ExtendedResourceClaimStatus"):
            yield Patch(kinds.POD, name, namespace, patch, "status", attempts=RETRIED)

    def unreserve(self, claim: Claim, pod_uid: str) -> IoSteps[Claim]:
        """Remove the pod from those the claim is reserved for; entries of other pods stay as they are."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod_uid}]},
        }
        name, namespace = claim.metadata.name, claim.metadata.namespace
        stored: Claim = yield Patch(kinds.RESOURCE_CLAIM, name, namespace, patch, "status", attempts=RETRIED)
        return stored

    def deallocate(self, claim: Claim) -> IoSteps[Claim]:
        """Free the devices of a claim that no other pod uses."""
        new = _copy(claim)
        for name in ("reservedFor", "allocation", "devices"):
            new.status.ClearField(name)
        stored: Claim = yield Update(new, "status")
        return stored

    def delete(self, claim: Claim) -> IoSteps[None]:
        """Delete a claim of ours, finalizer and all; it may be gone already."""

        def once(current: Claim) -> IoSteps[Claim]:
            if FINALIZER not in current.metadata.finalizers:
                return current
            new = _copy(current)
            new.metadata.finalizers.remove(FINALIZER)
            with _named(f"update resourceclaim {_key(claim)}"):
                stored: Claim = yield Update(new)
            return stored

        try:
            yield from _unless_conflict(claim, once, f"get resourceclaim {_key(claim)}")
            yield Delete(kinds.RESOURCE_CLAIM, claim.metadata.name, claim.metadata.namespace)
        except StatusError as error:
            if error.code != NOT_FOUND:
                raise


def _unless_conflict(claim: Claim, once: Callable[[Claim], IoSteps[Claim]], looking: str) -> IoSteps[Claim]:
    """Do `once`, and again with the newest claim after a conflict, a few times.

    `looking` names the reading of that claim in errors.
    """
    for attempt in range(CONFLICTS_MAX):
        try:
            return (yield from once(claim))
        except StatusError as error:
            if error.code != CONFLICT or attempt == CONFLICTS_MAX - 1:
                raise
        yield Sleep(CONFLICT_PAUSE_SECONDS)
        with _named(looking):
            claim = yield Get(
                kinds.RESOURCE_CLAIM, claim.metadata.name, claim.metadata.namespace, attempts=RETRIED
            )
    raise AssertionError("the last attempt raises")


def _update(claim: Claim, subresource: str, what: str) -> IoSteps[Claim]:
    """Replace the claim; the error of a refused write names its purpose.

    Shielded: of a write whose answer is not awaited it would not be known whether the devices are in use.
    """
    with _named(f"{what} {_key(claim)}"):
        stored: Claim = yield Update(claim, subresource, shielded=True, attempts=RETRIED)
    return stored


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Begin the text of a request's error with its purpose, as upstream."""
    try:
        yield
    except StatusError as error:
        text = f"{what}: {error.message}"
        raise StatusError(error.code, error.reason, text, details=error.details) from error


def _is_same(claim: Claim, allocation: devices.AllocationResult) -> bool:
    return is_allocated(claim) and claim.status.allocation.devices == allocation.devices


def _copy(claim: Claim) -> Claim:
    copy = Claim()
    copy.CopyFrom(claim)
    return copy


def _key(claim: Claim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
