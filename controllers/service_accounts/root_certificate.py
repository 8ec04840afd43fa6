"""The publisher of the root certificate: each namespace has a ConfigMap with the API server's authority."""

from __future__ import annotations

from controllers.controller import Context, Controller, namespace_ends
from machinery.api import kinds
from machinery.api.errors import StatusError, is_already_exists
from machinery.api.objects import ObjectKey, is_terminating
from machinery.api.pb import core

NAME = "kube-root-ca.crt"
KEY = "ca.crt"
ANNOTATION = "kubernetes.io/description"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as"
    " the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of"
    " Kubernetes clusters."
)


class RootCertificatePublisher(Controller):
    """Writes `context.root_ca` (PEM, "" where the API server has none), and mends what others change."""

    name = "root-ca-certificate-publisher-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._published = {KEY: context.root_ca}
        self.namespaces = self.watch(kinds.NAMESPACE)
        self.maps = context.informers.of(kinds.CONFIG_MAP)
        self.maps.add_handler(
            on_update=lambda _old, new: self._changed(new), on_delete=lambda gone, _stale: self._changed(gone)
        )

    def _changed(self, found: core.ConfigMap) -> None:
        if found.metadata.name == NAME:
            self.queue.add(ObjectKey("", found.metadata.namespace))

    async def reconcile(self, key: ObjectKey) -> float | None:
        namespace = self.namespaces.get(key.name)
        if namespace is None or is_terminating(namespace):
            return None
        known = self.maps.get(NAME, key.name)
        if known is not None and self._is_right(known):
            return None
        wanted = core.ConfigMap()
        if known is not None:
            wanted.CopyFrom(known)
            wanted.ClearField("data")
        wanted.metadata.name, wanted.metadata.namespace = NAME, key.name
        wanted.metadata.annotations[ANNOTATION] = DESCRIPTION
        wanted.data.update(self._published)
        try:
            await (self.client.create(wanted) if known is None else self.client.update(wanted))
        except StatusError as error:
            if not (is_already_exists(error) or namespace_ends(error)):
                raise
        return None

    def _is_right(self, found: core.ConfigMap) -> bool:
        return dict(found.data) == self._published and bool(found.metadata.annotations.get(ANNOTATION))
