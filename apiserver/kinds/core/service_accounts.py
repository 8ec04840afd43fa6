"""ServiceAccounts (kube-apiserver 1.36, pkg/registry/core/serviceaccount)."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules, Unvalidated
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.columns import NAME_AND_AGE
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

ServiceAccount = core.ServiceAccount

_ENFORCE_ANNOTATION = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy[ServiceAccount]):
    """The main resource."""

    def prepare_for_create(self, new: ServiceAccount, env: Environment) -> None:
        _only_names(new)

    def prepare_for_update(self, new: ServiceAccount, old: ServiceAccount, env: Environment) -> None:
        _only_names(new)

    def validate_update(self, new: ServiceAccount, old: ServiceAccount, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata) + self.validate_metadata(new)

    def warnings(self, new: ServiceAccount, old: ServiceAccount | None) -> Sequence[str]:
        had = old is not None and _ENFORCE_ANNOTATION in old.metadata.annotations
        if had or _ENFORCE_ANNOTATION not in new.metadata.annotations:
            return ()
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return (f"metadata.annotations[{_ENFORCE_ANNOTATION}]: {text}",)


def _only_names(obj: ServiceAccount) -> None:
    """Secrets are of the account's own namespace: nothing but their names is kept."""
    listed = [secret.name for secret in obj.secrets]
    del obj.secrets[:]
    obj.secrets.extend(core.ObjectReference(name=name) for name in listed)


RULES = KindRules(
    kind=kinds.SERVICE_ACCOUNT,
    strategy=ServiceAccountStrategy(kinds.SERVICE_ACCOUNT),
    columns=NAME_AND_AGE,
    delete_response=DeleteResponse.OBJECT,
    needs_resource_version=True,
    unvalidated=Unvalidated("upstream's ValidateServiceAccount checks metadata only"),
)
