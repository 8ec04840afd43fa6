"""Each namespace has its default account and the authority, also after a client deletes or changes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from nominee.controllers.service_accounts.objects import DESCRIPTION_ANNOTATION
from nominee.controllers.service_accounts.shell.accounts import ServiceAccountController
from nominee.controllers.service_accounts.shell.root_certificate import RootCertificatePublisher
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi

CERTIFICATE = "kube-root-ca.crt"


class Api(FakeApi):
    def names(self, kind: Kind[Any]) -> set[str]:
        return {f"{key.namespace}/{key.name}" for key in self.objects.get(kind, {})}

    def namespace(self, name: str, *, ends: bool = False) -> None:
        made = core.Namespace()
        made.metadata.name = name
        if ends:
            made.metadata.deletionTimestamp.seconds = 1
        self.put(made)


@asynccontextmanager
async def controllers(api: Api) -> AsyncIterator[None]:
    context = context_of(api, FakeClock(), root_ca="PEM")
    informers = context.informers
    runners = [ServiceAccountController(context), RootCertificatePublisher(context)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informers.run)
        await informers.wait_synced()
        for runner in runners:
            tasks.start_soon(runner.run)
        yield
        tasks.cancel_scope.cancel()


async def test_every_namespace_has_both_and_keeps_them() -> None:
    api = Api()
    api.namespace("a")
    api.namespace("gone", ends=True)
    async with controllers(api):
        await api.until(lambda: api.names(kinds.SERVICE_ACCOUNT) == {"a/default"})
        api.namespace("b")
        await api.until(lambda: api.names(kinds.SERVICE_ACCOUNT) == {"a/default", "b/default"})
        both = {f"a/{CERTIFICATE}", f"b/{CERTIFICATE}"}
        await api.until(lambda: api.names(kinds.CONFIG_MAP) == both)
        published = api.all_of(kinds.CONFIG_MAP)[0]
        assert dict(published.data) == {"ca.crt": "PEM"}
        assert published.metadata.annotations[DESCRIPTION_ANNOTATION]
        api.remove(kinds.SERVICE_ACCOUNT, "default", "a")
        api.remove(kinds.CONFIG_MAP, CERTIFICATE, "a")
        await api.until(lambda: len(api.names(kinds.SERVICE_ACCOUNT)) == 2)
        await api.until(lambda: api.names(kinds.CONFIG_MAP) == both)


async def test_the_controllers_are_ready_once_pods_of_the_namespace_default_can_be_created() -> None:
    api = Api()
    api.namespace("a")
    api.namespace("default")
    api.hold["create"] = anyio.Event()
    context = context_of(api, FakeClock())
    controller = ServiceAccountController(context)
    is_ready = anyio.Event()

    async def wait() -> None:
        await controller.wait_first_created()
        is_ready.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        tasks.start_soon(controller.run)
        tasks.start_soon(wait)
        account = core.ServiceAccount()
        account.metadata.name, account.metadata.namespace = "default", "a"
        api.put(account)
        await anyio.wait_all_tasks_blocked()
        assert not is_ready.is_set()
        api.hold["create"].set()
        await api.until(is_ready.is_set)
        assert "default/default" in api.names(kinds.SERVICE_ACCOUNT)
        tasks.cancel_scope.cancel()


async def test_a_changed_config_map_is_overwritten() -> None:
    api = Api()
    api.namespace("a")
    other = core.ConfigMap()
    other.metadata.name, other.metadata.namespace = CERTIFICATE, "a"
    other.data["ca.crt"] = "another"
    api.put(other)

    def data() -> dict[str, str]:
        (found,) = api.all_of(kinds.CONFIG_MAP)
        return dict(found.data)

    async with controllers(api):
        await api.until(lambda: data() == {"ca.crt": "PEM"})
        other.data["more"] = "x"
        api.put(other)
        await api.until(lambda: data() == {"ca.crt": "PEM"})
