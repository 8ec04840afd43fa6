"""A deployment's replica sets: their revision, template and annotations. Pure.

Source: kube-controller-manager 1.36, pkg/controller/deployment/util.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nominee.controllers.hashing import fnv1a
from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import apps, core
from nominee.machinery.wire.codec import to_json

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX: Final = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED: Final = frozenset({LAST_APPLIED, REVISION, HISTORY, DESIRED, MAX, ROLLBACK_TO})
HISTORY_CHARACTERS_MAX: Final = 2000


def template_hash(template: core.PodTemplateSpec, collisions: int | None) -> str:
    """Return the pod-template-hash: FNV-1a of the template and its collision count, in safe letters.

    Upstream hashes Go's printed form of the struct, which only Go has; here it is the message's bytes. No
    client compares hashes: a replica set is found by its template.
    """
    data = template.SerializeToString(deterministic=True)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return fnv1a(data)


def _comparable(template: core.PodTemplateSpec) -> object:
    found = to_json(template)
    found.get("metadata", {}).get("labels", {}).pop(HASH_LABEL, None)
    return found


def same_template(one: core.PodTemplateSpec, other: core.PodTemplateSpec) -> bool:
    """Report whether two templates are equal but for the hash label."""
    return _comparable(one) == _comparable(other)


def age_order(each: apps.ReplicaSet) -> tuple[int, str]:
    return (each.metadata.creationTimestamp.seconds, each.metadata.name)


def find_new(deployment: apps.Deployment, sets: Iterable[apps.ReplicaSet]) -> apps.ReplicaSet | None:
    """Return the set that has the deployment's template, the oldest of several."""
    template = _comparable(deployment.spec.template)
    for each in sorted(sets, key=age_order):
        if _comparable(each.spec.template) == template:
            return each
    return None


def _number(annotated: apps.Deployment | apps.ReplicaSet, name: str) -> int | None:
    try:
        return int(annotated.metadata.annotations.get(name, ""))
    except ValueError:
        return None


def revision_of(annotated: apps.Deployment | apps.ReplicaSet) -> int:
    """Return the revision of a set or a deployment, 0 where it has none."""
    return _number(annotated, REVISION) or 0


def desired_replicas(each: apps.ReplicaSet) -> int | None:
    """Return spec.replicas of the deployment when the set was last scaled."""
    return _number(each, DESIRED)


def max_replicas(each: apps.ReplicaSet) -> int | None:
    """Return spec.replicas plus surge of the deployment when the set was last scaled."""
    return _number(each, MAX)


def note_sizes(each: apps.ReplicaSet, desired: int, largest: int) -> bool:
    """Annotate the set with both numbers; return whether one changed."""
    annotations = each.metadata.annotations
    new = {DESIRED: str(desired), MAX: str(largest)}
    changed = any(annotations.get(name) != value for name, value in new.items())
    annotations.update(new)
    return changed


def annotate(each: apps.ReplicaSet, deployment: apps.Deployment, revision: int) -> bool:
    """Copy the deployment's annotations and set a later revision; return whether the set changed."""
    changed = False
    annotations = each.metadata.annotations
    for name, value in deployment.metadata.annotations.items():
        if name not in _NOT_COPIED and annotations.get(name) != value:
            annotations[name] = value
            changed = True
    text = annotations.get(REVISION, "")
    old = _number(each, REVISION)
    if text and old is None:
        return False  # Another client wrote a revision that is no number: it is left alone.
    if (old or 0) >= revision:
        return changed
    if text:
        annotations[HISTORY] = _history(annotations.get(HISTORY, ""), text)
    annotations[REVISION] = str(revision)
    return True


def _history(before: str, revision: str) -> str:
    """Return the revisions that a set had, the oldest dropped when the list grows too long."""
    rows = before.split(",") if before else []
    while rows and len(",".join([*rows, revision])) > HISTORY_CHARACTERS_MAX:
        rows.pop(0)
    return ",".join([*rows, revision])


def new_set(deployment: apps.Deployment) -> apps.ReplicaSet:
    """Return a replica set of the deployment's template, with 0 replicas."""
    status = deployment.status
    collisions = status.collisionCount if status.HasField("collisionCount") else None
    digest = template_hash(deployment.spec.template, collisions)
    made = apps.ReplicaSet()
    made.metadata.name = f"{deployment.metadata.name}-{digest}"
    made.metadata.namespace = deployment.metadata.namespace
    made.metadata.ownerReferences.append(owner_reference(deployment))
    made.spec.template.CopyFrom(deployment.spec.template)
    made.spec.template.metadata.labels[HASH_LABEL] = digest
    made.metadata.labels.update(made.spec.template.metadata.labels)
    made.spec.selector.CopyFrom(deployment.spec.selector)
    made.spec.selector.matchLabels[HASH_LABEL] = digest
    made.spec.minReadySeconds = deployment.spec.minReadySeconds
    made.spec.replicas = 0
    return made


def last_revision(sets: Sequence[apps.ReplicaSet]) -> int:
    """Return the revision before the latest, 0 where there is no such revision."""
    found = sorted({revision_of(each) for each in sets} | {0}, reverse=True)
    return found[1] if len(found) > 1 else 0


def restore_annotations(deployment: apps.Deployment, each: apps.ReplicaSet) -> None:
    """Restore the annotations of the set's revision in the deployment; the controller's own stay."""
    kept = {k: v for k, v in deployment.metadata.annotations.items() if k in _NOT_COPIED}
    own = {k: v for k, v in each.metadata.annotations.items() if k not in _NOT_COPIED}
    deployment.metadata.annotations.clear()
    deployment.metadata.annotations.update(kept | own)
