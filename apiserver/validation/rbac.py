"""Roles and bindings (kube-apiserver 1.36, pkg/apis/rbac/validation)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.validation import field, names, selectors
from machinery.api.errors import Cause

GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")


def rules(found: Iterable[Any], *, namespaced: bool) -> list[Cause]:
    """PolicyRules of a Role (`namespaced`) or ClusterRole."""
    errors: list[Cause] = []
    for index, rule in enumerate(found):
        errors += _rule(f"rules[{index}]", rule, namespaced=namespaced)
    return errors


def _rule(path: str, rule: Any, *, namespaced: bool) -> list[Cause]:
    errors = []
    if not rule.verbs:
        errors.append(field.required(f"{path}.verbs", "verbs must contain at least one value"))
    if rule.nonResourceURLs:
        at, urls = f"{path}.nonResourceURLs", list(rule.nonResourceURLs)
        if namespaced:
            errors.append(field.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.apiGroups or rule.resources or rule.resourceNames:
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(field.invalid(at, urls, problem))
        return errors
    if not rule.apiGroups:
        errors.append(
            field.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        )
    if not rule.resources:
        errors.append(field.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def aggregation(role: Any) -> list[Cause]:
    """A ClusterRole's aggregationRule."""
    if not role.HasField("aggregationRule"):
        return []
    path = "aggregationRule.clusterRoleSelectors"
    if not role.aggregationRule.clusterRoleSelectors:
        return [
            field.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        ]
    errors = []
    for index, selector in enumerate(role.aggregationRule.clusterRoleSelectors):
        errors += selectors.label_selector(f"{path}[{index}]", selector)
    return errors


def binding(obj: Any, *, namespaced: bool) -> list[Cause]:
    """A RoleBinding (`namespaced`) or ClusterRoleBinding."""
    reference = obj.roleRef
    errors = []
    if reference.apiGroup != GROUP:
        errors.append(field.not_supported("roleRef.apiGroup", reference.apiGroup, [GROUP]))
    allowed = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.kind not in allowed:
        errors.append(field.not_supported("roleRef.kind", reference.kind, sorted(allowed)))
    if not reference.name:
        errors.append(field.required("roleRef.name"))
    errors += [
        field.invalid("roleRef.name", reference.name, problem)
        for problem in (names.path_segment(reference.name) if reference.name else ())
    ]
    for index, subject in enumerate(obj.subjects):
        errors += _subject(f"subjects[{index}]", subject, namespaced=namespaced)
    return errors


def binding_update(new: Any, old: Any) -> list[Cause]:
    """A binding is to one role for ever."""
    if new.roleRef == old.roleRef:
        return []
    shown = {"APIGroup": new.roleRef.apiGroup, "Kind": new.roleRef.kind, "Name": new.roleRef.name}
    return [field.invalid("roleRef", shown, "cannot change roleRef")]


def _subject(path: str, subject: Any, *, namespaced: bool) -> list[Cause]:
    errors = [] if subject.name else [field.required(f"{path}.name")]
    match subject.kind:
        case "ServiceAccount":
            errors += [
                field.invalid(f"{path}.name", subject.name, problem)
                for problem in (names.dns_subdomain(subject.name) if subject.name else ())
            ]
            if subject.apiGroup:
                errors.append(field.not_supported(f"{path}.apiGroup", subject.apiGroup, [""]))
            if not namespaced and not subject.namespace:
                errors.append(field.required(f"{path}.namespace"))
        case "User" | "Group":
            if not subject.name:
                problem = f"{subject.kind.lower()} name cannot be empty"
                errors.append(field.invalid(f"{path}.name", subject.name, problem))
            if subject.apiGroup != GROUP:
                errors.append(field.not_supported(f"{path}.apiGroup", subject.apiGroup, [GROUP]))
        case other:
            errors.append(field.not_supported(f"{path}.kind", other, sorted(_KINDS)))
    return errors
