"""The health check of the repair of Services."""

from __future__ import annotations

import random

import pytest

from nominee.apiserver.registry.registry import Registry
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage
from tests.apiserver.rest.asgi import VERSION


async def test_the_check_passes_after_the_first_repair() -> None:
    storage = MemoryStorage()
    gates, clock = Gates("apiserver", VERSION), FakeClock()
    registry = Registry(storage, MemoryCache(storage), None, gates=gates, clock=clock, rng=random.Random(1))
    with pytest.raises(RuntimeError, match="not repaired yet"):
        registry.repair.check()
    await registry.prepare_services()
    registry.repair.check()
