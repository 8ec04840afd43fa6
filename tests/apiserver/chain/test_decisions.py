"""Decisions kept between requests: each filter still answers, and a change holds for the next request."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from nominee.apiserver.access.access import Access
from nominee.apiserver.access.authentication import Authenticator, Credentials, TokenFile
from nominee.apiserver.access.authorizer import Union
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.chain.chain import chain
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.metrics import RequestMetrics
from nominee.apiserver.flow_control.controller import FlowControl, Limits
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.requests import ObjectRequest
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import flowcontrol
from nominee.machinery.api.pb import rbac as pb
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.access.fakes import Objects
from tests.apiserver.chain.test_filters import FakeRequest

TOKENS = "jane-token,jane,1\njoe-token,joe,2\n"


class Request(FakeRequest):
    """A create of a ConfigMap by the owner of a token."""

    def __init__(self, token: str, impersonated: str, seconds: float | None) -> None:
        super().__init__(seconds)
        self._token, self._impersonated = token, impersonated

    def credentials(self) -> Credentials:
        return Credentials(authorization=f"Bearer {self._token}")

    def impersonation(self) -> list[tuple[str, str]]:
        return [("impersonate-user", self._impersonated)] if self._impersonated else []


class Server:
    """A chain over real authentication, RBAC and flow control. `hold` lets requests wait in their handler."""

    def __init__(self, tokens: Path, limits: Limits) -> None:
        self.clock, self.objects, self.metrics = FakeClock(), Objects(), RequestMetrics()
        self.tokens = tokens
        tokens.write_text(TOKENS)
        self.control = FlowControl(self.clock, limits)
        authenticator = Authenticator(self.clock, tokens=TokenFile(tokens, self.clock))
        self.hold: anyio.Event | None = None
        registry: Any = self
        access = Access(authenticator, Union([RBAC.over(self.objects)]))
        self._chain = chain(Dependencies(registry, access, self.control, self.clock, self.metrics))
        self.codes: Counter[int] = Counter()

    async def perform(self, request: ObjectRequest[Any]) -> Any:
        if self.hold is not None:
            await self.hold.wait()

    async def create(
        self, token: str = "jane-token", *, impersonated: str = "", seconds: float | None = None
    ) -> Request:
        request = Request(token, impersonated, seconds)
        await self._chain(request)
        self.codes[request.code] += 1
        return request

    def allow(self, *users: str, verbs: tuple[str, ...] = ("create",)) -> None:
        """Write a role for ConfigMaps and impersonation of joe, and its binding to users."""
        role = pb.ClusterRole()
        role.metadata.name = "writer"
        role.rules.add(verbs=verbs, apiGroups=[""], resources=["configmaps"])
        role.rules.add(verbs=["impersonate"], apiGroups=[""], resources=["users"], resourceNames=["joe"])
        self.objects.put(kinds.CLUSTER_ROLE, role)
        binding = pb.ClusterRoleBinding()
        binding.metadata.name = "writers"
        binding.roleRef.kind, binding.roleRef.name = "ClusterRole", "writer"
        for user in users:
            binding.subjects.add(kind="User", name=user)
        self.objects.put(kinds.CLUSTER_ROLE_BINDING, binding)

    def counted(self) -> Counter[int]:
        """Return the number of requests by code, from the metrics."""
        found: Counter[int] = Counter()
        for sample in next(iter(self.metrics.collect())).samples:
            found[int(sample.labels["code"])] += int(sample.value)
        return found


@pytest.fixture
async def server(tmp_path: Path) -> Server:
    """A server that has answered jane's request before, with one seat for writes."""
    made = Server(tmp_path / "tokens.csv", Limits(1, 1, fair=False))
    made.allow("jane")
    for _ in range(3):
        assert (await made.create()).code == 201
    return made


async def test_each_filter_answers_after_requests_that_it_let_pass(server: Server) -> None:
    assert (await server.create("another-token")).code == 401
    assert (await server.create("joe-token")).code == 403
    assert (await server.create(impersonated="root")).code == 403
    server.allow("jane", "joe")
    assert (await server.create(impersonated="joe")).user.name == "joe"
    server.hold = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(server.create)
        await anyio.wait_all_tasks_blocked()
        assert (await server.create()).code == 429
        server.hold.set()
    server.hold = anyio.Event()
    assert (await server.create(seconds=0.01)).code == 504
    server.hold = None
    assert (await server.create()).code == 201
    assert server.codes == {201: 6, 401: 1, 403: 2, 429: 1, 504: 1}
    assert server.counted() == server.codes


async def test_a_changed_binding_and_role_hold_for_the_next_request(server: Server) -> None:
    server.allow("joe")
    assert (await server.create()).code == 403
    assert (await server.create("joe-token")).code == 201
    server.allow("joe", verbs=("get",))
    assert (await server.create("joe-token")).code == 403


async def test_a_revoked_token_is_unknown_to_the_next_request(server: Server) -> None:
    server.tokens.write_text(TOKENS.partition("\n")[2])
    os.utime(server.tokens, ns=(0, 0))
    await server.clock.advance(1.0)
    assert (await server.create()).code == 401
    assert (await server.create("joe-token")).code == 403


async def test_a_changed_flow_schema_classifies_the_next_request(server: Server) -> None:
    ticket = (await server.create()).ticket
    assert ticket is not None
    assert ticket.schema == "global-default"
    schema = flowcontrol.FlowSchema()
    schema.metadata.name = "janes"
    schema.spec.matchingPrecedence = 10
    schema.spec.priorityLevelConfiguration.name = "system"
    rule = schema.spec.rules.add()
    rule.subjects.add(kind="User").user.name = "jane"
    rule.resourceRules.add(verbs=["*"], apiGroups=["*"], resources=["*"], namespaces=["*"])
    server.control.configure([*bootstrap.suggested_schemas(), schema], bootstrap.suggested_levels())
    ticket = (await server.create()).ticket
    assert ticket is not None
    assert (ticket.schema, ticket.level) == ("janes", "system")
