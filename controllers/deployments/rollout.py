"""The next step of a rollout: which replica sets are created, scaled and deleted. Pure.

`sync` takes a deployment and its replica sets and returns actions, in order, and the status to write.
Source: kube-controller-manager 1.36, pkg/controller/deployment (sync, rolling, recreate, rollback).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.controllers.deployments import progress, sets, sizes
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api.objects import copy_of, get_condition, is_terminating
from nominee.machinery.api.pb import apps
from nominee.machinery.api.selectors import parse_int64
from nominee.machinery.wire.codec import to_json

_NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CreateSet:
    """Create a replica set, then record the event."""

    replica_set: apps.ReplicaSet
    event: PlannedEvent | None = None


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """Write a replica set's metadata and spec, then record the event."""

    replica_set: apps.ReplicaSet
    event: PlannedEvent | None = None


@dataclass(frozen=True, slots=True)
class DeleteSet:
    """Delete a replica set."""

    replica_set: apps.ReplicaSet


@dataclass(frozen=True, slots=True)
class UpdateDeployment:
    """Write the deployment's spec: a rollback. The status follows when its change is seen."""

    deployment: apps.Deployment


Action = CreateSet | UpdateSet | DeleteSet | UpdateDeployment | PlannedEvent


@dataclass(frozen=True, slots=True)
class Outcome:
    """Actions in order; then the deployment whose status (and annotations) to write, if it changed.

    `again`: seconds after which the progress deadline must be checked, or None.
    """

    actions: tuple[Action, ...]
    status: apps.Deployment | None = None
    again: float | None = None


@dataclass
class _Work:
    """One reconciliation: copies that it changes, and its decisions so far."""

    deployment: apps.Deployment
    sets: list[apps.ReplicaSet]
    now: float
    terminating: bool
    running: frozenset[str]
    new: apps.ReplicaSet | None = None
    actions: list[Action] = field(default_factory=list)
    judged: bool = False

    @property
    def old(self) -> list[apps.ReplicaSet]:
        return [each for each in self.sets if each is not self.new]

    @property
    def active_old(self) -> list[apps.ReplicaSet]:
        return [each for each in self.old if each.spec.replicas > 0]

    def scale(self, each: apps.ReplicaSet, size: int) -> bool:
        """Scale a set and annotate it with the deployment's size; return whether its size changed."""
        before = each.spec.replicas
        desired = self.deployment.spec.replicas
        annotated = sets.note_sizes(each, desired, desired + sizes.surge_max(self.deployment))
        if before == size and not annotated:
            return False
        each.spec.replicas = size
        event = None
        if before != size:
            direction = "up" if before < size else "down"
            name = each.metadata.name
            event = PlannedEvent(
                "ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {size}"
            )
        self.update(each, event)
        return before != size

    def update(self, each: apps.ReplicaSet, event: PlannedEvent | None = None) -> None:
        self.actions.append(UpdateSet(copy_of(each), event))


def sync(
    deployment: apps.Deployment,
    replica_sets: Iterable[apps.ReplicaSet],
    *,
    running: frozenset[str],
    now: float,
    terminating: bool = True,
) -> Outcome:
    """Return the next actions for a deployment and the replica sets that it controls.

    `running`: uids of sets that have pods which have not ended (those being deleted among them). `now` in
    epoch seconds; `terminating` as in `progress.count_replicas`.
    """
    work = _Work(copy_of(deployment), [], now, terminating, running)
    work.sets = [copy_of(each) for each in sorted(replica_sets, key=sets.age_order)]
    if not _selects(deployment):
        note = "This deployment is selecting all pods. A non-empty selector is required."
        work.actions.append(PlannedEvent("SelectingAll", note, "Warning"))
        work.deployment.status.observedGeneration = max(
            deployment.metadata.generation, deployment.status.observedGeneration
        )
        return _outcome(work, deployment)
    if is_terminating(deployment):
        _find_new(work)
        _count(work)
        return _outcome(work, deployment)
    progress.note_pause(work.deployment, now)
    if deployment.spec.paused:
        _resize(work)
    elif (revision := _rollback_to(deployment)) is not None:
        _rollback(work, revision)
        return Outcome(tuple(work.actions))
    elif _was_scaled(work):
        _resize(work)
    elif deployment.spec.strategy.type == "Recreate":
        _recreate(work)
    else:
        _roll(work)
    return _outcome(work, deployment)


def _selects(deployment: apps.Deployment) -> bool:
    selector = deployment.spec.selector
    return bool(selector.matchLabels or selector.matchExpressions)


def _outcome(work: _Work, before: apps.Deployment) -> Outcome:
    after = work.deployment
    same = after.metadata.annotations == before.metadata.annotations and to_json(after.status) == to_json(
        before.status
    )
    if not same:
        return Outcome(tuple(work.actions), after)
    again = progress.stuck_check_seconds(before, after.status, work.now) if work.judged else None
    return Outcome(tuple(work.actions), None, again)


# --- the new replica set ---


def _find_new(work: _Work) -> None:
    """Find the set of the deployment's template and bring its revision and annotations up to date."""
    work.new = new = sets.find_new(work.deployment, work.sets)
    if new is None:
        return
    revision = max((sets.revision_of(each) for each in work.old), default=0) + 1
    changed = sets.annotate(new, work.deployment, revision)
    if new.spec.minReadySeconds != work.deployment.spec.minReadySeconds:
        new.spec.minReadySeconds = work.deployment.spec.minReadySeconds
        changed = True
    if changed:
        work.update(new)
    note = f'Found new replica set "{new.metadata.name}"'
    has_condition = get_condition(work.deployment.status.conditions, progress.PROGRESSING) is not None
    _note_revision(work, new, "" if has_condition else "FoundNewReplicaSet", note)


def _note_revision(work: _Work, new: apps.ReplicaSet, reason: str, note: str) -> None:
    work.deployment.metadata.annotations[sets.REVISION] = new.metadata.annotations.get(sets.REVISION, "")
    if reason and progress.has_deadline(work.deployment):
        row = progress.condition(progress.PROGRESSING, "True", reason, note, work.now)
        progress.put(work.deployment.status, row)


def _find_or_make_new(work: _Work) -> apps.ReplicaSet:
    """Return the new set; create it, as large as it may be now, if it does not exist."""
    _find_new(work)
    if work.new is not None:
        return work.new
    deployment = work.deployment
    made = sets.new_set(deployment)
    revision = max((sets.revision_of(each) for each in work.sets), default=0) + 1
    made.spec.replicas = sizes.new_set_size(deployment, [*work.sets, made], made)
    sets.annotate(made, deployment, revision)
    desired = deployment.spec.replicas
    sets.note_sizes(made, desired, desired + sizes.surge_max(deployment))
    name, size = made.metadata.name, made.spec.replicas
    event = (
        PlannedEvent("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}") if size else None
    )
    work.actions.append(CreateSet(copy_of(made), event))
    work.new = made
    work.sets.append(made)
    _note_revision(work, made, "NewReplicaSetCreated", f'Created new replica set "{name}"')
    return made


# --- sizes ---


def _was_scaled(work: _Work) -> bool:
    """Report whether spec.replicas changed since the sets were scaled: then sizes come before the rollout."""
    return any(
        (annotated := sets.desired_replicas(each)) is not None and annotated != work.deployment.spec.replicas
        for each in work.sets
        if each.spec.replicas > 0
    )


def _resize(work: _Work) -> None:
    """Scale the sets for spec.replicas without rolling; also all that happens while it is paused."""
    _find_new(work)
    deployment, new = work.deployment, work.new
    only = _active_or_latest(work)
    if only is not None:
        if only.spec.replicas != deployment.spec.replicas:
            work.scale(only, deployment.spec.replicas)
    elif new is not None and _saturated(deployment, new):
        for each in work.active_old:
            work.scale(each, 0)
    elif sizes.is_rolling(deployment):
        active = [each for each in work.sets if each.spec.replicas > 0]
        targets = sizes.proportional(deployment, active)
        for each in active:
            work.scale(each, targets[each.metadata.name])
    if deployment.spec.paused:
        _clean_up(work)
    _count(work)


def _active_or_latest(work: _Work) -> apps.ReplicaSet | None:
    """Return the one set that has replicas, the latest if no set has any, None if several have."""
    active = [each for each in work.sets if each.spec.replicas > 0]
    if len(active) > 1 or not work.sets:
        return None
    if active:
        return active[0]
    return work.new if work.new is not None else work.sets[-1]


def _saturated(deployment: apps.Deployment, each: apps.ReplicaSet) -> bool:
    desired = deployment.spec.replicas
    return sets.desired_replicas(each) == desired == each.spec.replicas == each.status.availableReplicas


# --- rolling ---


def _roll(work: _Work) -> None:
    new = _find_or_make_new(work)
    if not _grow_new(work, new) and not _shrink_old(work, new):
        _clean_up_complete(work)
    _count(work, judged=True)


def _grow_new(work: _Work, new: apps.ReplicaSet) -> bool:
    desired = work.deployment.spec.replicas
    if new.spec.replicas == desired:
        return False
    if new.spec.replicas > desired:
        return work.scale(new, desired)
    size = sizes.new_set_size(work.deployment, work.sets, new)
    return size != new.spec.replicas and work.scale(new, size)


def _shrink_old(work: _Work, new: apps.ReplicaSet) -> bool:
    """Scale old sets down as far as enough pods stay available: first by pods that are not available."""
    old = work.active_old
    least = work.deployment.spec.replicas - sizes.unavailable_max(work.deployment)
    missing = new.spec.replicas - new.status.availableReplicas
    room = sizes.total_replicas(work.sets) - least - missing
    if not old or room <= 0:
        return False
    gone = 0
    for each in old:
        if gone >= room:
            break
        if each.spec.replicas < each.status.availableReplicas:
            return False  # the status is older than the size: how many pods stay available is not known yet
        count = min(room - gone, each.spec.replicas - each.status.availableReplicas)
        if count > 0:
            work.scale(each, each.spec.replicas - count)
            gone += count
    spare = sum(each.status.availableReplicas for each in [*old, new]) - least
    for each in old:
        count = min(spare, each.spec.replicas)
        if count > 0:
            work.scale(each, each.spec.replicas - count)
            spare -= count
            gone += count
    return gone > 0


# --- recreating ---


def _recreate(work: _Work) -> None:
    """Scale the new set up when the last old pod has ended."""
    _find_new(work)
    shrunk = [work.scale(each, 0) for each in work.active_old]
    if not any(shrunk) and not _old_pods_run(work):
        new = _find_or_make_new(work) if work.new is None else work.new
        if new.spec.replicas != work.deployment.spec.replicas:
            work.scale(new, work.deployment.spec.replicas)
        _clean_up_complete(work)
    _count(work, judged=True)


def _old_pods_run(work: _Work) -> bool:
    if any(each.status.replicas > 0 for each in work.old):
        return True
    new = work.new.metadata.uid if work.new is not None else ""
    return bool(work.running - {new})


# --- history ---


def _clean_up_complete(work: _Work) -> None:
    if progress.is_complete(work.deployment, work.deployment.status):
        _clean_up(work)


def _clean_up(work: _Work) -> None:
    """Delete old sets beyond revisionHistoryLimit, oldest revision first, but none that still has pods."""
    spec = work.deployment.spec
    if not spec.HasField("revisionHistoryLimit") or spec.revisionHistoryLimit == _NO_LIMIT:
        return
    old = [each for each in work.old if not is_terminating(each)]
    beyond = len(old) - spec.revisionHistoryLimit
    for each in sorted(old, key=lambda s: (sets.revision_of(s), sets.age_order(s)))[: max(beyond, 0)]:
        seen = each.status.observedGeneration >= each.metadata.generation
        if seen and not each.status.replicas and not each.spec.replicas:
            work.actions.append(DeleteSet(each))


# --- rolling back ---


def _rollback_to(deployment: apps.Deployment) -> int | None:
    """Return the revision in `deprecated.deployment.rollback.to`, None where it has no number."""
    return parse_int64(deployment.metadata.annotations.get(sets.ROLLBACK_TO, ""))


def _rollback(work: _Work, target: int) -> None:
    """Restore the template of a revision (0: the one before the latest)."""
    _find_or_make_new(work)
    deployment = work.deployment
    del deployment.metadata.annotations[sets.ROLLBACK_TO]
    missing = "Unable to find the revision to rollback to."
    if target == 0:
        target, missing = sets.last_revision(work.sets), "Unable to find last revision."
    found = [each for each in work.sets if target and sets.revision_of(each) == target]
    if not found:
        event = PlannedEvent("DeploymentRollbackRevisionNotFound", missing, "Warning")
    elif sets.same_template(deployment.spec.template, found[0].spec.template):
        note = "The rollback revision contains the same template as current deployment "
        event = PlannedEvent(
            "DeploymentRollbackTemplateUnchanged", f'{note}"{deployment.metadata.name}"', "Warning"
        )
    else:
        _restore(deployment, found[0])
        note = f'Rolled back deployment "{deployment.metadata.name}" to revision {target}'
        event = PlannedEvent("DeploymentRollback", note)
    work.actions += [UpdateDeployment(deployment), event]


def _restore(deployment: apps.Deployment, each: apps.ReplicaSet) -> None:
    deployment.spec.template.CopyFrom(each.spec.template)
    deployment.spec.template.metadata.labels.pop(sets.HASH_LABEL, None)
    sets.restore_annotations(deployment, each)


# --- status ---


def _count(work: _Work, *, judged: bool = False) -> None:
    status = progress.count_replicas(
        work.deployment, work.sets, work.new, work.now, terminating=work.terminating
    )
    work.judged = judged
    if judged:
        progress.judge(work.deployment, work.sets, work.new, status, work.now)
    work.deployment.status.CopyFrom(status)


def create_failed(deployment: apps.Deployment, message: str, now: float) -> apps.Deployment:
    """Return the deployment with the condition that says why its new replica set was not created."""
    failed = copy_of(deployment)
    if progress.has_deadline(deployment):
        row = progress.condition(progress.PROGRESSING, "False", progress.CREATE_ERROR, message, now)
        progress.put(failed.status, row)
    return failed


def count_collision(deployment: apps.Deployment) -> apps.Deployment:
    """Return the deployment with one more collision: another owner's replica set has the name."""
    counted = copy_of(deployment)
    counted.status.collisionCount += 1
    return counted


def is_own(deployment: apps.Deployment, found: apps.ReplicaSet) -> bool:
    """Report whether the set that already has the new one's name is the deployment's own after all."""
    owners: Sequence[str] = [o.uid for o in found.metadata.ownerReferences if o.controller]
    same = sets.same_template(deployment.spec.template, found.spec.template)
    return deployment.metadata.uid in owners and same
