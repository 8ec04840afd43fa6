"""RoleBindings and ClusterRoleBindings (kube-apiserver 1.36, rbac/validation and registry/rbac)."""

from __future__ import annotations

from functools import partial

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import field, names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import rbac

_GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")


Binding = rbac.RoleBinding | rbac.ClusterRoleBinding


def _validate(obj: Binding, *, namespaced: bool) -> list[Cause]:
    """A RoleBinding (`namespaced`) or ClusterRoleBinding."""
    reference = obj.roleRef
    errors = []
    if reference.apiGroup != _GROUP:
        errors.append(field.not_supported("roleRef.apiGroup", reference.apiGroup, [_GROUP]))
    allowed = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.kind not in allowed:
        errors.append(field.not_supported("roleRef.kind", reference.kind, sorted(allowed)))
    if not reference.name:
        errors.append(field.required("roleRef.name"))
    errors += field.problems(
        "roleRef.name", reference.name, names.path_segment(reference.name) if reference.name else ()
    )
    for index, subject in enumerate(obj.subjects):
        errors += _subject(f"subjects[{index}]", subject, namespaced=namespaced)
    return errors


def _validate_change(new: Binding, old: Binding) -> list[Cause]:
    """A binding is to one role for ever."""
    if new.roleRef == old.roleRef:
        return []
    shown = {"APIGroup": new.roleRef.apiGroup, "Kind": new.roleRef.kind, "Name": new.roleRef.name}
    return [field.invalid("roleRef", shown, "cannot change roleRef")]


def _subject(path: str, subject: rbac.Subject, *, namespaced: bool) -> list[Cause]:
    errors = [] if subject.name else [field.required(f"{path}.name")]
    match subject.kind:
        case "ServiceAccount":
            errors += field.problems(
                f"{path}.name", subject.name, names.dns_subdomain(subject.name) if subject.name else ()
            )
            if subject.apiGroup:
                errors.append(field.not_supported(f"{path}.apiGroup", subject.apiGroup, [""]))
            if not namespaced and not subject.namespace:
                errors.append(field.required(f"{path}.namespace"))
        case "User" | "Group":
            if not subject.name:
                problem = f"{subject.kind.lower()} name cannot be empty"
                errors.append(field.invalid(f"{path}.name", subject.name, problem))
            if subject.apiGroup != _GROUP:
                errors.append(field.not_supported(f"{path}.apiGroup", subject.apiGroup, [_GROUP]))
        case other:
            errors.append(field.not_supported(f"{path}.kind", other, sorted(_KINDS)))
    return errors


def _row(obj: Binding, now: float) -> Cells:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.subjects:
        name = f"{subject.namespace}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
        subjects.setdefault(subject.kind, []).append(name)
    listed = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    role = f"{obj.roleRef.kind}/{obj.roleRef.name}"
    return [role, *listed]


def _rules(kind: Kind[Binding], schema: str) -> KindRules[Binding]:
    """Return the rules of a kind of bindings; names may have colons, as `system:node`."""
    return KindRules(
        kind=kind,
        strategy=SimpleStrategy(
            kind,
            partial(_validate, namespaced=kind.namespaced),
            _validate_change,
            name_rule=names.path_segment,
            updates=UpdateCheck.OBJECT_FIRST,
        ),
        columns=Columns(
            _row,
            NAME,
            Column("Role", f"{schema}#roleRef"),
            AGE,
            wide("Users", "Users in the roleBinding"),
            wide("Groups", "Groups in the roleBinding"),
            wide("ServiceAccounts", "ServiceAccounts in the roleBinding"),
        ),
        read_your_write=True,
        created_by_update=True,
    )


ROLE_BINDING = _rules(kinds.ROLE_BINDING, "rolebinding-rbac-v1")
CLUSTER_ROLE_BINDING = _rules(kinds.CLUSTER_ROLE_BINDING, "clusterrolebinding-rbac-v1")
