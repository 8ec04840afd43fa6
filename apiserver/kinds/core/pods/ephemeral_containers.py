"""PUT and PATCH of pods/ephemeralcontainers: containers are added to a running pod (kubectl debug)."""

from __future__ import annotations

from nominee.apiserver.kinds.core.pods import ephemeral_containers_validation as ephemeral_containers
from nominee.apiserver.kinds.core.pods.strategy import PodStrategy, bump_generation
from nominee.apiserver.kinds.strategy import Environment, keep, keep_metadata
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core


class PodEphemeralContainersStrategy(PodStrategy):
    """Nothing else of the pod changes."""

    def prepare_for_update(self, new: core.Pod, old: core.Pod, env: Environment) -> None:
        spec = copy_of(old.spec)
        keep(spec, new.spec, "ephemeralContainers")
        new.spec.CopyFrom(spec)
        keep(new, old, "status")
        keep_metadata(new, old)
        self.drop_disabled(new, old, env)
        bump_generation(new, old)

    def validate_update(self, new: core.Pod, old: core.Pod, env: Environment) -> list[Cause]:
        return ephemeral_containers.update(new, old, env.gates)
