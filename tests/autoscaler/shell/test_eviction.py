"""The eviction of a pod that another one may have replaced."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import cast

import pytest

from nominee.autoscaler.options import Options
from nominee.autoscaler.shell.cluster import ApiCluster
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.runtime.clock import FakeClock
from tests.support.fake_api import FakeApi


@dataclass
class EvictingApi(FakeApi):
    """A server that evicts a pod only if it has the uid and nothing changes it meanwhile."""

    contended: bool = False

    async def evict(self, namespace: str, name: str, *, uid: str, **_: object) -> None:
        if self.contended or self.pod(name).metadata.uid != uid:
            raise errors.conflict(kinds.POD, name, "changed meanwhile")
        self.remove(kinds.POD, name, namespace)


def pod_of(uid: str, node: str = "n1") -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = "db-0", "default", uid
    pod.spec.nodeName = node
    return pod


def cluster_of(api: FakeApi) -> ApiCluster:
    clock = FakeClock()
    recorder = CorrelatingRecorder(cast("Client", api), "cluster-autoscaler", clock=clock)
    return ApiCluster(cast("Client", api), Options(), clock, recorder, random.Random(1))


async def test_a_pod_that_another_one_has_replaced_counts_as_evicted() -> None:
    api = EvictingApi.of(pod_of("second", node="n2"))
    await cluster_of(api).evict(pod_of("first"), 30)
    assert api.objects[kinds.POD].keys() == {ObjectKey("default", "db-0")}, "the other pod stays"


async def test_a_conflict_of_the_pod_itself_is_an_error() -> None:
    api = EvictingApi(contended=True)
    api.put(pod_of("first"))
    with pytest.raises(errors.StatusError) as raised:
        await cluster_of(api).evict(pod_of("first"), 30)
    assert errors.is_conflict(raised.value)
