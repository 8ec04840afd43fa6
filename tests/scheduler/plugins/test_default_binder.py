"""DefaultBinder: one request, and its rejection as an error."""

from __future__ import annotations

from nominee.machinery.api import errors, kinds
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code
from tests.scheduler.builders import desk, pod
from tests.scheduler.performing import binding_plugins
from tests.support.fake_api import FakeApi, Request


async def test_binds_with_the_pods_uid() -> None:
    api = FakeApi.of(pod("a").pod)
    framework = desk(environment={"client": api}).framework
    assert await binding_plugins(framework).bind(framework, CycleState(), pod("a"), "n1") is None
    assert api.requests == [Request("bind", "Pod", "default/a", "n1", {"uid": "uid-a"})]


async def test_a_rejected_binding_is_an_error() -> None:
    api = FakeApi()
    api.reject = lambda request: errors.conflict(kinds.POD, "a", "already assigned to node n2")
    framework = desk(environment={"client": api}).framework
    status = await binding_plugins(framework).bind(framework, CycleState(), pod("a"), "n1")
    assert status is not None
    assert status.code is Code.Error
    assert isinstance(status.error, errors.StatusError)
    assert 'running Bind plugin "DefaultBinder"' in status.message()
