"""Both fronts of one server."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.fronts.adapter import Api
from tests.apiserver.fronts.over_grpc import GrpcApi
from tests.apiserver.fronts.over_rest import RestApi


class AheadClock(SystemClock):
    """The system's clock, put forward by a test instead of waiting."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_seconds


@dataclass
class Both:
    """The fronts, the server's cache and clock, and how many namespaces were used."""

    rest: RestApi
    grpc: GrpcApi
    cache: WatchCache
    clock: AheadClock
    count: int = 0

    def of(self, name: str) -> Api:
        return self.rest if name == "rest" else self.grpc
