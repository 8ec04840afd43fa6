"""How Services are created and changed (kube-apiserver 1.36, registry/core/service)."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.kinds.core.services import carry_over
from nominee.apiserver.kinds.core.services import validation as validation
from nominee.apiserver.kinds.core.services.warnings import of_service
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.validation import names
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core


class ServiceStrategy(Strategy[core.Service]):
    """The main resource. Addresses and ports are allocated by the registry (registry/services)."""

    def warnings(self, new: core.Service, old: core.Service | None) -> Sequence[str]:
        return tuple(of_service(new))

    def name_rule(self, name: str) -> names.Problems:
        return names.dns_1035_label(name)

    def validate(self, new: core.Service, env: Environment) -> list[Cause]:
        # KEP-5311: what may be a part of a name elsewhere may be a service's.
        relaxed = env.gates.enabled("RelaxedServiceNameValidation")
        rule = names.dns_label if relaxed else names.dns_1035_label
        errors = metadata.object_meta(new.metadata, namespaced=True, name_rule=rule)
        return errors + validation.service(new)

    def prepare_for_update(self, new: core.Service, old: core.Service, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        carry_over.drop_of_old_type(new.spec, old.spec)

    def validate_update(self, new: core.Service, old: core.Service, env: Environment) -> list[Cause]:
        return [*validation.change(new, old), *self.validate(new, env)]
