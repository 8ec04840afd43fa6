"""The publisher of the root certificate: each namespace has a ConfigMap with the API server's authority."""

from __future__ import annotations

from nominee.controllers.service_accounts.objects import ROOT_CERTIFICATE, publish
from nominee.controllers.shell.controller import Context, Controller, namespace_ends
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_already_exists
from nominee.machinery.api.objects import ObjectKey, is_terminating
from nominee.machinery.api.pb import core


class RootCertificatePublisher(Controller):
    """Publishes `context.root_ca` (PEM) in each namespace, and reverts changes of other clients."""

    name = "root-ca-certificate-publisher-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._root_ca = context.root_ca
        self.namespaces = self.watch(kinds.NAMESPACE)
        self.maps = context.informers.of(kinds.CONFIG_MAP)
        self.maps.add_handler(
            on_update=lambda _old, new: self._changed(new), on_delete=lambda gone, _stale: self._changed(gone)
        )

    def _changed(self, found: core.ConfigMap) -> None:
        if found.metadata.name == ROOT_CERTIFICATE:
            self.queue.add(ObjectKey("", found.metadata.namespace))

    async def reconcile(self, key: ObjectKey) -> float | None:
        namespace = self.namespaces.get(key.name)
        if namespace is None or is_terminating(namespace):
            return None
        live = self.maps.get(ROOT_CERTIFICATE, key.name)
        desired = publish(live, key.name, self._root_ca)
        if desired is None:
            return None
        with ignoring(is_already_exists, namespace_ends):
            await (self.client.create(desired) if live is None else self.client.update(desired))
        return None
