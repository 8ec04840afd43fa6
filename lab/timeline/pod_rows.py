"""The rows of pods from their stored bytes. No I/O.

Pods are most of a busy cluster's writes. Those of a template are created with the same spec and status, and
those that are bound to one node in the same second have the same ones, too: each pair is decoded once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from nominee.lab.timeline.json_text import compact
from nominee.lab.timeline.rows import row
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire import envelope

PAIRS_MAX: Final = 4096
_METADATA, _SPEC, _STATUS = 0x0A, 0x12, 0x1A
"""The tags of a pod's fields."""
_TAGS: Final = frozenset({_METADATA, _SPEC, _STATUS})


def pod_row(data: bytes) -> str:
    """Return the row of a stored pod as JSON; "" if all of the pod must be decoded.

    That is so for a pod with managed fields, which may show the writer, and for one that is being deleted.
    """
    try:
        parts = _parts(envelope.raw_of(POD, data))
        if parts.keys() != _TAGS:
            return ""
        metadata = meta.ObjectMeta.FromString(parts[_METADATA])
        if metadata.managedFields or metadata.HasField("deletionTimestamp") or not metadata.uid:
            return ""
        body = _body(parts[_SPEC], parts[_STATUS])
    except (DecodeError, envelope.EnvelopeError):
        return ""
    owner = next((f"{each.kind}/{each.name}" for each in metadata.ownerReferences if each.controller), "")
    own = f'"uid":{compact(metadata.uid)}' + (f',"owner":{compact(owner)}' if owner else "")
    return f"{{{own}{body}}}"


@lru_cache(maxsize=PAIRS_MAX)
def _body(spec: bytes, status: bytes) -> str:
    """Return the fields of the row that are made of the spec and the status, each with a comma before it."""
    pod = core.Pod()
    pod.spec.ParseFromString(spec)
    pod.status.ParseFromString(status)
    fields = compact(row(pod))[1:-1]
    return f",{fields}" if fields else ""


def _parts(raw: bytes) -> dict[int, bytes]:
    """Return the fields of an object's own bytes by tag; {} if they are cut, or one comes twice."""
    found: dict[int, bytes] = {}
    at, end = 0, len(raw)
    try:
        while at < end:
            tag, at = raw[at], at + 1
            length = shift = 0
            more = True
            while more:
                length |= (raw[at] & 0x7F) << shift
                more = raw[at] > 0x7F
                shift, at = shift + 7, at + 1
            if tag in found:
                return {}
            found[tag] = raw[at : at + length]
            at += length
    except IndexError:
        return {}
    return found if at == end else {}
