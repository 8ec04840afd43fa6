"""A write whose answer was lost is tried again, and found to be done."""

from __future__ import annotations

from typing import cast

import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from tests.support import retries


class _Server:
    """One pod; the answers of the first `lost` writes do not arrive."""

    def __init__(self, *, lost: int, pod: core.Pod | None = None) -> None:
        self.lost, self.pod = lost, pod
        self.writes = 0

    async def create(self, pod: core.Pod) -> core.Pod:
        self.writes += 1
        if self.pod is not None:
            raise errors.already_exists(kinds.POD, pod.metadata.name)
        self.pod = core.Pod()
        self.pod.CopyFrom(pod)
        self.pod.metadata.uid = "stored"
        return self._answered(self.pod)

    async def bind(self, namespace: str, name: str, node: str) -> None:
        self.writes += 1
        assert self.pod is not None
        if self.pod.spec.nodeName:
            raise errors.conflict(kinds.POD, name, "pod is already assigned")
        self.pod.spec.nodeName = node
        self._answered(self.pod)

    async def get(self, kind: object, name: str, namespace: str) -> core.Pod:
        assert (kind, name, namespace, self.pod is None) == (kinds.POD, "a", "default", False)
        return cast("core.Pod", self.pod)

    def _answered(self, pod: core.Pod) -> core.Pod:
        self.lost -= 1
        if self.lost >= 0:
            raise StatusError(503, "ServiceUnavailable", "the connection is closed")
        return pod


def _pod(node: str = "") -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.spec.nodeName = "a", "default", node
    return pod


@pytest.mark.parametrize("lost", [0, 1])
async def test_an_object_is_created_once(lost: int) -> None:
    server = _Server(lost=lost)
    made = await retries.create(cast("Client", server), _pod())
    assert (made.metadata.uid, server.writes) == ("stored", 1 + lost)


async def test_an_object_that_existed_is_an_error() -> None:
    with pytest.raises(StatusError) as raised:
        await retries.create(cast("Client", _Server(lost=0, pod=_pod())), _pod())
    assert errors.is_already_exists(raised.value)


@pytest.mark.parametrize("lost", [0, 1])
async def test_a_pod_is_bound_once(lost: int) -> None:
    server = _Server(lost=lost, pod=_pod())
    await retries.bind(cast("Client", server), "default", "a", "n")
    assert (server.pod or _pod()).spec.nodeName == "n"
    assert server.writes == 1 + lost


async def test_a_pod_that_was_bound_before_is_an_error() -> None:
    with pytest.raises(StatusError) as raised:
        await retries.bind(cast("Client", _Server(lost=0, pod=_pod("n"))), "default", "a", "n")
    assert errors.is_conflict(raised.value)
