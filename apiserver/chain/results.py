"""The results of handlers; each front encodes them."""

from __future__ import annotations

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import DeleteResult, ListPage, WriteResult
from nominee.apiserver.objects.watcher import Watcher


class OwnResult:
    """A result of a handler that only one front has, already encoded; a base class."""

    __slots__ = ()


Result = CachedObject | WriteResult | DeleteResult | ListPage | Watcher | OwnResult
