"""Access and token reviews, which are answered and not stored.

Source: kube-apiserver 1.36, pkg/registry/authorization and authentication, and their validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nominee.apiserver.access.service_accounts import ISSUER
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.apiserver.validation import field
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause, GroupKind
from nominee.machinery.wire.codec import to_json
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

if TYPE_CHECKING:
    from nominee.apiserver.access.access import Access

_GROUP = "authorization.k8s.io"


def answer(access: Access, review: Any, user: User, namespace: str) -> Any:
    """Fill in the status of a review and return it.

    Raises: StatusError 400, 422.
    """
    review.ClearField("status")
    match review:
        case authentication.SelfSubjectReview():
            _fill(review.status.userInfo, user)
        case authentication.TokenReview():
            _token(access, review)
        case authorization.SelfSubjectRulesReview():
            _rules(access, review, user)
        case authorization.SelfSubjectAccessReview():
            _refuse("SelfSubjectAccessReview", _one_of_two(review.spec))
            _decide(access, review, user)
        case authorization.LocalSubjectAccessReview():
            _refuse("LocalSubjectAccessReview", _local(review, namespace))
            _decide(access, review, _subject(review.spec))
        case authorization.SubjectAccessReview():
            _refuse("SubjectAccessReview", _of_subject(review.spec))
            _decide(access, review, _subject(review.spec))
    return review


def _refuse(kind: str, causes: list[Cause]) -> None:
    if causes:
        raise errors.invalid(GroupKind(_GROUP, kind), "", causes)


def _one_of_two(spec: Any) -> list[Cause]:
    both = spec.HasField("resourceAttributes"), spec.HasField("nonResourceAttributes")
    if all(both):
        shown = to_json(spec.nonResourceAttributes)
        problem = "cannot be specified in combination with resourceAttributes"
        return [field.invalid("spec.nonResourceAttributes", shown, problem)]
    if not any(both):
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field.required("spec.resourceAttributes", problem)]
    return []


def _of_subject(spec: Any) -> list[Cause]:
    causes = _one_of_two(spec)
    if not spec.user and not spec.groups:
        causes.append(field.required("spec.user", "at least one of user or group must be specified"))
    return causes


def _local(review: Any, namespace: str) -> list[Cause]:
    causes = _of_subject(review.spec)
    asked = review.spec.resourceAttributes.namespace
    if review.spec.HasField("resourceAttributes") and asked != namespace:
        causes.append(
            field.invalid("spec.resourceAttributes.namespace", asked, "must match metadata.namespace")
        )
    if review.spec.HasField("nonResourceAttributes"):
        shown = to_json(review.spec.nonResourceAttributes)
        causes.append(
            field.invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request")
        )
    return causes


def _subject(spec: Any) -> User:
    extra = tuple((key, tuple(values.items)) for key, values in sorted(spec.extra.items()))
    return User(spec.user, tuple(spec.groups), spec.uid, extra)


def _decide(access: Access, review: Any, user: User) -> None:
    decision = access.authorizer.decide(user, _attributes(review.spec))
    review.status.allowed = decision.allowed
    if decision.reason:
        review.status.reason = decision.reason


def _attributes(spec: Any) -> Attributes:
    if spec.HasField("nonResourceAttributes"):
        return Attributes(spec.nonResourceAttributes.verb, path=spec.nonResourceAttributes.path or "/")
    asked = spec.resourceAttributes
    return Attributes(
        asked.verb,
        asked.resource,
        asked.group,
        asked.version,
        asked.subresource,
        asked.namespace,
        asked.name,
        "",
        asked.fieldSelector.rawSelector or _terms(asked.fieldSelector.requirements),
        asked.labelSelector.rawSelector,
    )


def _terms(requirements: Iterable[Any]) -> str:
    """Return field requirements as the selector text that they stand for."""
    return ",".join(
        f"{each.key}={each.values[0]}"
        for each in requirements
        if each.operator == "In" and len(each.values) == 1
    )


def _rules(access: Access, review: Any, user: User) -> None:
    if not review.spec.namespace:
        raise errors.bad_request("no namespace on request")
    found = access.authorizer.rules_for(user, review.spec.namespace)
    status = review.status
    status.SetInParent()
    for rule in found.rules:
        if rule.resources:
            status.resourceRules.add(
                verbs=rule.verbs,
                apiGroups=rule.groups,
                resources=rule.resources,
                resourceNames=rule.names,
            )
        if rule.urls:
            status.nonResourceRules.add(verbs=rule.verbs, nonResourceURLs=rule.urls)
    status.incomplete = found.incomplete
    if found.problem:
        status.evaluationError = found.problem


def _token(access: Access, review: Any) -> None:
    if not review.spec.token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    audiences = tuple(review.spec.audiences)
    user = access.of_token(review.spec.token, audiences)
    status = review.status
    status.authenticated = user is not None
    if user is None:
        status.error = "invalid bearer token"
        return
    _fill(status.user, user)
    status.audiences.extend(audiences or (ISSUER,))


def _fill(info: Any, user: User) -> None:
    info.username = user.name
    if user.uid:
        info.uid = user.uid
    info.groups.extend(user.groups)
    for key, values in user.extra:
        info.extra[key].items.extend(values)
