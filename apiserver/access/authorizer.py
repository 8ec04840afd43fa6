"""Authorize requests: authorizers, asked in order until one allows the request.

The group system:masters is allowed before the configured modes. A request that no authorizer allows is
refused with the reasons of all.

Source: kube-apiserver 1.36, authorization/union and authorizerfactory.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nominee.apiserver.access.rbac.rules import Rule
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import MASTERS, User
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupResource, StatusError
from nominee.machinery.api.pb import meta

MODES = ("AlwaysAllow", "AlwaysDeny", "Node", "RBAC")


@dataclass(frozen=True, slots=True)
class Decision:
    """An authorizer's decision and its reason: allowed, or no opinion.

    A request for which every authorizer has no opinion is refused.
    """

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)
NO_OPINION = Decision(False)


@dataclass(frozen=True, slots=True)
class RulesFor:
    """The rules of a user, as far as an authorizer can list them; `problem` is why the list is incomplete."""

    rules: Sequence[Rule] = ()
    incomplete: bool = False
    problem: str = ""


class Authorizer(Protocol):
    """An authorizer. It is asked for each request and must answer in microseconds."""

    def decide(self, user: User, attributes: Attributes) -> Decision: ...

    def rules_for(self, user: User, namespace: str) -> RulesFor: ...


class AlwaysAllow:
    """Allows everything to every user."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        return ALLOWED

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor((Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))))


class AlwaysDeny:
    """Denies everything."""

    def decide(self, user: User, attributes: Attributes) -> Decision:
        return Decision(False, "Everything is forbidden.")

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return RulesFor()


class Union:
    """Asks authorizers in order; the first that allows decides."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Allow system:masters, and each request that an authorizer allows; a refusal joins all reasons."""
        if MASTERS in user.groups:
            return ALLOWED
        reasons = []
        for authorizer in self._authorizers:
            decision = authorizer.decide(user, attributes)
            if decision.allowed:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(False, "\n".join(reasons)) if reasons else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        """Join the rules of all authorizers."""
        found = [authorizer.rules_for(user, namespace) for authorizer in self._authorizers]
        problems = [each.problem for each in found if each.problem]
        return RulesFor(
            [rule for each in found for rule in each.rules],
            any(each.incomplete for each in found),
            problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else "",
        )


def forbidden(user: User, attributes: Attributes, reason: str) -> StatusError:
    """Return the 403 of a request that no authorizer allows.

    Source: kube-apiserver 1.36, endpoints/handlers/responsewriters/errors.go.
    """
    text = html.escape(_refusal(user, attributes), quote=False)
    if reason:
        text += f": {reason}"
    if not attributes.is_resource:
        error = errors.forbidden(None, "", text)
        return StatusError(error.code, error.reason, error.message, details=meta.StatusDetails())
    return errors.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, text)


def _refusal(user: User, attributes: Attributes) -> str:
    if not attributes.is_resource:
        return f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}"'
        f' in API group "{attributes.group}" {where}'
    )
