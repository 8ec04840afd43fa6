"""How pods are created, changed and deleted, and their status (kube-apiserver 1.36, registry/core/pod)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nominee.apiserver.kinds.core.pods import app_armor, disabled_fields
from nominee.apiserver.kinds.core.pods import status_validation as pod_status
from nominee.apiserver.kinds.core.pods import validation as validation
from nominee.apiserver.kinds.strategy import Environment, Strategy, keep
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.pods import options as pod_options
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, meta
from nominee.machinery.resources import qos
from nominee.machinery.runtime.memo import CachedRule
from nominee.machinery.scheduling.label_keys import merge_label_keys

GATED_REASON = "SchedulingGated"
_GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def _qos_class(spec: core.PodSpec, *, pod_level: bool) -> str:
    return qos.qos_class(core.Pod(spec=spec), pod_level=pod_level)


_QOS = {
    pod_level: CachedRule[core.PodSpec, str](partial(_qos_class, pod_level=pod_level))
    for pod_level in (False, True)
}


class PodStrategy(Strategy[core.Pod]):
    """The main resource."""

    graceful = True

    def warnings(self, new: core.Pod, old: core.Pod | None) -> Sequence[str]:
        """Return warnings about a new pod; updates are frequent and seldom written by people."""
        return pod_warnings.of_pod(new) if old is None else ()

    def prepare_for_create(self, new: core.Pod, env: Environment) -> None:
        new.metadata.generation = 1
        new.ClearField("status")
        new.status.phase = "Pending"
        self.drop_disabled(new, None, env)
        new.status.qosClass = _QOS[env.gates.enabled("PodLevelResources")](new.spec)
        if new.spec.schedulingGates:
            condition = new.status.conditions.add(
                type="PodScheduled", status="False", reason=GATED_REASON, message=_GATED_MESSAGE
            )
            condition.lastTransitionTime.CopyFrom(env.now)
        merge_label_keys(new, env.gates)
        app_armor.apply(new)

    def early_warnings(self, new: core.Pod) -> Sequence[str]:
        return app_armor.warnings(new) if new.metadata.annotations else ()

    def validate(self, new: core.Pod, env: Environment) -> list[Cause]:
        return validation.create(new, pod_options.of(env.gates))

    def prepare_for_update(self, new: core.Pod, old: core.Pod, env: Environment) -> None:
        keep(new, old, "status")
        self.drop_disabled(new, old, env)
        bump_generation(new, old)

    def validate_update(self, new: core.Pod, old: core.Pod, env: Environment) -> list[Cause]:
        return validation.update(new, old, pod_options.of(env.gates, old.spec))

    def drop_disabled(self, new: core.Pod, old: core.Pod | None, env: Environment) -> None:
        disabled_fields.drop(new, old, env.gates)

    def check_graceful_delete(self, obj: core.Pod, options: meta.DeleteOptions) -> bool:
        if options.HasField("gracePeriodSeconds"):
            grace = options.gracePeriodSeconds
        else:
            grace = obj.spec.terminationGracePeriodSeconds
        if not obj.spec.nodeName or obj.status.phase in ("Failed", "Succeeded"):
            # No kubelet has to stop anything.
            grace = 0
        options.gracePeriodSeconds = grace if grace >= 0 else 1
        return True


class PodStatusStrategy(PodStrategy):
    """PUT of `status`; the eviction writes its condition through it, too."""

    reset_fields = ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")

    def prepare_for_update(self, new: core.Pod, old: core.Pod, env: Environment) -> None:
        keep(new, old, "spec")
        new.metadata.ClearField("deletionTimestamp")
        keep(new.metadata, old.metadata, "ownerReferences")
        if not new.status.qosClass:
            new.status.qosClass = old.status.qosClass
        _keep_observed_generations(new.status, old.status)
        self.drop_disabled(new, old, env)

    def validate_update(self, new: core.Pod, old: core.Pod, env: Environment) -> list[Cause]:
        return pod_status.update(
            new, old, env.gates, nominates_deferred_resizes=env.nominates_deferred_resizes
        )


def bump_generation(new: core.Pod, old: core.Pod) -> None:
    if not same(new.spec, old.spec):
        new.metadata.generation = old.metadata.generation + 1


def _keep_observed_generations(new: core.PodStatus, old: core.PodStatus) -> None:
    """A writer that does not know observedGeneration must not clear it. One list a type: types repeat."""
    if not new.observedGeneration and old.observedGeneration:
        new.observedGeneration = old.observedGeneration
    before: dict[str, list[int]] = {}
    for condition in old.conditions:
        before.setdefault(condition.type, []).append(condition.observedGeneration)
    for condition in new.conditions:
        generations = before.get(condition.type)
        was = generations.pop(0) if generations else 0
        if was and not condition.observedGeneration:
            condition.observedGeneration = was
