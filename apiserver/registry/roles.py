"""The strategies of roles and bindings (kube-apiserver 1.36, pkg/registry/rbac)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import metadata, names, rbac
from machinery.api import kinds
from machinery.api.errors import Cause
from machinery.api.kinds import Kind


class _AnyName(Strategy):
    """Names with colons, as `system:node`: whatever can be part of a path."""

    def name_rule(self, name: str) -> names.Problems:
        return names.path_segment(name)


class RoleStrategy(_AnyName):
    """Role and ClusterRole."""

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        errors = self.validate_metadata(new) + rbac.rules(new.rules, namespaced=self.kind.namespaced)
        return errors if self.kind.namespaced else errors + rbac.aggregation(new)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return self.validate(new, env) + metadata.object_meta_update(new.metadata, old.metadata)


class BindingStrategy(_AnyName):
    """RoleBinding and ClusterRoleBinding."""

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + rbac.binding(new, namespaced=self.kind.namespaced)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return (
            self.validate(new, env)
            + metadata.object_meta_update(new.metadata, old.metadata)
            + rbac.binding_update(new, old)
        )


STRATEGIES: dict[Kind[Any], Strategy] = {
    kinds.ROLE: RoleStrategy(kinds.ROLE),
    kinds.CLUSTER_ROLE: RoleStrategy(kinds.CLUSTER_ROLE),
    kinds.ROLE_BINDING: BindingStrategy(kinds.ROLE_BINDING),
    kinds.CLUSTER_ROLE_BINDING: BindingStrategy(kinds.CLUSTER_ROLE_BINDING),
}
