"""The order of the filters, and what they make of errors; the table of handlers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.access.authentication import Credentials
from nominee.apiserver.access.authorizer import NO_OPINION, Decision, RulesFor
from nominee.apiserver.chain.chain import chain
from nominee.apiserver.chain.filters import STOPPING, Dependencies
from nominee.apiserver.chain.handlers import TABLE
from nominee.apiserver.chain.metrics import RequestMetrics
from nominee.apiserver.chain.request import ApiRequest
from nominee.apiserver.flow_control.controller import FlowControl, Limits
from nominee.apiserver.objects.attributes import Attributes, Origin
from nominee.apiserver.objects.requests import Create, ObjectRequest, WriteOptions
from nominee.apiserver.objects.user import User
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.storage.interface import StorageUnavailable
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import FakeClock

UNAUTHORIZED = errors.unauthorized("Unauthorized")


class FakeRequest(ApiRequest):
    """A create of a ConfigMap that records the steps that it passes."""

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__("create")
        self.steps: list[str] = []
        self.failure: StatusError | None = None
        self._seconds = seconds

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if callable(found) and name in STEPS:
            self.steps.append(name)
        return found

    def seconds_max(self) -> float | None:
        return self._seconds

    def credentials(self) -> Credentials:
        return Credentials()

    def impersonation(self) -> list[tuple[str, str]]:
        return []

    def user_agent(self) -> str:
        return "test"

    def resolve(self) -> Attributes:
        self.kind, self.namespace = kinds.CONFIG_MAP, "default"
        return Attributes("create", "configmaps", version="v1", namespace="default")

    def width(self, control: FlowControl) -> None:
        return None

    def queue_seconds_max(self) -> float:
        return math.inf

    def prepare(self) -> None: ...

    def write_options(self, kind: str) -> WriteOptions:
        return WriteOptions(origin=self.origin())

    async def body(self, expected: Any) -> Any: ...

    async def respond(self, result: object) -> None:
        self.code = 201

    async def fail(self, error: StatusError) -> None:
        self.failure, self.code = error, error.code

    def _unused(self, *args: object) -> Any:
        raise NotImplementedError

    async def stream(self, watcher: Watcher) -> None:
        raise NotImplementedError

    resource_version = list_options = watch_options = delete_options = patch_kind = patch = _unused


STEPS = (
    "seconds_max", "credentials", "impersonation", "resolve", "width", "prepare", "write_options", "body",
    "respond",
)  # fmt: skip


class FakeRegistry:
    """A registry whose create does what the test says."""

    def __init__(self, create: Callable[[], Any] = lambda: None) -> None:
        self._create = create
        self.performed: list[ObjectRequest[Any]] = []

    async def perform(self, request: ObjectRequest[Any]) -> Any:
        self.performed.append(request)
        made = self._create()
        return await made if asyncio.iscoroutine(made) else made


class Unauthorized:
    def user_of(self, credentials: Credentials) -> User:
        raise UNAUTHORIZED


class Refusing:
    """An authorizer that allows nothing."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        return NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor(())


async def run(
    request: FakeRequest, registry: FakeRegistry | None = None, access: Access = OPEN
) -> tuple[int, FlowControl]:
    """Return the code of the response."""
    clock = FakeClock()
    control = FlowControl(clock, Limits(6, 6))
    made: Any = registry or FakeRegistry()
    await chain(Dependencies(made, access, control, clock, RequestMetrics()))(request)
    return request.code, control


async def test_the_steps_are_in_upstreams_order() -> None:
    authenticator: Any = type("Known", (), {"user_of": lambda self, credentials: User("jane")})()
    request = FakeRequest()
    code, _ = await run(request, access=Access(authenticator))
    assert (code, request.failure) == (201, None)
    assert request.steps == list(STEPS)
    assert request.user.name == "jane"


async def test_the_registry_gets_the_user_and_the_attributes_with_the_request() -> None:
    authenticator: Any = type("Known", (), {"user_of": lambda self, credentials: User("jane")})()
    registry = FakeRegistry()
    await run(FakeRequest(), registry, Access(authenticator))
    attributes = Attributes("create", "configmaps", version="v1", namespace="default")
    options = WriteOptions(origin=Origin(User("jane"), attributes))
    assert registry.performed == [Create(kinds.CONFIG_MAP, "default", None, options)]  # type: ignore[arg-type]


async def test_an_unknown_user_has_nothing_decoded() -> None:
    authenticator: Any = Unauthorized()
    request = FakeRequest()
    assert (await run(request, access=Access(authenticator)))[0] == 401
    assert request.steps == ["seconds_max", "credentials"]


async def test_a_refused_request_has_its_body_not_read_and_gives_its_seat_back() -> None:
    request = FakeRequest()
    code, control = await run(request, access=Access(None, Refusing()))
    assert code == 403
    assert request.steps[-1] == "width"
    assert control.in_flight == {True: 0, False: 0}


def raising(error: BaseException) -> Callable[[], Any]:
    def create() -> Any:
        raise error

    return create


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.bad_request("no"), 400, "no"),
        (StorageUnavailable("etcd is away"), 503, "etcd is away"),
        (ValueError("a bug"), 500, "ValueError: a bug"),
        (asyncio.CancelledError(), 503, STOPPING),
    ],
)
async def test_an_error_becomes_a_status(error: BaseException, code: int, message: str) -> None:
    request = FakeRequest()
    assert (await run(request, FakeRegistry(raising(error))))[0] == code
    assert request.failure is not None
    assert message in request.failure.message


async def test_a_missed_deadline_is_504() -> None:
    request = FakeRequest(seconds=0.01)
    assert (await run(request, FakeRegistry(anyio.sleep_forever)))[0] == 504


async def test_a_cancelled_request_has_no_response() -> None:
    request = FakeRequest()
    async with anyio.create_task_group() as group:
        group.start_soon(run, request, FakeRegistry(anyio.sleep_forever))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert (request.code, request.failure) == (0, None)


def test_every_subresource_has_a_handler_and_every_handler_a_kind() -> None:
    handled = {subresource for _, subresource in TABLE if subresource}
    served = {subresource for kind in kinds.KINDS for subresource in kind.subresources}
    # A proxy is REST's own (apiserver/fronts/rest/nodes/node_proxy.py).
    assert served - handled <= {"proxy"}
    assert handled <= served
