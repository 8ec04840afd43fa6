"""PUT and PATCH of pods/ephemeralcontainers: containers are added to a running pod (kubectl debug)."""

from __future__ import annotations

from nominee.apiserver.kinds.core.pods.strategy import PodStrategy, bump_generation
from nominee.apiserver.kinds.core.pods.validation import pod
from nominee.apiserver.kinds.strategy import Environment, keep, keep_metadata
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import annotations as pod_annotations
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods.annotations import MIRROR_ANNOTATION
from nominee.apiserver.validation.spec_diff import diff
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates

# Valid changes of pods/ephemeralcontainers (kube-apiserver 1.36, ValidatePodEphemeralContainersUpdate).

_PATH = "spec.ephemeralContainers"


def update(new: core.Pod, old: core.Pod, gates: Gates) -> list[Cause]:
    """Check that containers are only added."""
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    errors += pod(new, old, pod_options.of(gates, old.spec))
    errors += pod_annotations.update(new, old)
    if MIRROR_ANNOTATION in old.metadata.annotations:
        return [field.forbidden("", "static pods do not support ephemeral containers")]
    found = {each.ephemeralContainerCommon.name: each for each in new.spec.ephemeralContainers}
    for before in old.spec.ephemeralContainers:
        name = before.ephemeralContainerCommon.name
        if name not in found:
            problem = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(field.forbidden(_PATH, problem))
        elif found[name] != before:
            problem = (
                f'existing ephemeral containers "{name}" may not be changed\n{diff(before, found[name])}'
            )
            errors.append(field.forbidden(_PATH, problem))
    return errors


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
        return update(new, old, env.gates)
