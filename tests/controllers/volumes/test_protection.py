"""A claim in use is protected, also from a controller whose watch of pods is late."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import anyio

from nominee.controllers.shell.controller import UNSEEN_SECONDS
from nominee.controllers.volumes.annotations import PVC_PROTECTION
from nominee.controllers.volumes.shell.protection import ClaimProtection
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import WatchEvent
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.contexts import context_of, synced
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

KEY = ObjectKey("default", "data")


class LateApi(FakeApi):
    """Shows no pod in a watch."""

    async def watch_batches(
        self, kind: Kind[M], namespace: str = "", *, resource_version: str, **_: object
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        async for batch in super().watch_batches(kind, namespace, resource_version=resource_version):
            if kind is not kinds.POD or not batch:
                yield batch


def terminating_claim() -> core.PersistentVolumeClaim:
    found = core.PersistentVolumeClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = KEY.name, KEY.namespace, "uid"
    found.metadata.finalizers.append(PVC_PROTECTION)
    found.metadata.deletionTimestamp.seconds = 1
    return found


def user(*, node: str = "n1", phase: str = "Running") -> core.Pod:
    found = core.Pod()
    found.status.phase = phase
    found.metadata.name, found.metadata.namespace = "p", KEY.namespace
    found.spec.nodeName = node
    found.spec.volumes.add(name="data").volumeSource.persistentVolumeClaim.claimName = KEY.name
    return found


async def test_a_pod_that_the_watch_has_not_shown_protects_its_claim() -> None:
    api, clock = LateApi(), FakeClock()
    api.put(terminating_claim())
    context = context_of(cast("Any", api), clock)
    controller = ClaimProtection(context)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context):
            api.put(user())
            assert controller.pods.list(KEY.namespace) == []
            # If the pod goes before it is shown, no event says so.
            assert await controller.reconcile(KEY) == UNSEEN_SECONDS
            assert [each.verb for each in api.requests if each.kind == "PersistentVolumeClaim"].count(
                "update"
            ) == 0
            api.put(user(node=""))
            await controller.reconcile(KEY)
    claim = api.find(kinds.PERSISTENT_VOLUME_CLAIM, KEY.name, KEY.namespace)
    assert claim is None or PVC_PROTECTION not in claim.metadata.finalizers


async def test_a_pod_that_has_ended_protects_its_claim_until_it_is_removed() -> None:
    """kube-controller-manager 1.36, pvcprotection: a pod that is finished and not deleted keeps the claim."""
    api, clock = FakeApi(), FakeClock()
    api.put(terminating_claim())
    api.put(user(phase="Failed"))
    context = context_of(cast("Any", api), clock)
    controller = ClaimProtection(context)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with synced(context):
            await controller.reconcile(KEY)
    kept = api.find(kinds.PERSISTENT_VOLUME_CLAIM, KEY.name, KEY.namespace)
    assert kept is not None
    assert PVC_PROTECTION in kept.metadata.finalizers
