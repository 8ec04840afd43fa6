"""Roles and ClusterRoles (kube-apiserver 1.36, pkg/apis/rbac/validation and pkg/registry/rbac)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.apiserver.validation import field, metadata, names, selectors
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import rbac

Role = rbac.Role | rbac.ClusterRole


class RoleStrategy(Strategy[Role]):
    """Role and ClusterRole; names may have colons, as `system:node`."""

    def name_rule(self, name: str) -> names.Problems:
        """Return the problems of a name, which is a segment of a path."""
        return names.path_segment(name)

    def validate(self, new: Role, env: Environment) -> list[Cause]:
        errors = [*self.validate_metadata(new), *_rules(new.rules, namespaced=self.kind.namespaced)]
        return [*errors, *_aggregation(new)] if isinstance(new, rbac.ClusterRole) else errors

    def validate_update(self, new: Role, old: Role, env: Environment) -> list[Cause]:
        return self.validate(new, env) + metadata.object_meta_update(new.metadata, old.metadata)


def _rules(found: Iterable[rbac.PolicyRule], *, namespaced: bool) -> Iterator[Cause]:
    """PolicyRules of a Role (`namespaced`) or ClusterRole."""
    for index, rule in enumerate(found):
        yield from _rule(f"rules[{index}]", rule, namespaced=namespaced)


def _rule(path: str, rule: rbac.PolicyRule, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.verbs:
        yield field.required(f"{path}.verbs", "verbs must contain at least one value")
    if rule.nonResourceURLs:
        at, urls = f"{path}.nonResourceURLs", list(rule.nonResourceURLs)
        if namespaced:
            yield field.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.apiGroups or rule.resources or rule.resourceNames:
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            yield field.invalid(at, urls, problem)
        return
    if not rule.apiGroups:
        yield field.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        yield field.required(f"{path}.resources", "resource rules must supply at least one resource")


def _aggregation(role: rbac.ClusterRole) -> Iterator[Cause]:
    """A ClusterRole's aggregationRule."""
    if not role.HasField("aggregationRule"):
        return
    path = "aggregationRule.clusterRoleSelectors"
    if not role.aggregationRule.clusterRoleSelectors:
        yield field.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        return
    for index, selector in enumerate(role.aggregationRule.clusterRoleSelectors):
        yield from selectors.label_selector(f"{path}[{index}]", selector)


ROLE = KindRules(
    kind=kinds.ROLE,
    strategy=RoleStrategy(kinds.ROLE),
    columns=NAME_AND_CREATION,
    read_your_write=True,
    created_by_update=True,
)
CLUSTER_ROLE = KindRules(
    kind=kinds.CLUSTER_ROLE,
    strategy=RoleStrategy(kinds.CLUSTER_ROLE),
    columns=NAME_AND_CREATION,
    read_your_write=True,
    created_by_update=True,
)
