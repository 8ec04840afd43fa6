"""RBAC over the watch cache: an index of the rules of each subject, and a cache of verdicts.

The index is built again after a role or binding has changed; the watch cache has the last revision of each
kind. Verdicts are cached by user and attributes without the object's name, since few rules have
resourceNames: a component's requests are answered from a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cachetools import FIFOCache

from nominee.apiserver.access.authorizer import NO_OPINION, Decision, RulesFor
from nominee.apiserver.access.rbac.role_index import RoleIndex
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.machinery.api import kinds, names
from nominee.machinery.api.kinds import AnyKind

_VERDICTS_MAX = 50_000
_KINDS = (kinds.ROLE, kinds.ROLE_BINDING, kinds.CLUSTER_ROLE, kinds.CLUSTER_ROLE_BINDING)


class Objects(Protocol):
    """The part of the watch cache that RBAC needs."""

    def of(self, kind: AnyKind) -> Any:
        """Return the kind's cache, whose `last_change` is the revision of the kind's newest change."""
        ...

    def list(self, kind: AnyKind, namespace: str = "") -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A decision for all names except those in `named`."""

    decision: Decision
    named: Mapping[str, Decision] = field(default_factory=dict)


class RBAC:
    """The RBAC authorizer; see the module."""

    def __init__(self, index: Callable[[], RoleIndex], generation: Callable[[], object]) -> None:
        self._make_index = index
        self._generation_now = generation
        self._generation: object = None
        self._index = RoleIndex()
        self._verdicts = _no_verdicts()

    @classmethod
    def over(cls, objects: Objects) -> RBAC:
        """Return the authorizer over a watch cache."""
        caches = [objects.of(kind) for kind in _KINDS]

        def index() -> RoleIndex:
            return RoleIndex.of(*([found.message for found in objects.list(kind)] for kind in _KINDS))

        roles, role_bindings, cluster_roles, cluster_role_bindings = caches

        def generation() -> tuple[int, int, int, int]:
            # Asked at each request: a loop costs as much as the rest of its decision.
            return (
                roles.last_change,
                role_bindings.last_change,
                cluster_roles.last_change,
                cluster_role_bindings.last_change,
            )

        return cls(index, generation)

    @property
    def index(self) -> RoleIndex:
        """The index over the current roles and bindings."""
        now = self._generation_now()
        if now != self._generation:
            self._index = self._make_index()
            self._generation = now
            self._verdicts = _no_verdicts()
        return self._index

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Decide a request from the cached verdicts, which are dropped when a role or binding changes."""
        index = self.index
        verb, resource, group, _, subresource, namespace, name, path, _, _ = attributes
        key = (user.name, user.groups, verb, group, resource, subresource, namespace, path)
        try:
            verdict = self._verdicts[key]
        except KeyError:
            verdict = self._verdicts[key] = _judge(index, user, attributes)
        return verdict.named.get(name, verdict.decision) if verdict.named else verdict.decision

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        rules, problems = self.index.rules_of(user, namespace)
        return RulesFor(rules, bool(problems), names.aggregate(problems) if problems else "")


def _no_verdicts() -> FIFOCache[tuple[object, ...], _Verdict]:
    return FIFOCache(_VERDICTS_MAX)


def _judge(index: RoleIndex, user: User, attributes: Attributes) -> _Verdict:
    named: dict[str, Decision] = {}
    problems = []
    for grant in index.grants(user, attributes.namespace):
        rules = index.rules.get(grant.role)
        if rules is None:
            problems.append(grant.role.missing)
            continue
        for rule in rules:
            if not rule.matches(attributes):
                continue
            allowed = Decision(True, f"RBAC: allowed by {grant.source}")
            if not rule.names or not attributes.is_resource:
                return _Verdict(allowed)
            # A rule with resourceNames does not cover a request without a name (create, list).
            named |= {name: allowed for name in rule.names if name and name not in named}
    refused = Decision(False, f"RBAC: {names.aggregate(problems)}") if problems else NO_OPINION
    return _Verdict(refused, named)
