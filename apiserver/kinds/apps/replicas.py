"""Validation that workloads with replicas share (kube-apiserver 1.36, pkg/apis/apps/validation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.pods import templates
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import apps, core, meta
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec

_Status = apps.ReplicaSetStatus | apps.DeploymentStatus
_Collisions = apps.DeploymentStatus | apps.DaemonSetStatus | apps.StatefulSetStatus
_Replicas = _Status | apps.StatefulSetStatus | core.ReplicationControllerStatus


def workload(found: apps.ReplicaSetSpec | apps.DeploymentSpec, options: PodOptions) -> Iterator[Cause]:
    """Check the fields that ReplicaSets and Deployments have in common: replicas, selector and template."""
    yield from field.non_negative("spec.replicas", found.replicas)
    yield from field.non_negative("spec.minReadySeconds", found.minReadySeconds)
    selector: LabelSelector | None = None
    if not found.HasField("selector"):
        yield field.required("spec.selector")
        yield from _template(found, None, options)
    else:
        yield from label_selector("spec.selector", found.selector)
        if not found.selector.matchLabels and not found.selector.matchExpressions:
            problem = "empty selector is invalid for deployment"
            yield field.invalid("spec.selector", _shown(found.selector), problem)
        try:
            selector = LabelSelector.from_message(found.selector)
        except SelectorError:
            yield field.invalid("spec.selector", _shown(found.selector), "invalid label selector")
    if selector is not None:
        yield from _template(found, selector, options)


def _shown(selector: meta.LabelSelector) -> dict[str, object]:
    return codec.to_json(selector)


def _template(
    found: apps.ReplicaSetSpec | apps.DeploymentSpec, selector: LabelSelector | None, options: PodOptions
) -> Iterator[Cause]:
    path, template = "spec.template", found.template
    labels = template.metadata.labels
    selects = found.selector.matchLabels or found.selector.matchExpressions
    # No selector at all selects nothing.
    if selector is None or (selects and not selector.matches(labels)):
        value = dict(sorted(labels.items())) if labels else None
        yield field.invalid(f"{path}.metadata.labels", value, "`selector` does not match template `labels`")
    yield from templates.pod_template(path, template, options)
    yield from templates.always_restarts(path, template, "ReplicaSet")


def immutable_selector(
    new: apps.ReplicaSetSpec | apps.DeploymentSpec, old: apps.ReplicaSetSpec | apps.DeploymentSpec
) -> list[Cause]:
    if new.selector == old.selector:
        return []
    shown = _shown(new.selector) if new.HasField("selector") else None
    return [field.invalid("spec.selector", shown, field.IMMUTABLE)]


def replica_counts(
    status: _Replicas, counts: Iterable[str], parts: Iterable[str], ready: str = "readyReplicas"
) -> Iterator[Cause]:
    """Check that no count of a status is negative, and no part of the replicas greater than the whole.

    `ready` is what the message about the available replicas calls the ready ones.
    """
    for name in counts:
        yield from field.non_negative(f"status.{name}", getattr(status, name))
    for name in parts:
        if getattr(status, name) > status.replicas:
            problem = "cannot be greater than status.replicas"
            yield field.invalid(f"status.{name}", getattr(status, name), problem)
    if status.availableReplicas > status.readyReplicas:
        problem = f"cannot be greater than {ready}"
        yield field.invalid("status.availableReplicas", status.availableReplicas, problem)


def collision_count(new: _Collisions, old: _Collisions) -> Iterator[Cause]:
    """Check that a status counts collisions only up."""
    if old.HasField("collisionCount") and new.collisionCount < old.collisionCount:
        yield field.invalid("status.collisionCount", new.collisionCount, "cannot be decremented")


def drop_terminating_replicas(new: _Status, old: _Status | None, gates: Gates) -> None:
    """Remove in place a count that no gate makes known, unless `old` has it (KEP-3973)."""
    counted = gates.enabled("DeploymentReplicaSetTerminatingReplicas")
    if not counted and (old is None or not old.HasField("terminatingReplicas")):
        new.ClearField("terminatingReplicas")
