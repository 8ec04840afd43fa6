"""PreFilter and Filter of DynamicResources: the needs of the claims, and whether one node has them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from nominee.machinery.api.pb import devices
from nominee.machinery.features.gates import Version
from nominee.machinery.scheduling.node_affinity import NodeSelector
from nominee.scheduler.framework.interface import Code, Handle, Status
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.dynamic_resources import extended, readiness
from nominee.scheduler.plugins.dynamic_resources.class_map import ClassMap
from nominee.scheduler.plugins.dynamic_resources.device_allocation.allocator import Allocator, Solution
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocationError,
    DeadlineError,
    Features,
    Node,
    NodeAllocationError,
)
from nominee.scheduler.plugins.dynamic_resources.pod_claims import (
    Claim,
    ClaimError,
    can_be_reserved,
    claims_of,
    is_allocated,
    is_reserved_for,
)
from nominee.scheduler.plugins.dynamic_resources.state import ClaimsState, OnNode
from nominee.scheduler.plugins.dynamic_resources.tracker import DeviceManager

NAME = "DynamicResources"
_CANNOT_ALLOCATE = "cannot allocate all claims"
_NOT_AVAILABLE = "resourceclaim not available on the node"
_TIMED_OUT = "timed out trying to allocate devices"
_TIMEOUT_IS_ERROR = Version(1, 36)  # to be tried again after backoff: no event may come of it


@dataclass(frozen=True, slots=True)
class ClaimOptions:
    """Gates and arguments. Times are seconds; a filter time-out of 0 means no limit."""

    features: Features
    extended_resources: bool
    filter_timeout_seconds: float
    binding_timeout_seconds: float


def unschedulable(text: str) -> Status:
    return Status(Code.UnschedulableAndUnresolvable, (text,), NAME)


def failed(text: str) -> Status:
    return Status(Code.Error, (text,), NAME)


class Filtering:
    """The PreFilter and Filter of DynamicResources."""

    def __init__(self, handle: Handle, manager: DeviceManager, settings: ClaimOptions) -> None:
        self._handle = handle
        self._manager = manager
        self._settings = settings

    def class_map(self) -> ClassMap:
        """Return the extended resources that classes provide; empty while the gate is off."""
        return self._manager.class_map() if self._settings.extended_resources else _NO_CLASSES

    # PreFilter

    def prepare(self, state: ClaimsState, pod: PodInfo) -> Status | None:
        """Fill the state; return Skip when the pod has no claims."""
        claims = self._manager.claims
        try:
            found = claims_of(pod.pod, claims.get)
        except ClaimError as error:
            return unschedulable(str(error))
        if classes := self.class_map():
            state.asked = extended.asked_by(pod.pod, classes)
            if state.asked:
                mine = extended.existing_claim(pod.pod, claims.list(pod.namespace))
                if mine is None:
                    uid = str(uuid.UUID(int=self._handle.rng.getrandbits(128), version=4))
                    mine = extended.new_claim(pod.pod, uid)
                found.append(mine)
                state.has_extended = True
                state.extended_uid = mine.metadata.uid
        if not found:
            return Status(Code.Skip)
        for index, claim in enumerate(found):
            is_extended = state.has_extended and index == len(found) - 1
            allocation = None
            if not is_allocated(claim) and not is_extended:
                allocation = claims.shareable(claim.metadata.uid, pod.pod)
            if allocation is not None:
                state.shared.add(index)
                claim = found[index] = _with(claim, allocation)
            problem = self._read(state, pod, claim, is_extended=is_extended)
            if problem is not None:
                return problem
        state.claims = found
        if state.to_allocate():
            state.allocator = Allocator(
                self._settings.features,
                claims.allocated(),
                self._manager.device_class,
                self._manager.slices.index(),
                lambda: str(uuid.UUID(int=self._handle.rng.getrandbits(128), version=4)),
            )
        return None

    def _read(self, state: ClaimsState, pod: PodInfo, claim: Claim, *, is_extended: bool) -> Status | None:
        state.available_on.append(None)
        if is_allocated(claim):
            if not can_be_reserved(claim) and not is_reserved_for(claim, pod.uid):
                return unschedulable("resourceclaim in use")
            if claim.status.allocation.HasField("nodeSelector"):
                selector = NodeSelector.read(claim.status.allocation.nodeSelector)
                if selector.errors:
                    return failed(", ".join(selector.errors))
                state.available_on[-1] = selector
            return None
        if self._manager.claims.is_in_flight(claim.metadata.uid):
            return unschedulable(f"resource claim {_key(claim)} is in the process of being allocated")
        return None if is_extended else self._check_classes(claim)

    def _check_classes(self, claim: Claim) -> Status | None:
        for request in claim.spec.devices.requests:
            where = f"resource claim {_key(claim)}, request {request.name}"
            if request.HasField("exactly"):
                wanted = [(request.name, request.exactly.deviceClassName)]
            elif request.firstAvailable:
                if not self._settings.features.prioritized_list:
                    text = "has subrequests, but the DRAPrioritizedList feature is disabled"
                    return unschedulable(f"{where}: {text}")
                wanted = [(f"{request.name}/{s.name}", s.deviceClassName) for s in request.firstAvailable]
            else:
                return unschedulable(f"{where}: unknown request type")
            for name, class_name in wanted:
                if not class_name:
                    return failed(f"request {name}: unsupported request type")
                if self._manager.device_class(class_name) is None:
                    return unschedulable(f"request {name}: device class {class_name} does not exist")
        return None

    # Filter

    def check(self, state: ClaimsState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return the status of a node; the same for the whole attempt, whatever pods come and go."""
        if node.name not in state.verdicts:
            state.verdicts[node.name] = self._check(state, pod, node)
        return state.verdicts[node.name]

    def _check(self, state: ClaimsState, pod: PodInfo, node: NodeInfo) -> Status | None:
        assert node.node is not None
        mine = None
        if state.extended is not None:
            if state.extended.spec.devices.requests:
                # Of an earlier attempt: PostFilter deletes it, then the pod is tried again.
                return unschedulable("cannot schedule extended resource claim")
            mine = extended.claim_for_node(state.extended, state.asked, node.node.status.allocatable)
            if mine is None and state.only_extended:
                return None  # the device plugin has it all
        unavailable = [
            i for i, claim in enumerate(state.claims) if not self._is_usable(state, i, claim, node)
        ]
        solution = None
        if state.allocator is not None:
            claims = [
                mine if index == state.extended_index else state.claims[index]
                for index in state.to_allocate()
                if index != state.extended_index or mine is not None
            ]
            found = self._allocate(state, Node.of(node.node), [c for c in claims if c])
            if isinstance(found, Status):
                return found
            solution = found
        if unavailable:
            state.unavailable.update(unavailable)
            return unschedulable(_NOT_AVAILABLE)
        if state.allocator is not None:
            state.on_nodes[node.name] = OnNode(solution, mine)
        return None

    def _is_usable(self, state: ClaimsState, index: int, claim: Claim, node: NodeInfo) -> bool:
        """Return whether the claim is not allocated yet, or is so for this node and can get ready."""
        selector = state.available_on[index]
        if selector is not None and not selector.matches(node.labels, node.name):
            return False
        if not is_allocated(claim) or not self._settings.features.binding_conditions:
            return True
        try:
            ready = readiness.is_ready(claim)
        except ClaimError:
            return False
        timeout = self._settings.binding_timeout_seconds
        return ready or not readiness.is_late(claim, self._handle.clock.now(), timeout)

    def _allocate(self, state: ClaimsState, node: Node, claims: list[Claim]) -> Solution | Status:
        """Return the devices, or why no device was found; all nodes without devices share one status."""
        assert state.allocator is not None
        alike = not state.has_extended and not state.allocator.reaches(node)
        if alike and state.barren is not None:
            return state.barren
        found = self._search(state.allocator, node, claims)
        if alike and isinstance(found, Status):
            state.barren = found
        return found

    def _search(self, allocator: Allocator, node: Node, claims: list[Claim]) -> Solution | Status:
        clock, limit = self._handle.clock, self._settings.filter_timeout_seconds
        deadline = clock.monotonic() + limit

        def expired() -> bool:
            return limit > 0 and clock.monotonic() >= deadline

        try:
            found = allocator.solve(node, claims, expired)
        except DeadlineError:
            if self._handle.version < _TIMEOUT_IS_ERROR:
                return unschedulable(_TIMED_OUT)
            return failed(f"node {node.name}: {_TIMED_OUT}")
        except NodeAllocationError as error:
            return unschedulable(str(error))
        except AllocationError as error:
            return failed(str(error))
        return unschedulable(_CANNOT_ALLOCATE) if found is None else found


_NO_CLASSES = ClassMap(())


def _with(claim: Claim, allocation: devices.AllocationResult) -> Claim:
    copy = Claim()
    copy.CopyFrom(claim)
    copy.status.allocation.CopyFrom(allocation)
    return copy


def _key(claim: Claim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
