"""The revisions of an owner's pod template. Pure.

A revision's data are the strategic merge patch that restores the template: `{"spec": {"template": ...}}`.
Source: kube-controller-manager 1.36, pkg/controller/history; pkg/controller/statefulset (getPatch,
getStatefulSetRevisions, truncateHistory).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.hashing import fnv1
from nominee.machinery.api.objects import copy_of, owner_reference
from nominee.machinery.api.pb import apps, core
from nominee.machinery.wire.codec import from_json, to_json

HASH_LABEL: Final = "controller.kubernetes.io/hash"
REVISION_LABEL: Final = "controller-revision-hash"
"""The label of pods: the name of a StatefulSet's revision, or the hash of a DaemonSet's."""
_PREFIX_CHARACTERS_MAX: Final = 223
_ESCAPED: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""The characters that Go's encoder of JSON escapes."""

Owner = apps.StatefulSet | apps.DaemonSet


def data_of(template: core.PodTemplateSpec) -> bytes:
    """Return the data of a template's revision, byte for byte as Go encodes them."""
    patch = {"spec": {"template": {**to_json(template), "$patch": "replace"}}}
    text = json.dumps(patch, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPED).encode()


def template_of(revision: apps.ControllerRevision) -> core.PodTemplateSpec:
    """Return the template that a revision restores."""
    template = json.loads(revision.data.raw)["spec"]["template"]
    template.pop("$patch", None)
    return from_json(core.PodTemplateSpec, template)


def data_hash(data: bytes, collisions: int) -> str:
    """Return the hash of a revision's data and its owner's collision count."""
    return fnv1(data + str(collisions).encode())


def name_of(owner: Owner, digest: str) -> str:
    return f"{owner.metadata.name[:_PREFIX_CHARACTERS_MAX]}-{digest}"


def new_revision(
    owner: Owner, number: int, digest: str, *, hash_label: str = HASH_LABEL
) -> apps.ControllerRevision:
    """Return a revision of the owner's template, with its labels and the owner's annotations."""
    revision = apps.ControllerRevision(revision=number)
    metadata = revision.metadata
    metadata.name, metadata.namespace = name_of(owner, digest), owner.metadata.namespace
    metadata.labels.update(owner.spec.template.metadata.labels)
    metadata.labels[hash_label] = digest
    metadata.annotations.update(owner.metadata.annotations)
    metadata.ownerReferences.append(owner_reference(owner))
    revision.data.raw = data_of(owner.spec.template)
    return revision


def restores(revision: apps.ControllerRevision, template: core.PodTemplateSpec) -> bool:
    """Report whether a revision restores this template.

    The data's bytes may differ: an earlier release wrote other empty fields.
    """
    if revision.data.raw == data_of(template):
        return True
    return to_json(template_of(revision)) == to_json(template)  # `resources: {}` is as good as none


def in_order(revisions: Iterable[apps.ControllerRevision]) -> list[apps.ControllerRevision]:
    """Return the revisions by number, the latest last; equal numbers by age, then by name."""

    def order(each: apps.ControllerRevision) -> tuple[int, int, str]:
        return (each.revision, each.metadata.creationTimestamp.seconds, each.metadata.name)

    return sorted(revisions, key=order)


def next_number(revisions: Iterable[apps.ControllerRevision]) -> int:
    return max((each.revision for each in revisions), default=0) + 1


@dataclass(frozen=True, slots=True)
class UpdateRevision:
    """The revision of an owner's template: to be created, to be renumbered, or as it is."""

    revision: apps.ControllerRevision
    create: bool = False
    renumber: bool = False


def update_revision(
    owner: Owner, revisions: Sequence[apps.ControllerRevision], collisions: int
) -> UpdateRevision:
    """Return the revision of the owner's template; one that is rolled back to becomes the latest again."""
    ordered = in_order(revisions)
    equal = [each for each in ordered if restores(each, owner.spec.template)]
    if not equal:
        digest = data_hash(data_of(owner.spec.template), collisions)
        return UpdateRevision(new_revision(owner, next_number(ordered), digest), create=True)
    if equal[-1] is ordered[-1]:
        return UpdateRevision(equal[-1])
    latest = copy_of(equal[-1])
    latest.revision = next_number(ordered)
    return UpdateRevision(latest, renumber=True)


def to_delete(
    revisions: Iterable[apps.ControllerRevision], live: Collection[str], limit: int
) -> list[apps.ControllerRevision]:
    """Return the oldest revisions beyond the limit; those named in `live` stay and do not count.

    A negative limit keeps all.
    """
    past = [each for each in in_order(revisions) if each.metadata.name not in live]
    return past[: max(0, len(past) - limit)] if limit >= 0 else []
