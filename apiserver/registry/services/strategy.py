"""How Services are created and changed (kube-apiserver 1.36, registry/core/service)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.services import carry_over
from apiserver.registry.strategy import Environment, StatusStrategy, Strategy
from apiserver.validation import names
from apiserver.validation import services as validation
from machinery.errors import Cause
from machinery.kinds import SERVICE


class ServiceStrategy(Strategy):
    def name_rule(self, name: str) -> names.Problems:
        return names.dns_1035_label(name)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + validation.service(new)

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        carry_over.drop_of_old_type(new.spec, old.spec)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + validation.update(new, old)


class ServiceStatusStrategy(StatusStrategy):
    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return validation.status_update(new, old)


STRATEGY = ServiceStrategy(SERVICE, {"status": ServiceStatusStrategy(SERVICE)})
