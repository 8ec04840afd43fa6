"""The strategies of the kinds that need few rules (kube-apiserver 1.36, pkg/registry/*/strategy.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.registry.strategy import Environment, StatusStrategy, Strategy, keep
from apiserver.validation import (
    budgets,
    claims,
    config,
    deployments,
    nodes,
    pod_options,
    pod_warnings,
    priority_classes,
    replica_sets,
    storage,
)
from apiserver.validation import metadata as metadata_rules
from machinery.api.errors import Cause
from machinery.features.gates import Version
from machinery.scheduling.priority import SYSTEM_CLASSES

NODE_POD_PREEMPTION_POLICY_SINCE = Version(1, 37)


def _drop_node_fields(new: Any, old: Any | None, env: Environment) -> None:
    known = env.version >= NODE_POD_PREEMPTION_POLICY_SINCE and env.gates.enabled(
        "InPlacePodVerticalScalingSchedulerPreemption"
    )
    used = old is not None and old.spec.HasField("podPreemptionPolicy")
    if not known and not used:
        new.spec.ClearField("podPreemptionPolicy")
    # Dynamic kubelet configuration is gone since 1.24; only the field is left.
    if old is None or not old.spec.HasField("configSource"):
        new.spec.ClearField("configSource")


class NodeStrategy(Strategy):
    """Nodes may come with a status: the kubelet registers itself so."""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        self.drop_disabled(new, None, env)

    def drop_disabled(self, new: Any, old: Any | None, env: Environment) -> None:
        _drop_node_fields(new, old, env)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + nodes.node(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        # What both find is said twice.
        return self.validate(new, env) + nodes.update(new, old)


class NodeStatusStrategy(StatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return nodes.update(new, old)


class ConfigMapStrategy(Strategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + config.config_map(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return (
            metadata_rules.object_meta_update(new.metadata, old.metadata)
            + config.config_map_update(new, old)
            + self.validate_metadata(new)
            + config.config_map(new)
        )


_DATA_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def _same_data_source(spec: Any) -> None:
    """The old and the new name of a claim's source say the same; other kinds need the new one."""
    if spec.HasField("dataSource"):
        source = spec.dataSource
        if (source.apiGroup, source.kind) not in _DATA_SOURCES:
            spec.ClearField("dataSource")
            return
        if not spec.HasField("dataSourceRef"):
            reference = spec.dataSourceRef
            if source.HasField("apiGroup"):
                reference.apiGroup = source.apiGroup
            reference.kind, reference.name = source.kind, source.name
    elif spec.HasField("dataSourceRef") and not spec.dataSourceRef.namespace:
        reference = spec.dataSourceRef
        if (reference.apiGroup, reference.kind) in _DATA_SOURCES:
            if reference.HasField("apiGroup"):
                spec.dataSource.apiGroup = reference.apiGroup
            spec.dataSource.kind, spec.dataSource.name = reference.kind, reference.name


class ClaimStrategy(Strategy):
    def prepare_for_create(self, new: Any, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.status.phase = "Pending"
        _same_data_source(new.spec)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + claims.claim(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        # Upstream looks at the whole twice.
        found = self.validate(new, env)
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata)
        return found + changed + found + claims.claim_change(new, old)


class ClaimStatusStrategy(StatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return claims.claim_status_update(new, old)


class VolumeStrategy(Strategy):
    def prepare_for_create(self, new: Any, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.status.phase = "Pending"
        new.status.lastPhaseTransitionTime.CopyFrom(env.now)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + storage.volume(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        # Upstream looks at the whole twice.
        found = self.validate(new, env)
        return found + found + storage.volume_change(new, old)


class VolumeStatusStrategy(StatusStrategy):
    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # The time of the phase is the server's (PersistentVolumeLastPhaseTransitionTime, GA in 1.31).
        if new.status.phase != old.status.phase:
            if new.status.lastPhaseTransitionTime == old.status.lastPhaseTransitionTime:
                new.status.lastPhaseTransitionTime.CopyFrom(env.now)
        elif not new.status.HasField("lastPhaseTransitionTime") and old.status.HasField(
            "lastPhaseTransitionTime"
        ):
            new.status.lastPhaseTransitionTime.CopyFrom(old.status.lastPhaseTransitionTime)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return storage.volume_status_update(new, old)


class PriorityClassStrategy(Strategy):
    def undeletable(self, name: str) -> str:
        return "this is a system priority class and cannot be deleted" if name in SYSTEM_CLASSES else ""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        new.metadata.generation = 1

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + priority_classes.priority_class(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return priority_classes.update(new, old)


class BudgetStrategy(Strategy):
    counts_generation = True
    judges_metadata = False

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return budgets.budget(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return budgets.budget(new)


class BudgetStatusStrategy(StatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return budgets.status(new.status)


class StorageClassStrategy(Strategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + storage.storage_class(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata)
        return self.validate(new, env) + changed + storage.storage_class_update(new, old)


class TemplateStrategy(Strategy):
    """Of workloads that make pods from a template."""

    counts_generation = True

    def warnings(self, new: Any, old: Any | None) -> Sequence[str]:
        if old is not None and new.metadata.generation == old.metadata.generation:
            return ()
        template = old.spec.template if old is not None else None
        return pod_warnings.of_workload(new.metadata.name, new.spec.template, template)


class ReplicaSetStrategy(TemplateStrategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + replica_sets.spec(new.spec, pod_options.of(env.gates))

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return (
            metadata_rules.object_meta_update(new.metadata, old.metadata)
            + replica_sets.spec(new.spec, pod_options.of(env.gates, old.spec.template.spec))
            + replica_sets.immutable_selector(new.spec, old.spec)
        )


class _ReplicasStatusStrategy(StatusStrategy):
    def drop_disabled(self, new: Any, old: Any | None, env: Environment) -> None:
        counted = env.gates.enabled("DeploymentReplicaSetTerminatingReplicas")
        if not counted and (old is None or not old.status.HasField("terminatingReplicas")):
            new.status.ClearField("terminatingReplicas")


class ReplicaSetStatusStrategy(_ReplicasStatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata_rules.object_meta_update(new.metadata, old.metadata) + replica_sets.status(new.status)


class DeploymentStrategy(TemplateStrategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + deployments.spec(new.spec, pod_options.of(env.gates))

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # Annotations are copied to the replica sets: a change of them is something to do.
        if new.metadata.annotations != old.metadata.annotations:
            new.metadata.generation = old.metadata.generation + 1

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return (
            metadata_rules.object_meta_update(new.metadata, old.metadata)
            + deployments.spec(new.spec, pod_options.of(env.gates, old.spec.template.spec))
            + replica_sets.immutable_selector(new.spec, old.spec)
        )


class DeploymentStatusStrategy(_ReplicasStatusStrategy):
    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        keep(new.metadata, old.metadata, "labels")

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata)
        return changed + deployments.status(new.status, old.status)


class LeaseStrategy(Strategy):
    standard_finalizers = False

    def drop_disabled(self, new: Any, old: Any | None, env: Environment) -> None:
        # CoordinatedLeaderElection (KEP-4355) is off by default, and not here.
        for name in ("strategy", "preferredHolder"):
            if old is None or not old.spec.HasField(name):
                new.spec.ClearField(name)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + config.lease(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata, standard=False)
        return changed + config.lease(new)
