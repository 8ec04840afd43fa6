"""Both fronts of one server."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.watch_cache import WatchCache
from tests.apiserver.fronts.adapter import Api
from tests.apiserver.fronts.over_grpc import GrpcApi
from tests.apiserver.fronts.over_rest import RestApi


@dataclass
class Both:
    """The fronts, the server's cache, and how many namespaces were used."""

    rest: RestApi
    grpc: GrpcApi
    cache: WatchCache
    count: int = 0

    def of(self, name: str) -> Api:
        return self.rest if name == "rest" else self.grpc
