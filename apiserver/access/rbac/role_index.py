"""The RBAC rules of each subject: roles and bindings, indexed by subject. Pure.

The index is built again when a role or binding changes, which is rare; each request looks it up, which must
be cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nominee.apiserver.access.rbac.rules import Rule
from nominee.apiserver.objects.user import User

GROUP = "rbac.authorization.k8s.io"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Reference:
    """A role as a binding names it; `namespace` is "" for a ClusterRole."""

    namespace: str
    name: str

    @property
    def missing(self) -> str:
        """The problem of a binding whose role does not exist."""
        kind = "role" if self.namespace else "clusterrole"
        return f'{kind}.{GROUP} "{self.name}" not found'


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that a subject has, and the binding that grants it, as a reason names it."""

    role: Reference
    source: str


@dataclass(slots=True)
class RoleIndex:
    """Grants by subject: ("User", name) or ("Group", name); with the namespace first for role bindings."""

    rules: dict[Reference, tuple[Rule, ...]] = field(default_factory=dict)
    everywhere: dict[tuple[str, str], list[Grant]] = field(default_factory=dict)
    within: dict[tuple[str, str, str], list[Grant]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        roles: Iterable[Any],
        role_bindings: Iterable[Any],
        cluster_roles: Iterable[Any],
        cluster_role_bindings: Iterable[Any],
    ) -> RoleIndex:
        """Build the index of the messages of all four kinds."""
        index = cls()
        for role in roles:
            reference = Reference(role.metadata.namespace, role.metadata.name)
            index.rules[reference] = tuple(map(Rule.of, role.rules))
        for role in cluster_roles:
            index.rules[Reference("", role.metadata.name)] = tuple(map(Rule.of, role.rules))
        for binding in cluster_role_bindings:
            reference = Reference("", binding.roleRef.name)
            for subject in binding.subjects:
                key = _subject(subject, "")
                if key is not None:
                    grant = Grant(reference, _source("ClusterRoleBinding", binding, subject))
                    index.everywhere.setdefault(key, []).append(grant)
        for binding in role_bindings:
            namespace = binding.metadata.namespace
            reference = Reference(namespace if binding.roleRef.kind == "Role" else "", binding.roleRef.name)
            for subject in binding.subjects:
                key = _subject(subject, namespace)
                if key is not None:
                    grant = Grant(reference, _source("RoleBinding", binding, subject))
                    index.within.setdefault((namespace, *key), []).append(grant)
        return index

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield the roles that a user has in a namespace, cluster-wide ones included; for "" only those."""
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for subject in subjects:
            yield from self.everywhere.get(subject, ())
        if namespace:
            for subject in subjects:
                yield from self.within.get((namespace, *subject), ())

    def rules_of(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return the rules that a user has in a namespace, and the problems of the bindings on the way."""
        found: list[Rule] = []
        problems = []
        for role in dict.fromkeys(grant.role for grant in self.grants(user, namespace)):
            rules = self.rules.get(role)
            if rules is None:
                problems.append(role.missing)
            else:
                found += rules
        return found, problems


def _source(kind: str, binding: Any, subject: Any) -> str:
    name = binding.metadata.name
    if kind == "RoleBinding":
        name += f"/{binding.metadata.namespace}"
    who = subject.name
    if subject.kind == "ServiceAccount":
        who += f"/{subject.namespace or binding.metadata.namespace}"
    role = binding.roleRef
    return f'{kind} "{name}" of {role.kind} "{role.name}" to {subject.kind} "{who}"'


def _subject(subject: Any, namespace: str) -> tuple[str, str] | None:
    if subject.kind in ("User", "Group"):
        return subject.kind, subject.name
    if subject.kind != "ServiceAccount":
        return None
    where = subject.namespace or namespace
    return ("User", f"{_ACCOUNT}{where}:{subject.name}") if where else None
