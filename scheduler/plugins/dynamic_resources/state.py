"""Hold the state of a pod's claims in one scheduling attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nominee.machinery.api.pb import devices
from nominee.machinery.scheduling.node_affinity import NodeSelector
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.plugins.dynamic_resources.device_allocation.allocator import Allocator, Solution
from nominee.scheduler.plugins.dynamic_resources.extended import IN_MEMORY_NAME, Asked
from nominee.scheduler.plugins.dynamic_resources.pod_claims import Claim, is_allocated


@dataclass(frozen=True, slots=True)
class OnNode:
    """The result of Filter for a node.

    `extended` is the claim for extended resources as this node needs it.
    """

    solution: Solution | None = None
    extended: Claim | None = None

    def allocations(self) -> Sequence[devices.AllocationResult]:
        """Return the allocations in the order of the claims that had none; built again with each call.

        Raises:
            AllocationError: an allocation cannot be expressed.
        """
        return () if self.solution is None else self.solution.results()


@dataclass(slots=True)
class ClaimsState:
    """The claims of a cycle, shared by clones of its state: no pod on any node changes them."""

    claims: list[Claim] = field(default_factory=list)  # the one for extended resources comes last
    has_extended: bool = False
    asked: Sequence[Asked] = ()
    available_on: list[NodeSelector | None] = field(default_factory=list)  # of allocated claims
    allocator: Allocator | None = None
    on_nodes: dict[str, OnNode] = field(default_factory=dict)
    verdicts: dict[str, Status | None] = field(default_factory=dict)
    barren: Status | None = None  # the verdict on nodes that reach no devices
    shared: set[int] = field(default_factory=set)  # decided by another pod of the gang, not written yet
    unavailable: set[int] = field(default_factory=set)
    decided: dict[int, devices.AllocationResult] = field(default_factory=dict)  # by Reserve
    unsettled: set[int] = field(default_factory=set)  # decided, and it is unknown whether it is written
    chosen: OnNode | None = None
    extended_uid: str = ""  # under which the claim for extended resources is in flight

    @property
    def extended(self) -> Claim | None:
        return self.claims[-1] if self.has_extended else None

    @property
    def extended_index(self) -> int:
        """Return the index of the claim for extended resources, or -1."""
        return len(self.claims) - 1 if self.has_extended else -1

    @property
    def only_extended(self) -> bool:
        """Return whether there is no claim of the user's."""
        return len(self.claims) == int(self.has_extended)

    def to_allocate(self) -> list[int]:
        return [index for index, claim in enumerate(self.claims) if not is_allocated(claim)]

    def uid_of(self, index: int) -> str:
        """Return the uid under which the claim is in flight."""
        return self.extended_uid if index == self.extended_index else self.claims[index].metadata.uid


def is_in_memory(claim: Claim) -> bool:
    return claim.metadata.name == IN_MEMORY_NAME
