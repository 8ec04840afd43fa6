"""The extension points of DynamicResources.

    PreEnqueue, PreFilter   the claims exist, are the pod's, and their classes exist
    Filter                  an allocated claim can be used here; the others can be allocated here
    PostFilter              no node fits: an unused claim is deallocated, to try other devices
    Reserve, Unreserve      the devices are in use from now on, or free again
    PreBind                 finalizer, allocation and reservation are written; devices get ready

A pod without claims costs one look at its spec. Source: kube-scheduler 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nominee.machinery.api.errors import FailpointError, StatusError, is_not_found, is_retryable
from nominee.scheduler.framework.api.events import ClusterEventWithHint
from nominee.scheduler.framework.api.io_steps import Failpoint, IoSteps, Sleep, Warn
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    NodeStatuses,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.dynamic_resources import arguments, extended, readiness
from nominee.scheduler.plugins.dynamic_resources.claim_writes import ClaimWriter
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import Features
from nominee.scheduler.plugins.dynamic_resources.filtering import (
    NAME,
    ClaimOptions,
    Filtering,
    failed,
    unschedulable,
)
from nominee.scheduler.plugins.dynamic_resources.hints import Hints
from nominee.scheduler.plugins.dynamic_resources.pod_claims import (
    BindingFailedError,
    BindingTimeoutError,
    Claim,
    ClaimError,
    claims_of,
    is_allocated,
    is_reserved_for,
)
from nominee.scheduler.plugins.dynamic_resources.scoring import score_of
from nominee.scheduler.plugins.dynamic_resources.state import ClaimsState, is_in_memory
from nominee.scheduler.plugins.dynamic_resources.tracker import manager_of
from nominee.scheduler.plugins.normalize import normalize_by_max

WRITTEN: Final = "scheduler.claims.written"
"""Failpoint: a claim has its allocation and is reserved for the pod, which is not bound yet."""
_STATE = "PreFilterDynamicResources"
READY_POLL_SECONDS = 5.0
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
_NO_CLAIMS: Final = ClaimsState()  # of all pods without claims; never written to
_SKIP: Final = Status(Code.Skip)


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    """Arguments: `filterTimeout` (10s), `bindingTimeout` (600s)."""

    name = NAME
    looks_at_pods = False

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        gates = handle.gates
        self._handle = handle
        self._enabled = gates.enabled("DynamicResourceAllocation")
        timeouts = arguments.read(args, gates)
        self._settings = ClaimOptions(
            Features.of(gates, handle.version),
            gates.enabled("DRAExtendedResource"),
            timeouts.filter_seconds,
            timeouts.binding_seconds,
        )
        self._manager = manager_of(handle)
        self._claims = self._manager.claims
        self._filtering = Filtering(handle, self._manager, self._settings)
        self._hints = Hints(self._claims)
        self._writer = ClaimWriter(handle.clock, timestamps=self._settings.features.binding_conditions)

    def _missing_claim(self, pod: PodInfo) -> Status | None:
        if not pod.pod.spec.resourceClaims:
            return None
        try:
            claims_of(pod.pod, self._claims.get)
        except ClaimError as error:
            return unschedulable(str(error))
        return None

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._missing_claim(pod) if self._enabled else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._hints.registrations() if self._enabled else ()

    # Filter

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        if not self._enabled:
            return None, Status(Code.Skip)
        if not pod.pod.spec.resourceClaims and not self._filtering.class_map():
            state.write(_STATE, _NO_CLAIMS)
            return None, _SKIP
        known = ClaimsState()
        state.write(_STATE, known)
        return None, self._filtering.prepare(known, pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        known = self._known(state)
        if known is None:
            return failed("not found") if self._enabled else None
        return self._filtering.check(known, pod, node) if known.claims else None

    def _known(self, state: CycleState) -> ClaimsState | None:
        known: ClaimsState | None = state.get(_STATE)
        return known

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Find a claim to deallocate; the result's follow-up does it before the pod is requeued."""
        if not self._enabled:
            return None, Status(Code.Unschedulable, ("plugin disabled",), self.name)
        known = self._known(state)
        if known is None:
            # An earlier PreFilter rejected the pod. Upstream's text, and so its message ends: ". not found".
            return None, failed("not found")
        if not known.claims:
            return None, Status(Code.Unschedulable, (NOTHING_TO_DEALLOCATE,), self.name)
        for index in sorted(known.unavailable):
            claim = known.claims[index]
            users = claim.status.reservedFor
            if index == known.extended_index or index in known.shared:
                continue
            if len(users) > 1 or (users and users[0].uid != pod.uid):
                continue
            return self._freeing(
                lambda: self._writer.deallocate(claim),  # noqa: B023  # the loop ends here
                "deallocation of ResourceClaim completed",
            )
        mine = known.extended
        if mine is not None and not is_in_memory(mine):
            return self._freeing(lambda: self._writer.delete(mine), "deletion of ResourceClaim completed")
        return None, Status(Code.Unschedulable, ("still not schedulable",), self.name)

    def _freeing(
        self, write: Callable[[], IoSteps[object]], text: str
    ) -> tuple[PostFilterResult | None, Status]:
        def follow_up() -> IoSteps[Status | None]:
            yield from write()
            return None

        status = Status(Code.Unschedulable, (text,), self.name)
        return PostFilterResult(None, follow_up=follow_up), status

    # Score

    def score_all(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        known = self._known(state)
        if known is None or not known.on_nodes or not self._settings.features.prioritized_list:
            return np.zeros(len(rows), dtype=np.int64)
        scores = [score_of(known, known.on_nodes.get(node.name)) for node in snapshot.nodes_at(rows)]
        return np.array(scores, dtype=np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        known = self._known(state)
        return scores if known is None or not known.on_nodes else normalize_by_max(scores)

    # Reserve

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        known = self._known(state)
        if known is None:
            return None
        for index in known.shared:
            known.decided[index] = known.claims[index].status.allocation
            if not self._claims.join(known.uid_of(index), pod.pod) and not self._is_written(known, index):
                return failed(f"allocation of claim {known.claims[index].metadata.name} was given up")
        if known.allocator is None:
            return None
        found = known.on_nodes.get(node_name)
        wanted = known.to_allocate()
        allocations = () if found is None else found.allocations()
        if found is None or not allocations:
            if wanted == [known.extended_index]:
                return None  # the node's device plugin has what is asked for
            return failed("claim allocation not found for node")
        if found.extended is None and known.has_extended and known.extended_index in wanted:
            wanted.remove(known.extended_index)
        if len(allocations) != len(wanted):
            counts = f"have {len(allocations)} allocations, want {len(wanted)} claims"
            return failed(f"internal error, {counts}")
        known.chosen = found
        for index, allocation in zip(wanted, allocations, strict=True):
            known.decided[index] = allocation
            self._claims.take_off(known.uid_of(index), allocation)
            self._claims.join(known.uid_of(index), pod.pod)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        known = self._known(state)
        if known is None:
            return
        for index, claim in enumerate(known.claims):
            if index not in known.unsettled and self._claims.give_up(known.uid_of(index), pod.uid):
                self._claims.restore(claim.metadata.name, claim.metadata.namespace)

    def after_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> IoSteps[None]:
        """Take back the writes of PreBind; one that fails is tried again when the pod is scheduled again."""
        known = self._known(state)
        if known is None:
            return
        yield from self._settle(known, pod)
        for index, claim in enumerate(known.claims):
            try:
                if index == known.extended_index:
                    if not is_in_memory(claim):
                        yield from self._writer.delete(claim)
                elif is_allocated(claim) and is_reserved_for(claim, pod.uid):
                    self._claims.assume((yield from self._writer.unreserve(claim, pod.uid)))
            except StatusError as error:
                if is_not_found(error):
                    continue  # it went with its pod
                yield _warning("Could not unreserve a claim", pod, claim, error)

    def _settle(self, known: ClaimsState, pod: PodInfo) -> IoSteps[None]:
        """Find out whether allocations were written whose answer was not awaited. Until then they count."""
        for index in sorted(known.unsettled):
            claim = known.claims[index]
            try:
                found = yield from self._writer.outcome(claim)
            except StatusError as error:
                yield _warning("Could not look up a claim", pod, claim, error)
                found = None
            uid = known.uid_of(index)
            if found is not None:
                known.claims[index] = found
                self._claims.assume(found)
            if found is not None and is_allocated(found):
                self._claims.land(uid)
            else:
                self._claims.give_up(uid, pod.uid)
        known.unsettled.clear()

    # PreBind

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        known = self._known(state)
        if known is None or not known.claims:
            return Status(Code.Skip), True
        return None, True

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> IoSteps[Status | None]:
        known = self._known(state)
        if known is None or not known.claims:
            return None
        try:
            for index, claim in enumerate(known.claims):
                if not is_reserved_for(claim, pod.uid):
                    yield from self._bind_claim(known, index, pod)
            if self._settings.features.binding_conditions:
                yield from self._wait_until_ready(known, pod, node_name)
        except (ClaimError, StatusError, FailpointError) as error:
            return Status.as_error(error, self.name)
        return None

    def _bind_claim(self, known: ClaimsState, index: int, pod: PodInfo) -> IoSteps[None]:
        claim, uid = known.claims[index], known.uid_of(index)
        allocation = known.decided.get(index)
        written_by_other = allocation is not None and not self._claims.holds(uid, pod.uid)
        if written_by_other:  # of the same gang
            allocation = None
        is_mine = index == known.extended_index
        if is_mine and allocation is None and not claim.spec.devices.requests:
            return  # the node's device plugin has what is asked for
        is_settled = is_written = False
        try:
            if is_mine and is_in_memory(claim):
                mine = None if known.chosen is None else known.chosen.extended
                if mine is None:
                    raise ClaimError("extended resource claim not found for node")
                claim = known.claims[index] = yield from self._create(mine)
            if written_by_other or index in known.shared:
                claim = known.claims[index] = self._newest(claim)
            bound = yield from self._writer.bind(claim, pod.pod, allocation)
            known.claims[index] = bound
            self._claims.assume(bound)
            is_written = True
            yield Failpoint(WRITTEN, {"pod": str(pod.key), "claim": bound.metadata.name})
        except ClaimError:
            is_settled = True
            raise
        except StatusError as error:
            is_settled = not is_retryable(error)
            raise
        finally:
            if allocation is not None:
                if is_written:
                    self._claims.land(uid)
                elif is_settled or is_in_memory(known.claims[index]):
                    self._claims.give_up(uid, pod.uid)
                else:
                    known.unsettled.add(index)  # Unreserve is to come: the devices are in use until then
        if is_mine:
            yield from self._writer.patch_pod_status(pod.pod, extended.pod_status_of(bound, known.asked))

    def _is_written(self, known: ClaimsState, index: int) -> bool:
        claim = known.claims[index]
        found = self._claims.get(claim.metadata.name, claim.metadata.namespace)
        return found is not None and found.status.allocation.devices == claim.status.allocation.devices

    def _newest(self, claim: Claim) -> Claim:
        """Return the claim without the assumptions of its gang; with them, once they are written."""
        name, namespace = claim.metadata.name, claim.metadata.namespace
        found = self._claims.get(name, namespace)
        if found is None or found.metadata.uid != claim.metadata.uid:
            raise ClaimError(f"claim {namespace}/{name} got deleted in the meantime")
        return found

    def _create(self, wanted: Claim) -> IoSteps[Claim]:
        outcome = "failure"
        try:
            made = yield from self._writer.create(wanted)
            outcome = "success"
            return made
        finally:
            self._handle.note("resourceclaim_creates_total", (outcome,))

    def _wait_until_ready(self, known: ClaimsState, pod: PodInfo, node_name: str) -> IoSteps[None]:
        """Wait until the devices' drivers report them ready; ClaimError when they fail or are late."""
        allocated = [claim for claim in known.claims if is_allocated(claim)]
        if not any(readiness.has_conditions(claim) for claim in allocated):
            return
        if self._handle.recorder is not None:
            note = f"waiting for binding conditions for device on node {node_name}"
            self._handle.recorder.event(
                pod.pod, "Normal", "BindingConditionsPending", action="Scheduling", note=note
            )
        clock, timeout = self._handle.clock, self._settings.binding_timeout_seconds
        began, outcome = clock.monotonic(), "error"
        try:
            while not self._are_ready(known, timeout):
                left = began + timeout - clock.monotonic()
                if left <= 0:
                    raise BindingTimeoutError("device binding timeout")
                yield Sleep(min(READY_POLL_SECONDS, left))
            outcome = "success"
        except BindingTimeoutError:
            outcome = "timeout"
            raise
        except BindingFailedError:
            outcome = "failure"
            raise
        finally:
            self._note_waiting(known, outcome, clock.monotonic() - began)

    def _note_waiting(self, known: ClaimsState, outcome: str, seconds: float) -> None:
        """Record, as upstream: the wait once for every device, and the devices that were waited for."""
        profile = self._handle.profile_name
        for claim in known.claims:
            for result in claim.status.allocation.devices.results:
                labels = (profile, result.driver, outcome)
                self._handle.note("dra_bindingconditions_wait_duration_seconds", labels, seconds)
                if result.bindingConditions:
                    self._handle.note("dra_bindingconditions_allocations_total", labels)

    def _are_ready(self, known: ClaimsState, timeout_seconds: float) -> bool:
        for index, claim in enumerate(known.claims):
            if not is_allocated(claim):
                continue
            name, namespace = claim.metadata.name, claim.metadata.namespace
            found = self._claims.get(name, namespace)
            if found is None:
                raise ClaimError(f'could not find ResourceClaim "{namespace}/{name}"')
            known.claims[index] = found
            if not readiness.is_ready(found):
                if readiness.is_late(found, self._handle.clock.now(), timeout_seconds):
                    raise BindingTimeoutError(f"claim {name} binding timeout")
                return False
        return True


def _warning(text: str, pod: PodInfo, claim: Claim, error: StatusError) -> Warn:
    return Warn(text, {"pod": pod.key, "claim": claim.metadata.name, "step": "unreserve", "error": error})
