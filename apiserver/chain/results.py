"""What a handler returns; each front encodes it."""

from __future__ import annotations

from apiserver.objects.cached_object import CachedObject
from apiserver.objects.requests import DeleteResult, ListPage, WriteResult
from apiserver.objects.watcher import Watcher


class OwnResult:
    """A result of a handler that only one front has, already encoded; a base class."""

    __slots__ = ()


Result = CachedObject | WriteResult | DeleteResult | ListPage | Watcher | OwnResult
