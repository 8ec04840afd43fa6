"""PUT and PATCH of pods/resize: nothing but resources (and resize policies) of containers changes."""

from __future__ import annotations

from collections.abc import MutableSequence

from nominee.apiserver.kinds.core.pods import resize_validation as pod_resize
from nominee.apiserver.kinds.core.pods.strategy import PodStrategy, bump_generation
from nominee.apiserver.kinds.strategy import Environment, keep, keep_metadata
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version

RESIZE_SINCE = Version(1, 32)
"""Before it there was no such subresource: the spec itself was patched."""


class PodResizeStrategy(PodStrategy):
    """See the module."""

    def prepare_for_update(self, new: core.Pod, old: core.Pod, env: Environment) -> None:
        _drop_other_changes(new, old, env)
        self.drop_disabled(new, old, env)
        bump_generation(new, old)

    def validate_update(self, new: core.Pod, old: core.Pod, env: Environment) -> list[Cause]:
        return pod_resize.update(new, old, env.gates)


def _drop_other_changes(new: core.Pod, old: core.Pod, env: Environment) -> None:
    """Everything but the resources is as it was; renamed or added containers are left for the validation."""
    if len(new.spec.containers) != len(old.spec.containers) or (
        len(new.spec.initContainers) != len(old.spec.initContainers)
    ):
        return
    spec = copy_of(old.spec)
    _take_resources(spec.containers, new.spec.containers)
    _take_resources(spec.initContainers, new.spec.initContainers)
    if env.gates.enabled("InPlacePodLevelResourcesVerticalScaling"):
        spec.ClearField("resources")
        if new.spec.HasField("resources"):
            spec.resources.CopyFrom(new.spec.resources)
    new.spec.CopyFrom(spec)
    keep(new, old, "status")
    keep_metadata(new, old)


def _take_resources(into: MutableSequence[core.Container], new: MutableSequence[core.Container]) -> None:
    if any(one.name != other.name for one, other in zip(into, new, strict=True)):
        # A reordering: show the validation what was asked for.
        del into[:]
        into.extend(new)
        return
    for target, source in zip(into, new, strict=True):
        target.resources.CopyFrom(source.resources)
        keep(target, source, "resizePolicy")
