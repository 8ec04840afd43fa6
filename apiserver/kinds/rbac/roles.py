"""Roles and ClusterRoles (kube-apiserver 1.36, pkg/apis/rbac/validation and pkg/registry/rbac)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import NAME_AND_CREATION
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import selectors
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import rbac

Role = rbac.Role | rbac.ClusterRole


def _validate(obj: Role, *, namespaced: bool) -> Iterator[Cause]:
    """A Role (`namespaced`) or ClusterRole."""
    for index, rule in enumerate(obj.rules):
        yield from _rule(f"rules[{index}]", rule, namespaced=namespaced)
    if isinstance(obj, rbac.ClusterRole):
        yield from _aggregation(obj)


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


def _rules(kind: Kind[Role]) -> KindRules[Role]:
    """Return the rules of a kind of roles; names may have colons, as `system:node`."""
    return KindRules(
        kind=kind,
        strategy=SimpleStrategy(
            kind,
            partial(_validate, namespaced=kind.namespaced),
            name_rule=names.path_segment,
            updates=UpdateCheck.OBJECT_FIRST,
        ),
        columns=NAME_AND_CREATION,
        read_your_write=True,
        created_by_update=True,
    )


ROLE = _rules(kinds.ROLE)
CLUSTER_ROLE = _rules(kinds.CLUSTER_ROLE)
