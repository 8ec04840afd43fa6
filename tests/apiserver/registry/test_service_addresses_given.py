"""An address is one Service's, also where a request ended before anybody knew whether it had written."""

from __future__ import annotations

import asyncio
import random

import pytest

from apiserver.registry.services.allocation import Allocator
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.pb import core


def service(name: str) -> core.Service:
    made = core.Service()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.spec.type, made.spec.clusterIP = "ClusterIP", "10.0.0.7"
    made.spec.ports.add(port=80)
    return made


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (asyncio.CancelledError(), True),
        (errors.timeout("etcd"), True),
        (errors.already_exists(kinds.SERVICE, "one"), False),
    ],
)
async def test_what_may_have_been_written_is_taken(error: BaseException, kept: bool) -> None:
    allocator = Allocator(list, random.Random(1))
    with pytest.raises(type(error)), allocator.allocate(service("one"), None):
        raise error
    # Who comes again may have it, whatever became of the first attempt.
    with allocator.allocate(service("one"), None):
        pass
    if kept:
        with pytest.raises(StatusError, match="already allocated"):
            allocator.allocate(service("two"), None)
    else:
        with allocator.allocate(service("two"), None):
            pass
    assert len(allocator.claims) == kept
