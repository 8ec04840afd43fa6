"""Refuse to grant permissions that the user does not have: check roles and bindings against the user's rules.

Not an admission plugin upstream, where the storage of these kinds does it, so it cannot be disabled; it runs
whenever RBAC does. The verbs `escalate` on a role and `bind` on the role of a binding lift it, as does the
group system:masters.

Source: kube-apiserver 1.36, pkg/registry/rbac/*/policybased.
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.access.authorizer import Authorizer
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.access.rbac.role_index import Reference
from nominee.apiserver.access.rbac.rules import Rule, compact, quote, uncovered_rules
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import MASTERS, User
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind

_ROLES = (kinds.ROLE, kinds.CLUSTER_ROLE)
_BINDINGS = (kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING)
_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))


class Escalation(Plugin):
    """Refuses roles and bindings that grant more than the user has."""

    name = "Escalation"

    def __init__(self, rbac: RBAC, authorizer: Authorizer) -> None:
        self._rbac = rbac
        self._authorizer = authorizer

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return kind in (*_ROLES, *_BINDINGS) and operation != "DELETE"

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        user = request.origin.user
        if MASTERS in user.groups or _only_for_collection(request):
            return
        if request.kind in _ROLES:
            self._role(user, request)
        else:
            self._binding(user, request)

    def _role(self, user: User, request: AdmissionRequest) -> None:
        # The request for a new object has no name.
        name = request.name if request.operation == "UPDATE" else ""
        if self._may(user, "escalate", request.kind, request.namespace, name):
            return
        self._check(user, request, map(Rule.of, request.obj.rules))
        if request.kind is kinds.CLUSTER_ROLE and any(
            each is not None and each.HasField("aggregationRule") for each in (request.obj, request.old)
        ):
            held, _ = self._rbac.index.rules_of(user, "")
            if uncovered_rules(held, _EVERYTHING):
                raise request.forbidden("must have cluster-admin privileges to use the aggregationRule")

    def _binding(self, user: User, request: AdmissionRequest) -> None:
        reference = request.obj.roleRef
        kind = kinds.ROLE if reference.kind == "Role" else kinds.CLUSTER_ROLE
        if self._may(user, "bind", kind, request.namespace, reference.name):
            return
        role = Reference(request.namespace if kind is kinds.ROLE else "", reference.name)
        rules = self._rbac.index.rules.get(role)
        if rules is None:
            raise StatusError(404, "NotFound", role.missing)
        self._check(user, request, rules)

    def _may(self, user: User, verb: str, kind: AnyKind, namespace: str, name: str) -> bool:
        asked = Attributes(verb, kind.plural, kind.group, kind.version, "", namespace, name)
        return self._authorizer.decide(user, asked).allowed

    def _check(self, user: User, request: AdmissionRequest, wanted: Any) -> None:
        held, problems = self._rbac.index.rules_of(user, request.namespace)
        missing = uncovered_rules(held, wanted)
        if not missing:
            return
        listed = "\n".join(sorted({str(rule) for rule in compact(missing)}))
        text = (
            f'user "{user.name}" (groups={quote(user.groups)}) is attempting to grant RBAC permissions not'
            f" currently held:\n{listed}"
        )
        if problems:
            text += f"; resolution errors: [{' '.join(problems)}]"
        raise request.forbidden(text)


def _only_for_collection(request: AdmissionRequest) -> bool:
    """Report whether an update changes only owners and finalizers, the fields of garbage collection."""
    if request.operation != "UPDATE":
        return False
    new: Any = request.kind.message()
    old: Any = request.kind.message()
    new.CopyFrom(request.obj)
    old.CopyFrom(request.old)
    if (list(new.metadata.ownerReferences), list(new.metadata.finalizers)) == (
        list(old.metadata.ownerReferences),
        list(old.metadata.finalizers),
    ):
        return False
    for each in (new, old):
        for field in ("ownerReferences", "finalizers", "managedFields", "resourceVersion"):
            each.metadata.ClearField(field)
    return bool(new == old)
