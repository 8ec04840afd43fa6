"""Search for devices: one after the other, with backtracking, until all claims have all they request.

The first solution is taken, so the order decides which devices a pod gets: claims and requests as they are
written, alternatives in order, pools and slices by name, devices as the slice lists them. Source:
structured/internal (allocator) 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from nominee.machinery.api.pb import devices
from nominee.machinery.cel.errors import CompileError, EvaluationError
from nominee.scheduler.plugins.dynamic_resources.device_allocation import capacity, taints
from nominee.scheduler.plugins.dynamic_resources.device_allocation.constraints import (
    Constraint,
    constraints_of,
)
from nominee.scheduler.plugins.dynamic_resources.device_allocation.counters import Counters, CounterSets
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    ALL,
    EXACT_COUNT,
    RESULTS_MAX,
    AllocatedState,
    AllocationError,
    Amounts,
    DeadlineError,
    DeviceId,
    DeviceView,
    Features,
    Node,
    NodeAllocationError,
    PoolId,
    RequestView,
)
from nominee.scheduler.plugins.dynamic_resources.device_allocation.pools import Pool, SliceIndex
from nominee.scheduler.plugins.dynamic_resources.device_allocation.results import Chosen, allocation_of

Claim = devices.ResourceClaim
_LOOKS_PER_GLANCE = 32  # at the clock


def _never() -> bool:
    return False


class Solution(Protocol):
    """The result of a search on one node."""

    def results(self) -> list[devices.AllocationResult]:
        """Return the allocations to write, one per claim; built again with each call."""
        ...


class Allocator:
    """Allocates for one pod on any number of nodes; its inputs do not change meanwhile.

    `class_of` finds a DeviceClass; `new_id` returns a random UUID, for shares of a device.
    """

    def __init__(
        self,
        features: Features,
        state: AllocatedState,
        class_of: Callable[[str], devices.DeviceClass | None],
        slices: SliceIndex,
        new_id: Callable[[], str],
    ) -> None:
        self.features = features
        self.state = state
        self.class_of = class_of
        self.new_id = new_id
        self.attempts = 0  # devices and requests looked at: how hard the search was
        self.available: dict[PoolId, CounterSets] = {}
        self.selected: dict[tuple[DeviceId, int, str], bool] = {}
        self.read: dict[int, tuple[Claim, list[list[_Asked]]]] = {}  # by the claim's identity
        self._slices = slices

    def reaches(self, node: Node) -> bool:
        """Return whether the node can use any pool at all."""
        return bool(self._slices.pools(node, self.features))

    def allocate(
        self, node: Node, claims: Sequence[Claim], expired: Callable[[], bool] = _never
    ) -> list[devices.AllocationResult] | None:
        """Return an allocation per claim, or None when the node lacks the devices; raises as `solve`."""
        solution = self.solve(node, claims, expired)
        return None if solution is None else solution.results()

    def solve(
        self, node: Node, claims: Sequence[Claim], expired: Callable[[], bool] = _never
    ) -> Solution | None:
        """Return the devices that were found; None when the node lacks them.

        Raises:
            AllocationError: the claims cannot be allocated on any node.
            NodeAllocationError: the devices of this node are invalid.
            DeadlineError: `expired` returned true.
        """
        pools = self._slices.pools(node, self.features)
        search = _Search(self, node, claims, pools, expired)
        try:
            done = search.run()
        except _TooManyResults:
            done = False
        except RecursionError:
            raise AllocationError(f"{len(claims)} claims are too many to be allocated together") from None
        if done:
            return search
        if any(pool.invalid for pool in pools):
            raise NodeAllocationError("invalid resource pools were encountered")
        return None


class _TooManyResults(Exception):
    """A claim's allocation cannot hold so many devices: alternatives that ask for fewer may work."""


@dataclass(slots=True)
class _Asked:
    """A request, or one of its alternatives, with its candidate devices."""

    request: RequestView
    device_class: devices.DeviceClass
    count: int = 0
    all_devices: list[tuple[Pool, DeviceView]] = field(default_factory=list)


class _Search:
    """One pod on one node."""

    def __init__(
        self,
        allocator: Allocator,
        node: Node,
        claims: Sequence[Claim],
        pools: list[Pool],
        expired: Callable[[], bool],
    ) -> None:
        self._allocator = allocator
        self._features = allocator.features
        self._state = allocator.state
        self._node = node
        self._claims = claims
        self._pools = pools
        self._expired = expired
        self._asked: list[list[list[_Asked]]] = []  # by claim, request, alternative
        self._constraints: list[list[Constraint]] = []
        self._chosen: list[list[Chosen]] = [[] for _ in claims]
        self._picked: dict[tuple[int, int], int] = {}
        self._in_use: dict[DeviceId, set[int]] = {}  # claims that have the device, of those being allocated
        self._shared: dict[DeviceId, Amounts] = {}
        self._shares: dict[DeviceId, int] = {}
        self._counters = Counters(self._state, allocator.available)

    def run(self) -> bool:
        for index, claim in enumerate(self._claims):
            self._read(index, claim)
        return self._next_request(0, 0)

    def results(self) -> list[devices.AllocationResult]:
        found = []
        for index, claim in enumerate(self._claims):
            picked: dict[str, RequestView] = {}
            classes: dict[str, devices.DeviceClass] = {}
            for number, alternatives in enumerate(self._asked[index]):
                asked = alternatives[self._picked.get((index, number), 0)]
                picked[asked.request.base_name] = asked.request
                classes[asked.request.class_name] = asked.device_class
            found.append(
                allocation_of(claim, self._chosen[index], picked, classes, self._node, self._features)
            )
        return found

    # Reading the claims

    def _read(self, index: int, claim: Claim) -> None:
        known = self._allocator.read.get(id(claim))
        if known is None:
            asked = self._validate(index, claim)
            if all(one.request.mode != ALL for requests in asked for one in requests):
                self._allocator.read[id(claim)] = claim, asked
        else:
            asked = known[1]
        self._asked.append(asked)
        if not claim.spec.devices.constraints:
            self._constraints.append([])
            return
        try:
            self._constraints.append(constraints_of(claim, self._features.list_attributes))
        except ValueError as error:
            raise AllocationError(f"claim {_key(claim)}, {error}") from None

    def _validate(self, index: int, claim: Claim) -> list[list[_Asked]]:
        where = f"claim {_key(claim)}"
        read: list[list[_Asked]] = []
        fewest_in_all = 0
        for asked in claim.spec.devices.requests:
            requests = self._requests(where, asked)
            read.append([])
            for request in requests:
                read[-1].append(self._validated(index, request))
            fewest_in_all += min(one.count for one in read[-1])
        if fewest_in_all > RESULTS_MAX:
            text = f"number of requested devices {fewest_in_all} exceeds the claim limit of {RESULTS_MAX}"
            raise AllocationError(f"{where}: {text}")
        return read

    def _requests(self, where: str, asked: devices.DeviceRequest) -> list[RequestView]:
        if not asked.firstAvailable:
            requests = [RequestView.exact(asked)]
        elif not self._features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise AllocationError(f"{where}, request {asked.name}: {text}")
        else:
            requests = [RequestView.alternative(asked, one) for one in asked.firstAvailable]
        if not self._features.consumable_capacity:
            for request in requests:
                if request.capacity is not None:
                    what = "subrequest" if request.parent else "request"
                    text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                    raise AllocationError(f"{where}, {what} {request.name}: {text}")
        return requests

    def _validated(self, index: int, request: RequestView) -> _Asked:
        where = f"claim {_key(self._claims[index])}, request {request.name}"
        for position, selector in enumerate(request.selectors):
            if not selector.HasField("cel"):
                text = "CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{where}, selector #{position}: {text}")
        if request.has_admin_access and not self._features.admin_access:
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        if not request.class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._allocator.class_of(request.class_name)
        if device_class is None:
            text = f'deviceclass.resource.k8s.io "{request.class_name}" not found'
            raise AllocationError(f"{where}: could not retrieve device class {request.class_name}: {text}")
        asked = _Asked(request, device_class, request.count)
        if request.mode == ALL:
            self._find_all(where, index, asked)
        elif request.mode != EXACT_COUNT:
            raise AllocationError(f"{where}: unsupported count mode {request.mode}")
        return asked

    def _find_all(self, where: str, index: int, asked: _Asked) -> None:
        """Return all devices that match: of no pool that is incomplete."""
        for pool in self._pools:
            if pool.is_incomplete or pool.invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f"asks for all devices, but resource pool {pool.id} is currently {state}"
                raise AllocationError(f"{where}: {text}")
            for device in pool.devices():
                if self._is_selectable(index, asked, device) and self._has_capacity(asked.request, device):
                    asked.all_devices.append((pool, device))
        asked.count = len(asked.all_devices)

    # The search

    def _next_request(self, index: int, number: int) -> bool:
        """Allocate this request and all that come after it."""
        self._count_attempt()
        if index >= len(self._claims):
            return True
        if number >= len(self._asked[index]):
            try:
                return self._next_request(index + 1, 0)
            except _TooManyResults:
                return False  # with other devices here, a later claim may do with fewer
        alternatives = self._asked[index][number]
        if not alternatives[0].request.parent:
            return self._next_device(index, number, 0, 0)
        all_too_many = True
        for which in range(len(alternatives)):
            try:
                done = self._next_device(index, number, which, 0)
            except _TooManyResults:
                continue
            all_too_many = False
            if done:
                self._picked[index, number] = which
                return True
        if all_too_many:
            raise _TooManyResults
        return False

    def _next_device(
        self, index: int, number: int, which: int, position: int, begin: tuple[int, int] = (0, 0)
    ) -> bool:
        """Allocate one device of the request, then the rest.

        `begin`: the pool, and the place in it, behind the request's last device. Its devices are taken in
        order, since another order of the same is no other solution; so one that is shared is taken once.
        """
        self._count_attempt()
        asked = self._asked[index][number][which]
        request = asked.request
        takes_all = request.mode == ALL
        if takes_all and not asked.all_devices:
            return False
        if position >= asked.count:
            return self._next_request(index, number + 1)
        if len(self._chosen[index]) + asked.count - position > RESULTS_MAX:
            raise _TooManyResults
        if takes_all:
            pool, device = asked.all_devices[position]
            return self._try(index, number, which, position, pool, device, begin, must=True)
        for at in range(begin[0], len(self._pools)):
            pool = self._pools[at]
            if pool.is_incomplete or pool.invalid:
                continue
            first = begin[1] if at == begin[0] else 0
            for place, device in enumerate(islice(pool.devices(), first, None), first + 1):
                if self._is_taken(index, request, device):
                    continue
                if not self._is_selectable(index, asked, device):
                    continue
                if not self._has_capacity(request, device):
                    continue
                if self._try(index, number, which, position, pool, device, (at, place), must=False):
                    return True
        return False

    def _try(
        self,
        index: int,
        number: int,
        which: int,
        position: int,
        pool: Pool,
        device: DeviceView,
        after: tuple[int, int],
        *,
        must: bool,
    ) -> bool:
        undo = self._take(index, self._asked[index][number][which].request, pool, device, must)
        if undo is None:
            return False
        try:
            if self._next_device(index, number, which, position + 1, after):
                return True
        except BaseException:
            undo()
            raise
        undo()
        return False

    def _count_attempt(self) -> None:
        self._allocator.attempts += 1
        if not self._allocator.attempts % _LOOKS_PER_GLANCE and self._expired():
            raise DeadlineError("filter operation aborted: context deadline exceeded")

    # One device

    def _is_taken(self, index: int, request: RequestView, device: DeviceView) -> bool:
        if request.admin_access:
            return index in self._in_use.get(device.id, ())
        return device.id in self._state.devices or bool(self._in_use.get(device.id))

    def _has_capacity(self, request: RequestView, device: DeviceView) -> bool:
        if not self._features.consumable_capacity or (not device.amounts and not request.capacity):
            return True
        taken = self._state.capacity.get(device.id, {})
        return capacity.fits(request.capacity, device, taken, self._shared.get(device.id, {}))

    def _take(
        self, index: int, request: RequestView, pool: Pool, device: DeviceView, must: bool
    ) -> Callable[[], None] | None:
        """Take the device if everything allows it; return how to give it back, or None."""
        shareable = self._features.consumable_capacity and device.is_shareable
        if self._is_taken(index, request, device) and not (shareable and request.admin_access):
            return None
        tainted = device.is_tainted and self._features.taints
        if tainted and taints.prevents(device.message, request.tolerations):
            return None
        if not self._has_capacity(request, device):
            return None
        counts = bool(device.consumes)
        if counts and not self._features.partitionable:
            return None
        if counts and shareable and self._is_shared(device.id):
            counts = False  # the first user of the device has paid
        if counts and not self._counters.take(pool, device):
            return None
        if not self._add_to_constraints(index, request, device):
            if counts:
                self._counters.give_back(pool, device)
            if must:
                where = f"claim {_key(self._claims[index])}, request {request.name}"
                text = f"cannot add device {device.id} because a claim constraint would not be satisfied"
                raise AllocationError(f"{where}: {text}")
            return None
        share_id, amounts = "", None
        if shareable:
            share_id, amounts = self._allocator.new_id(), capacity.consumed(request.capacity, device)
            capacity.add(self._shared.setdefault(device.id, {}), amounts)
            self._shares[device.id] = self._shares.get(device.id, 0) + 1
        else:
            self._in_use.setdefault(device.id, set()).add(index)
        self._chosen[index].append(Chosen(request, device, share_id, amounts))

        def undo() -> None:
            self._chosen[index].pop()
            if amounts is not None:
                capacity.subtract(self._shared[device.id], amounts)
                self._shares[device.id] -= 1
            else:
                self._in_use[device.id].discard(index)
            for constraint in self._constraints[index]:
                constraint.remove(request, device)
            if counts:
                self._counters.give_back(pool, device)

        return undo

    def _is_shared(self, device: DeviceId) -> bool:
        return device in self._state.capacity or bool(self._shares.get(device))

    def _add_to_constraints(self, index: int, request: RequestView, device: DeviceView) -> bool:
        added: list[Constraint] = []
        for constraint in self._constraints[index]:
            if not constraint.add(request, device):
                for one in added:
                    one.remove(request, device)
                return False
            added.append(constraint)
        return True

    # Selectors

    def _is_selectable(self, index: int, asked: _Asked, device: DeviceView) -> bool:
        """Return whether class and request select it and the node reaches it; CEL ignores the node."""
        if device.needs_conditions and not self._features.binding_conditions:
            return False
        cached = self._allocator.selected
        full_key = device.id, index, asked.request.full_name
        matches = cached.get(full_key)
        if matches is None:
            name = f"class {asked.device_class.metadata.name}"
            matches = self._selectors_match(name, asked.device_class.spec.selectors, device)
            if matches:
                name = f"claim {_key(self._claims[index])}"
                matches = self._selectors_match(name, asked.request.selectors, device)
            cached[full_key] = matches
        return matches and device.reachable(self._node.name, self._node.labels)

    def _selectors_match(
        self, whose: str, selectors: Sequence[devices.DeviceSelector], device: DeviceView
    ) -> bool:
        features = self._features.selectors
        for position, selector in enumerate(selectors):
            try:
                if not device.matches(selector.cel.expression, features):
                    return False
            except CompileError as error:
                text = f"{whose}: selector #{position}: CEL compile error: {error}"
                raise AllocationError(text) from None
            except EvaluationError as error:
                text = f"{whose}: selector #{position}: CEL runtime error: {error}"
                raise AllocationError(text) from None
        return True


def _key(claim: Claim) -> str:
    """Return the object as upstream's log prints it: `ns/name`."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return f"{namespace}/{name}" if namespace else name
