"""The resource claim controller over a fake API server: pods that are on a node without a reservation."""

from __future__ import annotations

import anyio
import pytest

from nominee.controllers.devices.shell.claims import ResourceClaimController
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import pod
from tests.controllers.contexts import context_of, synced
from tests.support.devices import allocation, claim, using
from tests.support.fake_api import FakeApi

ALLOCATED = {"allocation": allocation(("n1", "gpu-0"), node="n1")}
OTHER = {"resource": "pods", "name": "other", "uid": "uid-other"}
PLACED = {"resource": "pods", "name": "placed", "uid": "uid-placed"}


def consumers(api: FakeApi) -> list[str]:
    found = api.find(kinds.RESOURCE_CLAIM, "shared", "default")
    assert found is not None
    return [each.name for each in found.status.reservedFor]


@pytest.mark.parametrize(
    "before",
    [{}, {**ALLOCATED, "reservedFor": [OTHER, PLACED]}],
    ids=[
        "another pod gets it allocated",
        "a scheduler takes back the reservation of a pod that it has bound",
    ],
)
async def test_a_claim_that_changes_is_reserved_for_the_pods_on_nodes(before: dict[str, object]) -> None:
    placed = using(pod("placed", uid="uid-placed", node="n1"), claim="shared")
    other = using(pod("other", uid="uid-other", node="n1"), claim="shared")
    waiting = using(pod("waiting", uid="uid-waiting"), claim="shared")
    unrelated = using(pod("unrelated", uid="uid-unrelated", node="n1"), claim="another")
    api = FakeApi.of(placed, other, waiting, unrelated, claim("shared", status=before))
    context = context_of(api, FakeClock())
    controller = ResourceClaimController(context)
    async with synced(context, controller.run):
        await anyio.wait_all_tasks_blocked()
        api.put(claim("shared", status={**ALLOCATED, "reservedFor": [OTHER]}))
        await anyio.wait_all_tasks_blocked()
    assert consumers(api) == ["other", "placed"]
