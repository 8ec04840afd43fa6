"""Read the scheduler's features from the gates and the emulated version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.machinery.features.gates import Gates, Version
from nominee.scheduler.framework.pod_requests import ResourceOptions
from nominee.scheduler.framework.resize_preemption import ALPHA, ResizePreemption
from nominee.scheduler.framework.types import DEFAULT_OPTIONS

KEEPS_NOMINATIONS: Final = Version(1, 34)  # the one release in which a failure did not clear a nomination
STOPS_PRE_BINDING_SINCE: Final = Version(1, 36)
RESIZE_PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
OBSERVED_GENERATION_SINCE: Final = Version(1, 34)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFeatures:
    """Each field is on or off for the life of the process."""

    nominates_before_binding: bool = True
    """A pod that is about to wait has its node written to nominatedNodeName (KEP-5278)."""
    keeps_nominations: bool = False
    """A failure moves a nomination but never clears it."""
    stops_pre_binding: bool = True
    """A preemptor may stop a pod in PreBind instead of deleting it."""
    observed_generation: bool = True
    """Conditions have observedGeneration."""
    queueing_hints: bool = True
    pops_from_backoff: bool = True
    pod_groups: bool = False
    """Pods of a PodGroup are tried together (KEP-4671)."""
    gangs: bool = False
    placements: bool = False
    """A pod group may have to be in one topology domain (KEP-5732)."""
    resources: ResourceOptions = DEFAULT_OPTIONS
    resize_preemption: ResizePreemption | None = None
    """A deferred resize may preempt (KEP-5836)."""

    @classmethod
    def of(cls, gates: Gates, version: Version, resizes: ResizePreemption = ALPHA) -> SchedulerFeatures:
        """Return the features of a scheduler with these gates at this emulated version."""
        nominates = gates.enabled("NominatedNodeNameForExpectation")
        return cls(
            nominates_before_binding=nominates,
            keeps_nominations=nominates and version == KEEPS_NOMINATIONS,
            stops_pre_binding=version >= STOPS_PRE_BINDING_SINCE,
            observed_generation=version >= OBSERVED_GENERATION_SINCE,
            queueing_hints=gates.enabled("SchedulerQueueingHints"),
            pops_from_backoff=gates.enabled("SchedulerPopFromBackoffQ"),
            pod_groups=gates.enabled("GenericWorkload"),
            gangs=gates.enabled("GangScheduling"),
            placements=gates.enabled("TopologyAwareWorkloadScheduling"),
            resources=ResourceOptions(
                in_place_resize=gates.enabled("InPlacePodVerticalScaling"),
                pod_level=gates.enabled("PodLevelResources"),
                pod_level_resize=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
                resize_preemption=gates.enabled(RESIZE_PREEMPTION),
            ),
            resize_preemption=resizes if gates.enabled(RESIZE_PREEMPTION) else None,
        )
