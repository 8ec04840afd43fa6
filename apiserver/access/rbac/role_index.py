"""Who has which rules: roles and bindings turned round, by subject. Pure.

Made anew when a role or binding changes, which is rare; looked up for each request, which must be cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apiserver.access.rbac.rules import Rule
from apiserver.access.user import User

GROUP = "rbac.authorization.k8s.io"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Reference:
    """A role as a binding names it; `namespace` "" is a ClusterRole's."""

    namespace: str
    name: str

    @property
    def missing(self) -> str:
        """What is said of a binding to a role that is not there."""
        kind = "role" if self.namespace else "clusterrole"
        return f'{kind}.{GROUP} "{self.name}" not found'


@dataclass(slots=True)
class RoleIndex:
    """References by subject: ("User", name) or ("Group", name); those in a namespace with it before."""

    rules: dict[Reference, tuple[Rule, ...]] = field(default_factory=dict)
    everywhere: dict[tuple[str, str], list[Reference]] = field(default_factory=dict)
    within: dict[tuple[str, str, str], list[Reference]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        roles: Iterable[Any],
        role_bindings: Iterable[Any],
        cluster_roles: Iterable[Any],
        cluster_role_bindings: Iterable[Any],
    ) -> RoleIndex:
        """From the messages of all four kinds."""
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
                    index.everywhere.setdefault(key, []).append(reference)
        for binding in role_bindings:
            namespace = binding.metadata.namespace
            reference = Reference(namespace if binding.roleRef.kind == "Role" else "", binding.roleRef.name)
            for subject in binding.subjects:
                key = _subject(subject, namespace)
                if key is not None:
                    index.within.setdefault((namespace, *key), []).append(reference)
        return index

    def references(self, user: User, namespace: str) -> Iterator[Reference]:
        """The roles that a user has in a namespace (those everywhere too), or everywhere ("")."""
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        seen = set()
        for subject in subjects:
            for reference in self.everywhere.get(subject, ()):
                if reference not in seen:
                    seen.add(reference)
                    yield reference
        if not namespace:
            return
        for subject in subjects:
            for reference in self.within.get((namespace, *subject), ()):
                if reference not in seen:
                    seen.add(reference)
                    yield reference

    def rules_of(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """The rules that a user has, and what is wrong with the bindings met on the way."""
        found: list[Rule] = []
        problems = []
        for reference in self.references(user, namespace):
            rules = self.rules.get(reference)
            if rules is None:
                problems.append(reference.missing)
            else:
                found += rules
        return found, problems


def _subject(subject: Any, namespace: str) -> tuple[str, str] | None:
    if subject.kind in ("User", "Group"):
        return subject.kind, subject.name
    if subject.kind != "ServiceAccount":
        return None
    where = subject.namespace or namespace
    return ("User", f"{_ACCOUNT}{where}:{subject.name}") if where else None
