"""The service account controller: each namespace has an account named default."""

from __future__ import annotations

import anyio

from nominee.controllers.service_accounts.objects import DEFAULT_ACCOUNT, default_account
from nominee.controllers.shell.controller import Context, Controller, namespace_ends
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_already_exists
from nominee.machinery.api.objects import ObjectKey, is_terminating
from nominee.machinery.api.pb import core

DEFAULT_NAMESPACE = "default"


class ServiceAccountController(Controller):
    """Creates the account that pods have where they name none, and creates it again when it is deleted."""

    name = "serviceaccount-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.namespaces = self.watch(kinds.NAMESPACE)
        self.accounts = context.informers.of(kinds.SERVICE_ACCOUNT)
        self._first_created = anyio.Event()
        self.accounts.add_handler(on_add=self._seen, on_delete=lambda account, _stale: self._gone(account))

    async def wait_first_created(self) -> None:
        """Return as soon as the namespace default has its account; until then its pods are rejected."""
        await self._first_created.wait()

    def _seen(self, account: core.ServiceAccount) -> None:
        if (account.metadata.namespace, account.metadata.name) == (DEFAULT_NAMESPACE, DEFAULT_ACCOUNT):
            self._first_created.set()

    def _gone(self, account: core.ServiceAccount) -> None:
        if account.metadata.name == DEFAULT_ACCOUNT:
            self.queue.add(ObjectKey("", account.metadata.namespace))

    async def reconcile(self, key: ObjectKey) -> float | None:
        namespace = self.namespaces.get(key.name)
        if namespace is None or is_terminating(namespace):
            return None
        if self.accounts.get(DEFAULT_ACCOUNT, key.name) is not None:
            return None
        with ignoring(is_already_exists, namespace_ends):
            await self.client.create(default_account(key.name))
        return None
