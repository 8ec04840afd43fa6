"""The objects that every namespace has. Pure.

Source: kube-controller-manager 1.36, serviceaccount and root-ca-certificate-publisher controllers.
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core

DEFAULT_ACCOUNT: Final = "default"
ROOT_CERTIFICATE: Final = "kube-root-ca.crt"
ROOT_CERTIFICATE_KEY: Final = "ca.crt"
DESCRIPTION_ANNOTATION: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as"
    " the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of"
    " Kubernetes clusters."
)


def default_account(namespace: str) -> core.ServiceAccount:
    """Return the account of pods that name none."""
    account = core.ServiceAccount()
    account.metadata.name, account.metadata.namespace = DEFAULT_ACCOUNT, namespace
    return account


def publish(live: core.ConfigMap | None, namespace: str, root_ca: str) -> core.ConfigMap | None:
    """Return the ConfigMap to write, created where `live` is None; None where the live one is right.

    `root_ca` is the API server's authority (PEM), "" where it has none.
    """
    data = {ROOT_CERTIFICATE_KEY: root_ca}
    if live is not None and dict(live.data) == data and live.metadata.annotations.get(DESCRIPTION_ANNOTATION):
        return None
    desired = core.ConfigMap()
    if live is not None:
        desired.CopyFrom(live)
        desired.ClearField("data")
    desired.metadata.name, desired.metadata.namespace = ROOT_CERTIFICATE, namespace
    desired.metadata.annotations[DESCRIPTION_ANNOTATION] = _DESCRIPTION
    desired.data.update(data)
    return desired
