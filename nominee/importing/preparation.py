"""Make of a document of another cluster the object to create in this one. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping

from google.protobuf.message import Message

from nominee.importing.order import owner_references, owner_uids
from nominee.importing.sources import Document, metadata_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ADOPTED
from nominee.machinery.api.pb import core
from nominee.machinery.wire.codec import from_json
from nominee.machinery.wire.values.scalars import DecodeError

LEFT_OUT = frozenset(
    {"Lease", "Event", "IPAddress", "ComponentStatus", "NodeMetrics", "PodMetrics", "LeaseCandidate"}
)
"""Kinds whose objects belong to the processes of their cluster: they are made again."""
NO_VALUE = "e30="
"""`{}`, in place of each value of a Secret: it is valid also where a type wants JSON."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class NotServed(Exception):
    """An object cannot come; the text says why. `path` is the field at fault, if there is one."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


def kind_of(document: Document) -> kinds.AnyKind:
    """Return the kind of a document.

    Raises:
        NotServed: there are no objects of it here.
    """
    api_version, name = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    if name == "Status":
        raise NotServed(f"is the answer to a failed request: {document.get('message', '')}")
    if not (api_version and name and metadata_of(document).get("name")):
        raise NotServed("is no object: it has no apiVersion, no kind or no metadata.name")
    kind = kinds.by_kind(api_version, name)
    if kind is None or kind.read_only:
        raise NotServed(f"{api_version} is not served")
    if metadata_of(document).get("deletionTimestamp"):
        raise NotServed("is being deleted")
    return kind


def prepare(document: Document, uids: Mapping[str, str], lost: Container[str], *, secrets: bool) -> Message:
    """Return the object to create, with the new `uids`; without references to owners whose uid is in `lost`.

    Raises:
        NotServed: a value does not fit its field.
    """
    kind = kind_of(document)
    new = {key: _remapped(each, uids) for key, each in document.items()}
    metadata = new["metadata"] = dict(metadata_of(new))
    for name in ("resourceVersion", "selfLink"):
        metadata.pop(name, None)
    if owners := owner_references(new):
        uids_of_owners = owner_uids(document)
        kept = [owner for uid, owner in zip(uids_of_owners, owners, strict=True) if uid not in lost]
        metadata["ownerReferences"] = kept
    annotations = metadata["annotations"] = dict(metadata.get("annotations") or {})
    if kind is kinds.NODE:
        annotations[ADOPTED] = ""
    if kind is kinds.SECRET and not secrets:
        annotations.pop(_LAST_APPLIED, None)
        new["data"] = dict.fromkeys(document.get("data") or (), NO_VALUE)
        new.pop("stringData", None)
    try:
        message: Message = from_json(kind.message, new)
    except DecodeError as error:
        raise NotServed(str(error), error.path) from None
    if isinstance(message, core.Pod):
        _take_back_label_keys(message.spec)
    return message


def _take_back_label_keys(spec: core.PodSpec) -> None:
    """Remove the requirements that matchLabelKeys and mismatchLabelKeys have made: a create adds them again.

    A selector of a client's has none of these keys: that is invalid.
    """
    terms = [
        term
        for pods in (spec.affinity.podAffinity, spec.affinity.podAntiAffinity)
        for term in (
            *pods.requiredDuringSchedulingIgnoredDuringExecution,
            *(each.podAffinityTerm for each in pods.preferredDuringSchedulingIgnoredDuringExecution),
        )
    ]
    selectors = [(each.labelSelector, {*each.matchLabelKeys, *each.mismatchLabelKeys}) for each in terms]
    selectors += [(each.labelSelector, {*each.matchLabelKeys}) for each in spec.topologySpreadConstraints]
    for selector, keys in selectors:
        if keys:
            kept = [row for row in selector.matchExpressions if row.key not in keys]
            del selector.matchExpressions[:]
            selector.matchExpressions.extend(kept)


def _remapped(value: object, uids: Mapping[str, str]) -> object:
    """Return a JSON value in which each text that is an old uid is the new one.

    Uids are in many places: owners, a volume's claim, targets of endpoints, a Job's selector and labels.
    """
    if isinstance(value, str):
        return uids.get(value, value)
    if isinstance(value, Mapping):
        return {key: _remapped(each, uids) for key, each in value.items()}
    if isinstance(value, list):
        return [_remapped(each, uids) for each in value]
    return value
