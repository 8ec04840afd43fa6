"""Kinds that share their objects with a kind of another API: the stored form, and the form for clients.

autoscaling/v1 and events.k8s.io are views of autoscaling/v2 and of core v1 Events (`kinds.STORED_AS`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind


def stored_kind(kind: AnyKind) -> AnyKind:
    """Return the kind whose key and form objects of `kind` have in etcd."""
    return kinds.STORED_AS.get(kind, kind)


def conversion(kind: AnyKind) -> Callable[[CachedObject], CachedObject] | None:
    """Return the function that shows stored objects as `kind`, or None where they are shown as stored."""
    found = rules_of(kind).conversion
    return found.show if found is not None else None


def convert_stored(kind: AnyKind, stored: CachedObject) -> CachedObject:
    """Return a stored object as clients of `kind` see it."""
    show = conversion(kind)
    return stored.converted(show) if show is not None else stored


def as_stored(kind: AnyKind, body: Message) -> Any:
    """Return a client's object in the form that is stored; a stored object is returned as it is."""
    found = rules_of(kind).conversion
    return found.to_stored(body) if found is not None and isinstance(body, kind.message) else body
