"""When a ServiceCIDR may be deleted, and its condition until then."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from nominee.controllers.service_cidrs.protection import FINALIZER, GRACE_SECONDS, may_be_deleted
from nominee.controllers.service_cidrs.shell.service_cidrs import ServiceCIDRController
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import networking
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi


def cidr(name: str, *ranges: str, going_since: float = 0.0) -> networking.ServiceCIDR:
    made = networking.ServiceCIDR()
    made.metadata.name = name
    made.spec.cidrs.extend(ranges)
    if going_since:
        made.metadata.deletionTimestamp.seconds = int(going_since)
        made.metadata.finalizers.append(FINALIZER)
    return made


def address(name: str, managed_by: str = "ipallocator.k8s.io") -> networking.IPAddress:
    made = networking.IPAddress()
    made.metadata.name = name
    made.metadata.labels["ipaddress.kubernetes.io/managed-by"] = managed_by
    return made


@pytest.mark.parametrize(
    ("others", "given", "may"),
    [
        ([], [], True),
        ([], ["10.1.0.5"], False),
        ([], ["10.2.0.5"], True),
        # Another range has all of this one, or the address that is in use.
        (["10.0.0.0/8"], ["10.1.0.5"], True),
        (["10.1.0.0/24"], ["10.1.0.5"], True),
        (["10.1.0.0/28"], ["10.1.0.5"], True),
        (["10.1.0.128/25"], ["10.1.0.5"], False),
        (["fd00::/64"], ["10.1.0.5"], False),
    ],
)
def test_which_range_may_be_deleted(others: list[str], given: list[str], may: bool) -> None:
    found = [cidr(f"other-{number}", text) for number, text in enumerate(others)]
    leaving = cidr("leaving", "10.1.0.0/24")
    assert may_be_deleted(leaving, found, [address(each) for each in given]) is may
    # Addresses of other clients hold nothing.
    assert may_be_deleted(leaving, found, [address(each, "another-controller") for each in given])


def test_both_families_must_be_left_with_a_range() -> None:
    leaving = cidr("leaving", "10.1.0.0/24", "fd00::/64")
    given = [address("10.1.0.5"), address("fd00::5")]
    assert not may_be_deleted(leaving, [cidr("other", "10.1.0.0/24")], given)
    assert may_be_deleted(leaving, [cidr("other", "10.0.0.0/8", "fd00::/60")], given)


class Api(FakeApi):
    """Records patches and updates."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[str, Any]] = []

    async def patch(self, kind: Any, name: str, namespace: str, patch: Any, **more: Any) -> Any:
        self.changes.append((more.get("subresource", ""), patch))

    async def update(self, obj: Any, **_: Any) -> Any:
        self.changes.append(("update", list(obj.metadata.finalizers)))


async def writes_of(*objects: Any, now: float = 1000.0) -> tuple[list[tuple[str, Any]], float | None]:
    """Reconcile the range `x`; return its writes and the seconds until the next reconciliation."""
    api, clock = Api(), FakeClock(now)
    for each in objects:
        api.put(each)
    context = context_of(api, clock)
    controller = ServiceCIDRController(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        again = await controller.reconcile(ObjectKey("", "x"))
        tasks.cancel_scope.cancel()
    return api.changes, again


async def test_a_new_range_is_protected_and_ready() -> None:
    writes, _ = await writes_of(cidr("x", "10.1.0.0/24"))
    assert writes[0] == ("", {"metadata": {"finalizers": [FINALIZER]}})
    subresource, patch = writes[1]
    (condition,) = patch["status"]["conditions"]
    assert (subresource, condition["type"], condition["status"]) == ("status", "Ready", "True")
    assert condition["message"] == "Kubernetes Service CIDR is ready"
    done = cidr("x", "10.1.0.0/24")
    done.metadata.finalizers.append(FINALIZER)
    done.status.conditions.add(type="Ready", status="True", message="as the API server says")
    assert await writes_of(done) == ([], None)


async def test_a_range_in_use_is_kept_and_reported() -> None:
    held = cidr("x", "10.1.0.0/24", going_since=900)
    writes, _ = await writes_of(held, address("10.1.0.5"))
    (condition,) = writes[0][1]["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Terminating")
    assert condition["message"].startswith("There are still IPAddresses referencing the ServiceCIDR")
    held.status.conditions.add(type="Ready", status="False", reason="Terminating")
    assert await writes_of(held, address("10.1.0.5")) == ([], None)


async def test_a_free_range_is_deleted_after_the_grace_period() -> None:
    assert await writes_of(cidr("x", "10.1.0.0/24", going_since=997)) == ([], GRACE_SECONDS - 3)
    assert await writes_of(cidr("x", "10.1.0.0/24", going_since=900)) == ([("update", [])], None)
